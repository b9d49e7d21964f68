import { Fragment } from "preact";
import { get, Refused } from "../../api/http";
import { type Note, noteOf } from "../../api/notes";
import type { Job, Result } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { ProofBar } from "../../parts/ProofBar";
import { clock, gapPercent, listWords, number, seconds, sizeWords } from "../../words";
import { measureOf } from "../job/told";

interface Ends {
  objective: number | null;
  bound: number | null;
}

/** Answers of jobs that ended: what one has reported last may lie far from what it found in the end. */
const ends = new Map<string, Ends>();

const NONE: Ends = { objective: null, bound: null };

export const notes = new Map<string, Note | null>();

export async function learn(job: Job): Promise<void> {
  if (!notes.has(job.id)) notes.set(job.id, await noteOf(job.id, job.noted));
  if (job.state !== "succeeded" || ends.has(job.id)) return;
  try {
    const { certificate, objective } = await get<Result>(`/v1/jobs/${job.id}/result?arrays=false`);
    ends.set(job.id, { objective, bound: certificate.bound });
  } catch (error) {
    if (error instanceof Refused && [404, 410].includes(error.status)) ends.set(job.id, NONE); // gone in between
  }
}

/** Those that wait or run come first. */
export const open = (jobs: Job[]): Job[] =>
  [...jobs].sort((a, b) => Number(group(b) === "Running now") - Number(group(a) === "Running now"));

function group(job: Job): string {
  if (["queued", "running"].includes(job.state)) return "Running now";
  const days = Math.floor((new Date().setHours(24, 0, 0, 0) - Date.parse(job.created_at)) / 86_400_000);
  return days === 0
    ? "Today"
    : days === 1
      ? "Yesterday"
      : new Date(job.created_at).toLocaleDateString("en-GB", { day: "numeric", month: "long" });
}

export function Table({
  jobs,
  chosen,
  toggle,
  cursor,
}: {
  jobs: Job[];
  chosen: Set<string>;
  toggle: (id: string) => void;
  cursor: number;
}) {
  return (
    <table class="jobs">
      <thead>
        <tr>
          <td class="pick" />
          <th scope="col">Job</th>
          <th scope="col">State</th>
          <th scope="col" class="right">
            Answer
          </th>
          <th scope="col">Proved to be</th>
          <th scope="col" class="right">
            Took
          </th>
          <th scope="col" class="right">
            Started
          </th>
        </tr>
      </thead>
      <tbody>
        {jobs.map((job, at) => (
          <Fragment key={job.id}>
            {(at === 0 || group(jobs[at - 1]!) !== group(job)) && (
              <tr class="group">
                <th colSpan={7} scope="rowgroup">
                  {group(job)}
                </th>
              </tr>
            )}
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
  const { objective = null, bound = null } = job.state === "succeeded" ? (end ?? NONE) : (job.progress ?? NONE);
  const { factor, unit, measure } = measureOf(job, note);
  const running = job.state === "running";
  const tookS = job.started_at
    ? ((job.ended_at ? Date.parse(job.ended_at) : Date.now()) - Date.parse(job.started_at)) / 1000
    : null;
  const ready = job.state === "succeeded" && job.termination !== "infeasible";
  return (
    <tr id={`job-${job.id}`} class={`${on ? "on" : ""}${cursor ? " cursor" : ""}`}>
      <td class="pick">
        <label>
          <input
            class="check"
            type="checkbox"
            checked={on}
            onChange={toggle}
            aria-label={`Choose ${title}, ${job.id.slice(0, 8)}`}
          />
        </label>
      </td>
      <th scope="row">
        <a href={`/jobs/${job.id}`}>
          <b>{title}</b>
          <span class="sub">{note?.title ? sizeWords(job) : job.id.slice(0, 8)}</span>
        </a>
      </th>
      <td>
        <State job={job} />
      </td>
      <td class="right ans">
        {(running || ready) && objective != null && (
          <>
            <b>
              {number(objective * factor)}
              {unit && ` ${unit}`}
            </b>
            <span class="sub wide">
              {measure}
              {job.input_digests.linear ? ", moves counted" : ""}
            </span>
          </>
        )}
      </td>
      <td class="why">
        <div class="proof">
          {(running || (ready && end)) && (
            <ProofBar percent={job.termination === "optimal" ? 0 : capped(gapPercent(objective, bound))} />
          )}
          {(end || !ready) && <span class="small">{listWords(job, objective, bound)}</span>}
        </div>
      </td>
      <td class="right opt">
        {tookS != null &&
          (running ? `${clock(tookS)}${job.time_limit_s ? ` of ${clock(job.time_limit_s)}` : ""}` : seconds(tookS))}
      </td>
      <td class="right opt">
        {new Date(job.created_at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}
        <span class="sub">{job.ran_on?.replace(/^NVIDIA /, "") ?? ""}</span>
      </td>
    </tr>
  );
}

const capped = (percent: number | null): number | null => (percent !== null && percent > 100 ? null : percent);

function State({ job }: { job: Job }) {
  const [icon, word] =
    job.termination === "infeasible"
      ? ["bar", "Impossible"]
      : job.termination === "stopped"
        ? ["stop", "Stopped"]
        : (
            {
              queued: ["clock", "Waiting"],
              running: ["", "Running"],
              succeeded: ["check", "Done"],
              failed: ["warn", "Failed"],
              cancelled: ["stop", "Cancelled"],
            } as const
          )[job.state];
  return (
    <span class={`st ${job.state === "running" ? "run" : job.state === "failed" ? "bad" : ""}`}>
      {icon ? <Icon name={icon} /> : <i class="dot live" />}
      {word}
    </span>
  );
}
