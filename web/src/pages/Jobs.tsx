import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, keyWanted, words } from "../api/http";
import type { Job } from "../api/types";
import { Bones, Notice, Seg } from "../parts/forms";
import { Icon } from "../parts/Icon";
import { useKeys } from "../shell/keys";
import { go, query } from "../shell/router";
import { PROBLEMS, sizeWords } from "../words";
import { learn, notes, open, Table } from "./jobs/Table";
import { comparable, Dock } from "./jobs/Dock";

type Filter = "all" | "running" | "queued" | "succeeded" | "failed";
const FILTERS: [Filter, string][] = [
  ["all", "All"],
  ["running", "Running"],
  ["queued", "Waiting"],
  ["succeeded", "Done"],
  ["failed", "Failed"],
];

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
      let found: Job[] = [],
        after: string | null = null;
      for (let page = 0; page < pages; page++) {
        const asked = new URLSearchParams({
          limit: "50",
          ...(after ? { cursor: after } : {}),
          ...(filter !== "all" ? { state: filter } : {}),
          ...(problem ? { solver: problem } : {}),
        });
        const one: { jobs: Job[]; next: string | null } = await get(`/v1/jobs?${asked}`);
        found = [...found, ...one.jobs];
        after = one.next;
        if (!after) break;
      }
      setJobs(found);
      setNext(after);
      setWrong("");
      await Promise.all(found.map((job) => learn(job).then(() => redrawn((count) => count + 1))));
    } catch (error) {
      if (!keyWanted.peek()) setWrong(words(error));
    }
  };
  useEffect(() => {
    void look.current();
    const timer = setInterval(
      () => document.visibilityState === "visible" && !keyWanted.peek() && void look.current(),
      2000,
    );
    return () => clearInterval(timer);
  }, [filter, problem, pages]);

  const wanted = (query.value.get("find") ?? "").toLowerCase();
  const shown = useMemo(
    () =>
      open(
        (jobs ?? []).filter(
          (job) =>
            !wanted || `${notes.get(job.id)?.title ?? ""} ${sizeWords(job)} ${job.id}`.toLowerCase().includes(wanted),
        ),
      ),
    [jobs, wanted],
  );
  const picked = shown.filter((job) => chosen.has(job.id));
  const toggle = (id: string) =>
    setChosen((before) =>
      before.has(id) ? new Set([...before].filter((one) => one !== id)) : new Set([...before, id]),
    );
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
  useKeys(
    {
      j: () => move(1),
      k: () => move(-1),
      x: () => shown[cursor] && toggle(shown[cursor]!.id),
      Enter: () => {
        const focused = document.activeElement as HTMLElement | null;
        if (focused && focused !== document.body && focused.id !== "main") focused.click();
        else if (shown[cursor]) go(`/jobs/${shown[cursor]!.id}`);
      },
      c: () => comparable(picked) === "" && compare(),
    },
    [shown, cursor, chosen],
  );

  return (
    <>
      <div class="head">
        <h1>Jobs</h1>
        <span class="note small row wide">
          <i class="dot live" />
          live
        </span>
        <span class="end">
          <a class="btn go" href="/solve">
            <Icon name="plus" />
            New
          </a>
        </span>
      </div>
      <div class="filters">
        <Seg
          name="state"
          legend="State"
          value={filter}
          options={FILTERS}
          change={(value) => (setPages(1), setFilter(value))}
        />
        <select
          class="field"
          aria-label="Problem"
          value={problem}
          onChange={(event) => (setPages(1), setProblem(event.currentTarget.value))}
        >
          <option value="">Every problem</option>
          {Object.entries(PROBLEMS).map(([name, { tab }]) => (
            <option value={name}>{tab}</option>
          ))}
        </select>
        {wanted && (
          <span class="chip">
            “{wanted}”
            <button type="button" aria-label="Show all" onClick={() => go("/jobs")}>
              <Icon name="cross" />
            </button>
          </span>
        )}
      </div>
      {wrong && <Notice kind="bad">{wrong}</Notice>}
      {!jobs && !wrong && <Bones />}
      {jobs && !shown.length && <Empty filtered={filter !== "all" || !!problem || !!wanted} />}
      {shown.length > 0 && <Table jobs={shown} chosen={chosen} toggle={toggle} cursor={cursor} />}
      {next && (
        <p class="row">
          <button class="btn" type="button" onClick={() => setPages(pages + 1)}>
            Show older jobs
          </button>
        </p>
      )}
      {picked.length > 0 && <Dock picked={picked} compare={compare} each={each} clear={() => setChosen(new Set())} />}
    </>
  );
}

function Empty({ filtered }: { filtered: boolean }) {
  return filtered ? (
    <p class="lede">No job is like this.</p>
  ) : (
    <div class="drop">
      <h2>No jobs yet</h2>
      <p class="note">Drop a spreadsheet on Solve, or load a sample there.</p>
      <div class="row">
        <a class="btn go" href="/solve">
          Solve something
        </a>
      </div>
    </div>
  );
}
