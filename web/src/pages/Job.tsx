import { useEffect, useState } from "preact/hooks";
import { forgetNote, keepNote } from "../api/notes";
import { isKept, NOT_KEPT } from "../api/copies";
import { post, send, words } from "../api/http";
import type { Job as JobRecord } from "../api/types";
import { Bones, Notice } from "../parts/forms";
import { Icon } from "../parts/Icon";
import { useKeys } from "../shell/keys";
import { go } from "../shell/router";
import { SLUGS } from "../samples";
import { clock, seconds, sizeWords } from "../words";
import { CertificateLines } from "./job/Certificate";
import { type Live, useLive } from "./job/live";
import { Picture } from "./job/Picture";
import { Improvements, Phases, Proof } from "./job/Proof";
import { tell } from "./job/told";
import { Answer } from "./job/Answer";
import { runAgain } from "./job/again";
import { layOnBench, sheetsOf } from "./job/numbers";
import { Share } from "./job/Share";

export default function Job({ id }: { id: string }) {
  const live = useLive(id);
  const { job, note } = live;
  const [now, setNow] = useState(0);
  const over = job !== null && !["queued", "running"].includes(job.state);
  const [wrong, setWrong] = useState("");
  const [fixed, setFixed] = useState<Set<number> | null>(null);
  const [excluded, setExcluded] = useState(new Set<string>());
  const stays = fixed ?? new Set(Object.keys((job?.options.fixed as object) ?? {}).map(Number));
  useEffect(() => {
    if (!job?.started_at) return setNow(0);
    const begun = Date.parse(job.started_at),
      end = job.ended_at ? Date.parse(job.ended_at) : null;
    const tick = () => setNow(((end ?? Date.now()) - begun) / 1000);
    tick();
    if (end) return;
    const timer = setInterval(tick, 250);
    return () => clearInterval(timer);
  }, [job?.started_at, job?.ended_at]);
  const stop = () => void post(`/v1/jobs/${id}/cancel`, {}).catch((error) => setWrong(words(error)));
  useKeys(over ? {} : { ".": stop }, [over]);
  const called = job && [tell(live).headline, note?.title, "Allot"].filter(Boolean).join(" · ");
  useEffect(() => {
    if (called) document.title = called; // of several jobs in tabs, each says which it is
  }, [called]);
  if (live.expired) return <Expired id={id} />;
  if (live.wrong)
    return (
      <>
        <h1>This job cannot be shown</h1>
        <p class="lede">{live.wrong}</p>
        <p>
          <a class="link" href="/jobs">
            To your jobs
          </a>
        </p>
      </>
    );
  if (!job) return live.lostUntil === null ? <Bones /> : <Lost live={live} />;
  const told = tell(live);
  const kept = isKept(job);
  const begins = job.state === "succeeded" && job.termination !== "infeasible";
  const toggle = (facility: number) => {
    const next = new Set(stays);
    if (!next.delete(facility)) next.add(facility);
    setFixed(next);
  };
  const sheets = over ? sheetsOf(live) : null;
  const change = async () => {
    await layOnBench(live, sheets!);
    go(`/solve/${SLUGS[job.solver]}`);
  };
  const rerun = async (warm: boolean) => {
    try {
      const again = await runAgain(live, warm, { fixed, excluded });
      if (note)
        await keepNote(again.id, {
          ...note,
          title: warm ? `${note.title}, again` : note.title,
          fixed: undefined,
          saved: Date.now(),
        });
      go(`/jobs/${again.id}`);
    } catch (error) {
      setWrong(words(error));
    }
  };
  return (
    <>
      <Crumb job={job} title={note?.title ?? ""} />
      <div class="say">
        <div>
          <h1>{told.headline}</h1>
          <p class="lede">{told.lede}</p>
          <Spoken text={`${told.headline}. ${told.lede}`} over={over} />
        </div>
        <div class="acts no-print">
          {(job.started_at || over) && (
            <p class={live.lostUntil ? "clock lost" : "clock"}>
              <b>{over ? seconds(took(job)) : clock(now)}</b>
              {over ? "in all" : job.time_limit_s ? `of ${clock(job.time_limit_s)}` : ""}
            </p>
          )}
          {!over && (
            <button class="btn go" type="button" onClick={stop}>
              <Icon name="stop" />
              {job.state === "queued" ? "Cancel" : "Stop and keep best"}
            </button>
          )}
          {over && kept && (
            <button class="btn go" type="button" onClick={() => void rerun(begins)}>
              {excluded.size
                ? "Run again without these"
                : fixed
                  ? "Run again with these fixed"
                  : begins
                    ? "Run again from here"
                    : "Run again"}
            </button>
          )}
          {!over && kept && fixed && (
            <button class="btn" type="button" onClick={() => void rerun(false)}>
              Run with these fixed
            </button>
          )}
          {kept && (
            <button class="btn" type="button" onClick={() => void rerun(false)}>
              Run a copy
            </button>
          )}
          {sheets && (
            <button class="btn" type="button" onClick={() => void change()}>
              Change numbers
            </button>
          )}
          {job.state === "succeeded" && <Share id={id} />}
          {over && <Delete id={id} />}
        </div>
      </div>
      <Phases job={job} now={now} />
      <div class="gap16">
        {live.lostUntil !== null && !over && <Lost live={live} />}
        {over && !kept && <p class="note">{NOT_KEPT}</p>}
        {wrong && <Notice kind="bad">{wrong}</Notice>}
        <div class="side">
          <div class="gap32">
            <Picture live={live} fixed={stays} toggle={toggle} />
            {live.result && <Answer live={live} told={told} excluded={excluded} exclude={setExcluded} />}
          </div>
          <aside class="gap32">
            <Proof live={live} told={told} now={now} />
            <Improvements live={live} told={told} />
            {live.result && <CertificateLines live={live} told={told} />}
          </aside>
        </div>
      </div>
    </>
  );
}

const took = (job: JobRecord): number =>
  (job.timings_ms.total ?? Object.values(job.timings_ms).reduce((sum, ms) => sum + ms, 0)) / 1000;

function Crumb({ job, title }: { job: JobRecord; title: string }) {
  const state = {
    queued: "Waiting",
    running: "Running",
    succeeded: job.termination === "infeasible" ? "Impossible" : job.termination === "stopped" ? "Stopped" : "Done",
    failed: "Failed",
    cancelled: "Cancelled",
  }[job.state];
  return (
    <p class="crumb">
      <span class={`state ${job.state === "running" ? "run" : job.state === "failed" ? "bad" : ""}`}>
        {job.state === "running" ? (
          <i class="dot live" />
        ) : (
          <Icon
            name={
              {
                queued: "clock",
                failed: "warn",
                succeeded: job.termination === "infeasible" ? "bar" : "check",
                cancelled: "stop",
              }[job.state]
            }
          />
        )}
        {state}
      </span>
      {title && <span>{title}</span>}
      <span>{sizeWords(job)}</span>
      {job.ran_on && <span class="wide">{job.device === "gpu" ? "GPU" : job.ran_on}</span>}
      {job.attempt > 1 && <span>attempt {job.attempt}</span>}
    </p>
  );
}

/** One sentence every ten seconds for those who listen. */
function Spoken({ text, over }: { text: string; over: boolean }) {
  const [said, setSaid] = useState("");
  useEffect(() => {
    if (over) return setSaid(text);
    const timer = setInterval(() => setSaid(text), 10_000);
    return () => clearInterval(timer);
  }, [over, text]);
  return (
    <p class="away" aria-live="polite">
      {said}
    </p>
  );
}

function Lost({ live }: { live: Live }) {
  const [since] = useState(() => new Date().toLocaleTimeString("en-GB"));
  const [left, setLeft] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setLeft(Math.max(0, Math.ceil((live.lostUntil! - performance.now()) / 1000))), 250);
    return () => clearInterval(timer);
  }, [live.lostUntil]);
  return (
    <Notice
      icon="line"
      action={
        <button class="btn small" type="button" onClick={live.again}>
          Try now
        </button>
      }
    >
      <b class="strong">No connection since {since}.</b> The job goes on without you. Trying again in {left} s.
    </Notice>
  );
}

function Expired({ id }: { id: string }) {
  return (
    <>
      <h1>This result has expired</h1>
      <p class="lede">
        The service keeps a result for a limited time. The job’s record is <span class="mono">{id}</span>.
      </p>
      <p>
        <a class="btn go" href="/solve">
          Solve again
        </a>
      </p>
    </>
  );
}

function Delete({ id }: { id: string }) {
  const [sure, setSure] = useState(false);
  const [wrong, setWrong] = useState("");
  const remove = () =>
    void send(`/v1/jobs/${id}`, { method: "DELETE" })
      .then(() => forgetNote(id))
      .then(
        () => go("/jobs"),
        (error) => setWrong(words(error)),
      );
  return (
    <>
      <button class="btn" type="button" onClick={() => (sure ? remove() : setSure(true))} onBlur={() => setSure(false)}>
        {sure ? "Delete for good" : "Delete"}
      </button>
      {wrong && <span role="alert">{wrong}</span>}
    </>
  );
}
