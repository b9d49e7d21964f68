import { Fragment } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, keyWanted, post, send, words } from "../api/http";
import { forgetNote, type Note, noteOf } from "../api/notes";
import type { Job, Result } from "../api/types";
import { Bones, Notice, Seg } from "../parts/forms";
import { Icon } from "../parts/Icon";
import { ProofBar } from "../parts/ProofBar";
import { useKeys } from "../shell/keys";
import { go, query } from "../shell/router";
import { clock, gapPercent, listWords, number, plural, PROBLEMS, seconds, sizeWords } from "../words";
import { measureOf } from "./job/told";

type Filter = "all" | "running" | "queued" | "succeeded" | "failed";
const FILTERS: [Filter, string][] = [["all", "All"], ["running", "Running"], ["queued", "Waiting"], ["succeeded", "Done"], ["failed", "Failed"]];

interface Ends {
  objective: number | null;
  bound: number | null;
}

/** Answers of jobs that ended before they could report any progress. */
const ends = new Map<string, Ends>();
const notes = new Map<string, Note | null>();

export default function Jobs() {
  const [jobs, setJobs] = useState<Job[] | null>(null);
  const [next, setNext] = useState<string | null>(null);
  const [pages, setPages] = useState(1);
  const [filter, setFilter] = useState<Filter>("all");
  const [problem, setProblem] = useState("");
  const [chosen, setChosen] = useState<Set<string>>(new Set());
  const [cursor, setCursor] = useState(-1);
  const [wrong, setWrong] = useState("");
  const [, redrawn] = useState(0);
  const look = useRef(() => Promise.resolve());

  look.current = async () => {
    try {
      let found: Job[] = [], after: string | null = null;
      for (let page = 0; page < pages; page++) {
        const asked = new URLSearchParams({ limit: "50", ...(after ? { cursor: after } : {}), ...(filter !== "all" ? { state: filter } : {}), ...(problem ? { solver: problem } : {}) });
        const one: { jobs: Job[]; next: string | null } = await get(`/v1/jobs?${asked}`);
        found = [...found, ...one.jobs];
        after = one.next;
        if (!after) break;
      }
      setJobs(found);
      setNext(after);
      setWrong("");
      await Promise.all(found.map(learn));
      redrawn((count) => count + 1);
    } catch (error) {
      if (!keyWanted.peek()) setWrong(words(error));
    }
  };
  useEffect(() => {
    void look.current();
    const timer = setInterval(() => document.visibilityState === "visible" && !keyWanted.peek() && void look.current(), 2000);
    return () => clearInterval(timer);
  }, [filter, problem, pages]);

  const wanted = (query.value.get("find") ?? "").toLowerCase();
  const shown = useMemo(() => open((jobs ?? []).filter((job) => !wanted || `${notes.get(job.id)?.title ?? ""} ${sizeWords(job)} ${job.id}`.toLowerCase().includes(wanted))), [jobs, wanted]);
  const picked = shown.filter((job) => chosen.has(job.id));
  const toggle = (id: string) => setChosen((before) => (before.has(id) ? new Set([...before].filter((one) => one !== id)) : new Set([...before, id])));
  const compare = () => go(`/compare?jobs=${picked.map((job) => job.id).join(",")}`);
  const each = async (work: (job: Job) => Promise<unknown>) => {
    try {
      for (const job of picked) await work(job);
      setChosen(new Set());
    } catch (error) {
      setWrong(words(error));
    }
    await look.current();
  };
  const move = (step: number) => {
    const at = Math.min(shown.length - 1, Math.max(0, cursor + step));
    setCursor(at);
    document.getElementById(`job-${shown[at]?.id}`)?.scrollIntoView({ block: "nearest" });
  };
  useKeys({
    j: () => move(1), k: () => move(-1),
    x: () => shown[cursor] && toggle(shown[cursor]!.id),
    Enter: () => (shown[cursor] ? go(`/jobs/${shown[cursor]!.id}`) : (document.activeElement as HTMLElement | null)?.click()),
    c: () => comparable(picked) === "" && compare(),
  }, [shown, cursor, chosen]);

  return (
    <>
      <div class="head">
        <h1>Jobs</h1>
        <span class="note small row wide"><i class="dot live" />live</span>
        <span class="end"><a class="btn go" href="/solve"><Icon name="plus" />New</a></span>
      </div>
      <div class="filters">
        <Seg name="state" legend="State" value={filter} options={FILTERS} change={(value) => (setPages(1), setFilter(value))} />
        <select class="field" aria-label="Problem" value={problem} onChange={(event) => (setPages(1), setProblem(event.currentTarget.value))}>
          <option value="">Every problem</option>
          {Object.entries(PROBLEMS).map(([name, { tab }]) => <option value={name}>{tab}</option>)}
        </select>
        {wanted && <span class="chip">“{wanted}”<button type="button" aria-label="Show all" onClick={() => go("/jobs")}><Icon name="cross" /></button></span>}
      </div>
      {wrong && <Notice kind="bad">{wrong}</Notice>}
      {!jobs && !wrong && <Bones />}
      {jobs && !shown.length && <Empty filtered={filter !== "all" || !!problem || !!wanted} />}
      {shown.length > 0 && <Table jobs={shown} chosen={chosen} toggle={toggle} cursor={cursor} />}
      {next && <p class="row"><button class="btn" type="button" onClick={() => setPages(pages + 1)}>Show older jobs</button></p>}
      {picked.length > 0 && <Dock picked={picked} compare={compare} each={each} clear={() => setChosen(new Set())} />}
    </>
  );
}

async function learn(job: Job): Promise<void> {
  if (!notes.has(job.id)) notes.set(job.id, await noteOf(job.id));
  if (job.state !== "succeeded" || ends.has(job.id)) return;
  const small = Object.values(job.input_digests).every((input) => (("csr" in input ? input.csr.shape : input.shape) ?? []).every((extent) => extent <= 500));
  if (job.progress?.objective != null && job.progress.bound != null && !small) return;
  if (!small) return;
  try {
    const { certificate, objective } = await get<Result>(`/v1/jobs/${job.id}/result`);
    ends.set(job.id, { objective, bound: certificate.bound });
  } catch {
    ends.set(job.id, { objective: null, bound: null }); // expired in between: the row says what it knows
  }
}

function Empty({ filtered }: { filtered: boolean }) {
  return filtered ? <p class="lede">No job is like this.</p> : <div class="drop"><h2>No jobs yet</h2><p class="note">Drop a spreadsheet on Solve, or load a sample there.</p><div class="row"><a class="btn go" href="/solve">Solve something</a></div></div>;
}

/** Why these cannot be compared; "" when they can. */
export function comparable(jobs: Job[]): string {
  if (jobs.length < 2) return "choose two to compare";
  if (jobs.length > 6) return "at most six can be compared";
  if (jobs.some((job) => job.state !== "succeeded")) return "only finished jobs can be compared";
  return new Set(jobs.map(sizeWords)).size > 1 ? "only jobs of one problem can be compared" : "";
}

function Dock({ picked, compare, each, clear }: { picked: Job[]; compare: () => void; each: (work: (job: Job) => Promise<unknown>) => Promise<void>; clear: () => void }) {
  const [sure, setSure] = useState(false);
  const why = comparable(picked);
  const going = picked.filter((job) => ["queued", "running"].includes(job.state));
  const remove = async (job: Job) => {
    await send(`/v1/jobs/${job.id}`, { method: "DELETE" });
    await forgetNote(job.id);
  };
  return (
    <div class="dock" role="toolbar" aria-label="The chosen jobs">
      <p><b class="strong">{plural(picked.length, "job")}</b> <span class="note">{why}</span></p>
      <button class="btn go" type="button" disabled={!!why} onClick={compare}>Compare<kbd class="wide" aria-hidden="true">C</kbd></button>
      {going.length > 0 && <button class="btn" type="button" onClick={() => void each(async (job) => going.includes(job) && post(`/v1/jobs/${job.id}/cancel`, {}))}>Stop</button>}
      <button class="btn" type="button" onClick={() => (sure ? void each(remove) : setSure(true))} onBlur={() => setSure(false)}>{sure ? "Delete for good" : "Delete"}</button>
      <button class="btn plain" type="button" aria-label="Choose none" onClick={clear}><Icon name="cross" /></button>
    </div>
  );
}

function group(job: Job): string {
  if (["queued", "running"].includes(job.state)) return "Running now";
  const days = Math.floor((new Date().setHours(24, 0, 0, 0) - Date.parse(job.created_at)) / 86_400_000);
  return days === 0 ? "Today" : days === 1 ? "Yesterday" : new Date(job.created_at).toLocaleDateString("en-GB", { day: "numeric", month: "long" });
}

/** Those that wait or run come first. */
const open = (jobs: Job[]): Job[] => [...jobs].sort((a, b) => Number(group(b) === "Running now") - Number(group(a) === "Running now"));

function Table({ jobs, chosen, toggle, cursor }: { jobs: Job[]; chosen: Set<string>; toggle: (id: string) => void; cursor: number }) {
  return (
    <table class="jobs">
      <thead><tr><td class="pick" /><th scope="col">Job</th><th scope="col">State</th><th scope="col" class="right">Answer</th><th scope="col">Proved to be</th><th scope="col" class="right">Took</th><th scope="col" class="right">Started</th></tr></thead>
      <tbody>
        {jobs.map((job, at) => (
          <Fragment key={job.id}>
            {(at === 0 || group(jobs[at - 1]!) !== group(job)) && <tr class="group"><th colSpan={7} scope="rowgroup">{group(job)}</th></tr>}
            <Row job={job} on={chosen.has(job.id)} toggle={() => toggle(job.id)} cursor={jobs[cursor]?.id === job.id} />
          </Fragment>
        ))}
      </tbody>
    </table>
  );
}

function Row({ job, on, toggle, cursor }: { job: Job; on: boolean; toggle: () => void; cursor: boolean }) {
  const note = notes.get(job.id) ?? null;
  const title = note?.title || sizeWords(job);
  const end = ends.get(job.id);
  const objective = end?.objective ?? job.progress?.objective ?? null;
  const bound = end?.bound ?? job.progress?.bound ?? null;
  const { factor, unit, measure } = measureOf(job, note);
  const running = job.state === "running";
  const tookS = job.started_at ? ((job.ended_at ? Date.parse(job.ended_at) : Date.now()) - Date.parse(job.started_at)) / 1000 : null;
  const ready = job.state === "succeeded" && job.termination !== "infeasible";
  return (
    <tr id={`job-${job.id}`} class={`${on ? "on" : ""}${cursor ? " cursor" : ""}`}>
      <td class="pick"><label><input class="check" type="checkbox" checked={on} onChange={toggle} aria-label={`Choose ${title}, ${job.id.slice(0, 8)}`} /></label></td>
      <th scope="row"><a href={`/jobs/${job.id}`}><b>{title}</b><span class="sub">{note?.title ? sizeWords(job) : job.id.slice(0, 8)}</span></a></th>
      <td><State job={job} /></td>
      <td class="right ans">{(running || ready) && objective != null && <><b>{number(objective * factor)}{unit && ` ${unit}`}</b><span class="sub wide">{measure}{job.input_digests.linear ? ", moves counted" : ""}</span></>}</td>
      <td class="why"><div class="proof">{(running || ready) && <ProofBar percent={job.termination === "optimal" ? 0 : capped(gapPercent(objective, bound))} />}<span class="small">{listWords(job, objective, bound)}</span></div></td>
      <td class="right opt">{tookS != null && (running ? `${clock(tookS)}${job.time_limit_s ? ` of ${clock(job.time_limit_s)}` : ""}` : seconds(tookS))}</td>
      <td class="right opt">{new Date(job.created_at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}<span class="sub">{job.ran_on?.replace(/^NVIDIA /, "") ?? ""}</span></td>
    </tr>
  );
}

const capped = (percent: number | null): number | null => (percent !== null && percent > 100 ? null : percent);

function State({ job }: { job: Job }) {
  const [icon, word] = job.termination === "infeasible" ? ["bar", "Impossible"] : job.termination === "stopped" ? ["stop", "Stopped"] : ({ queued: ["clock", "Waiting"], running: ["", "Running"], succeeded: ["check", "Done"], failed: ["warn", "Failed"], cancelled: ["stop", "Cancelled"] } as const)[job.state];
  return <span class={`st ${job.state === "running" ? "run" : job.state === "failed" ? "bad" : ""}`}>{icon ? <Icon name={icon} /> : <i class="dot live" />}{word}</span>;
}
