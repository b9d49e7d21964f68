/** What a job comes to, in one sentence and in numbers of a person's unit. */

import { isKept } from "../../api/copies";
import type { Note } from "../../api/notes";
import type { Job, Result } from "../../api/types";
import { walked } from "../../charts/plan";
import {
  boundText,
  doneWords,
  gapPercent,
  jobsAhead,
  maximises,
  number,
  percentUp,
  plural,
  PROBLEMS,
  runningWords,
} from "../../words";
import type { Live } from "./live";
import { tooFewWords } from "./table";

export interface Told {
  objective: number | null;
  bound: number | null;
  factor: number;
  unit: string;
  measure: string;
  today: number | null;
  /** Of a layout whose places cost something too: the ways alone. */
  way: number | null;
  headline: string;
  lede: string;
}

export function value(told: { factor: number; unit: string }, raw: number): string {
  return `${number(raw * told.factor)}${told.unit ? ` ${told.unit}` : ""}`;
}

export function measureOf(job: Job, note: Note | null): { factor: number; unit: string; measure: string } {
  if (note) return { factor: note.factor, unit: note.unit, measure: note.measure };
  const measure =
    {
      qap: "total way",
      uot: "cost of moving",
      barycenter: "cost of moving",
      auction: "total worth",
      gromov: "mean squared difference",
    }[job.solver] ?? (maximises(job) ? "total worth" : "total cost");
  return { factor: 1, unit: "", measure };
}

/** What is walked in today's layout. */
function todayOf(live: Live): number | null {
  const { note, inputs, job } = live;
  const today = note?.today ?? (job?.solver === "qap" && inputs.permutation0 ? [...inputs.permutation0.values] : null);
  return today ? wayOf(live, today) : null;
}

function wayOf({ inputs }: Live, permutation: number[]): number | null {
  return inputs.flow && inputs.distance ? walked(inputs.flow.values, inputs.distance.values, permutation) : null;
}

export function tell(live: Live): Told {
  const job = live.job!;
  const { result, note } = live;
  const measure = measureOf(job, note);
  const objective = result ? result.objective : (job.progress?.objective ?? null);
  const bound = result ? result.certificate.bound : (job.progress?.bound ?? null);
  const today = todayOf(live);
  const told: Told = { objective, bound, ...measure, today, way: null, headline: "", lede: "" };
  if (live.inputs.linear && result?.permutation) told.way = wayOf(live, result.permutation);
  told.headline = headline(job, result, told);
  told.lede = lede(live, job, result, told);
  return told;
}

function headline(job: Job, result: Result | null, told: Told): string {
  if (job.state === "failed") return "This job failed, and it was our fault";
  if (job.state === "cancelled") return "Cancelled before there was an answer";
  if (result?.termination === "infeasible") return "No answer exists";
  if (told.objective == null)
    return job.state === "queued"
      ? "Waiting for a worker"
      : job.state === "succeeded"
        ? "Done"
        : "Looking for a first answer";
  if (told.way == null && job.input_digests.linear)
    return `${value(told, told.objective)} ${told.measure}, moves counted`;
  const way = told.way ?? told.objective;
  const sum = `${value(told, way)} ${told.measure}`;
  if (told.today == null || told.today <= 0) return sum;
  const saved = (100 * (told.today - way)) / told.today;
  if (Math.abs(saved) < 0.05) return `${sum}, as today`;
  return `${sum}, ${Math.abs(saved).toFixed(1)}% ${saved > 0 ? "less" : "more"} than today`;
}

function lede(live: Live, job: Job, result: Result | null, told: Told): string {
  const again = isKept(job) ? " Your file is kept: run it again." : "";
  if (job.state === "failed") return `${job.error?.detail ?? "Something broke."}${again}`;
  if (job.state === "cancelled") return `Nothing was solved.${again}`;
  if (job.state === "queued")
    return jobsAhead(job)
      ? `${plural(jobsAhead(job), "job")} ${jobsAhead(job) === 1 ? "is" : "are"} ahead of it.`
      : "It starts as soon as a worker is free.";
  if (result?.termination === "infeasible")
    return `Impossible; proved. ${tooFewWords(live) || result.certificate.proved}`;
  const counted =
    told.way != null && told.objective != null ? `${value(told, told.objective)} with what the places cost. ` : "";
  const first = counted + (result ? doneWords(result) : runningWords(told.objective, told.bound));
  const second = floorWords(job, told);
  return second && !/best possible([;,.] ?(proved|all)| is not beyond)/i.test(first) ? `${first} ${second}` : first;
}

/** The floor as something that nobody can get under. */
function floorWords(job: Job, told: Told): string {
  if (told.bound == null || told.objective === told.bound) return "";
  const bound = `${boundText(told.bound * told.factor, (told.objective ?? NaN) * told.factor, maximises(job))}${told.unit ? ` ${told.unit}` : ""}`;
  if (job.solver === "qap")
    return told.bound > 0 ? `However these places are filled, nobody can get below ${bound}.` : "";
  const percent = gapPercent(told.objective, told.bound);
  if (percent !== null && percent < 0.01) return "";
  return maximises(job) ? `Nobody can get above ${bound}.` : `Nobody can get below ${bound}.`;
}

export const kindWords = (job: Job): string => PROBLEMS[job.solver]?.tab ?? job.solver;
export const percentWords = (told: Told): string => {
  const percent = gapPercent(told.objective, told.bound);
  return percent === null ? "" : `${percentUp(percent)}%`;
};
