import { useState } from "preact/hooks";
import type { Job } from "../../api/types";
import type { Moment } from "../../charts/curve";
import { exchanges } from "../../charts/plan";
import { Curve } from "../../parts/Curve";
import { Seg } from "../../parts/forms";
import { useKeys } from "../../shell/keys";
import { maximises, number, seconds } from "../../words";
import type { Better } from "./history";
import type { Live } from "./live";
import type { Told } from "./told";

export function Proof({ live, told, now }: { live: Live; told: Told; now: number }) {
  const [log, setLog] = useState(true);
  useKeys({ l: () => setLog((on) => !on) }, []);
  const job = live.job!;
  const moments = withEnd(live, told);
  if (!moments.some((one) => one.objective != null || one.bound != null)) return null;
  const solved = (live.job!.timings_ms.solve ?? 0) / 1000;
  const end = live.result ? Math.max(now, solved, moments.at(-1)!.at) : (job.time_limit_s ?? 60);
  return (
    <section class="gap8">
      <div class="head">
        <h2>Answer and proof</h2>
        <span class="end">
          <Seg
            name="scale"
            legend="Scale of time"
            tiny
            value={log ? "log" : "linear"}
            options={[
              ["log", "log"],
              ["linear", "linear"],
            ]}
            change={(value) => setLog(value === "log")}
          />
        </span>
      </div>
      <p class="note fine">{told.unit ? `${told.unit} ${told.measure}` : told.measure}, against time</p>
      <Curve
        moments={moments}
        now={now}
        end={end}
        log={log}
        today={told.today}
        factor={told.factor}
        maximize={maximises(job)}
      />
    </section>
  );
}

/** The last word is the certificate's: its objective and bound close both staircases. */
function withEnd(live: Live, told: Told): Moment[] {
  if (!live.result || told.objective == null) return live.moments;
  const timings = live.result.timings_ms;
  const at = Math.max(
    live.moments.at(-1)?.at ?? 0,
    ((timings.load ?? 0) + (timings.solve ?? 0) + (timings.certify ?? 0)) / 1000,
  );
  return [...live.moments, { at, objective: told.objective, bound: told.bound }];
}

export function Improvements({ live, told }: { live: Live; told: Told }) {
  const list = live.betters;
  if (list.length < 2) return null;
  const shown = list.slice(-6).reverse();
  return (
    <section class="gap8">
      <div class="head">
        <h2>Improvements</h2>
        <span class="note small">
          {number(live.improved)}
          {live.result ? "" : " so far"}
        </span>
      </div>
      <table class="data better small">
        <thead>
          <tr>
            <th scope="col">at</th>
            <th scope="col">changed</th>
            <th scope="col" class="right">
              {told.unit || told.measure}
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((one, at) => (
            <tr class={at === 0 ? "first" : ""}>
              <td>{seconds(one.at)}</td>
              <td>
                {changed(list, list.length - 1 - at, live) ||
                  better(one.objective, list[list.length - 2 - at]?.objective ?? one.objective, told.factor)}
              </td>
              <td class="right">{number(one.objective * told.factor)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

/** By how much, unless that is next to nothing. */
function better(now: number, before: number, factor: number): string {
  const by = Math.abs(now - before);
  if (by === 0) return "where it began";
  return by < 1e-5 * Math.abs(now) ? "a little better" : `${number(by * factor)} better`;
}

/** "Dermatology ↔ Records", where both layouts are known. */
function changed(list: Better[], at: number, live: Live): string {
  const [before, after] = [list[at - 1]?.permutation ?? (at === 0 ? live.note?.today : null), list[at]?.permutation];
  if (!before || !after) return at === 0 ? "the first answer" : "";
  const cycles = exchanges(before, after);
  const names = (cycle: number[]) => cycle.map((i) => live.note?.rows?.[i] ?? `${i + 1}`).join(" ↔ ");
  const count = cycles.reduce((sum, cycle) => sum + cycle.length, 0);
  if (cycles.length === 1 && count <= 3) return names(cycles[0]!);
  return count ? `${count} at once` : "";
}

const PHASES = [
  ["load", "Read"],
  ["solve", "Search and prove"],
  ["certify", "Check the certificate"],
  ["store", "Save"],
] as const;

/** Where the job is, the certificate included: a proof is work too. */
export function Phases({ job, now }: { job: Job; now: number }) {
  const over = !["queued", "running"].includes(job.state);
  const phase = job.progress?.phase ?? "load";
  const at = over ? 4 : job.state === "queued" ? -1 : PHASES.findIndex(([name]) => name === phase);
  const fraction = (k: number): number => {
    if (k !== at) return k < at ? 1 : 0;
    if (job.progress?.fraction != null) return job.progress.fraction;
    return k === 1 && job.time_limit_s ? Math.min(1, now / job.time_limit_s) : 0.5;
  };
  const took = (name: string): string => {
    const ms = job.timings_ms[name];
    return ms != null ? seconds(ms / 1000) : "";
  };
  return (
    <ol class="phases" aria-label="Phases of the job">
      {PHASES.map(([name, label], k) => (
        <li class={k <= at ? "on" : ""} aria-current={k === at ? "step" : undefined}>
          <svg preserveAspectRatio="none" viewBox="0 0 100 4" aria-hidden="true">
            <rect class="f-line" width="100" height="4" rx="2" />
            {fraction(k) > 0 && <rect class="f-accent" width={100 * fraction(k)} height="4" />}
          </svg>
          <span>
            {label}
            <small>{took(name)}</small>
          </span>
        </li>
      ))}
    </ol>
  );
}
