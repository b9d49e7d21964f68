/** The same words everywhere. */

import type { Job, Result } from "./api/types";

/** One formatter for each number of digits behind the point: making one takes 60 us, a number 2. */
const formats = Array.from(
  { length: 13 },
  (_, digits) => new Intl.NumberFormat("en-GB", { maximumFractionDigits: digits }),
);
const whole = formats[0]!;

/** A number as a person writes it: four digits of a fraction, all of a whole number. */
export function number(value: number, digits = 4): string {
  if (!Number.isFinite(value)) return value > 0 ? "∞" : value < 0 ? "−∞" : "–";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e12) return whole.format(value).replace("-", "−");
  if (size !== 0 && (size < 1e-4 || size >= 1e12)) return value.toExponential(2).replace("-", "−");
  const behind = Math.max(0, digits - Math.floor(Math.log10(size || 1)) - 1);
  return formats[Math.min(behind, 12)]!.format(value).replace("-", "−");
}

/** A floor is never said to be higher than it is. */
export function floorNumber(value: number, digits = 4): string {
  const size = Math.abs(value);
  if (!Number.isFinite(value) || Number.isInteger(value) || size === 0) return number(value, digits);
  const step = 10 ** Math.max(0, digits - Math.floor(Math.log10(size)) - 1);
  return number(Math.floor(value * step) / step, digits);
}

/** A bound beside its answer: as far from it as it is, but never below it by rounding alone. */
export function boundText(bound: number, objective: number | null, maximize: boolean): string {
  const same = objective != null && Math.abs(objective - bound) <= 1e-9 * Math.abs(objective);
  if (same) return number(objective);
  return maximize ? `${number(-floorOf(-bound))}` : floorNumber(bound);
}

const floorOf = (value: number): number => Number(floorNumber(value, 4).replaceAll(",", "").replace("−", "-"));

export const maximises = (job: { solver: string; options: Record<string, unknown> }): boolean =>
  job.solver === "auction" || job.options.maximize === true;

/**
 * Percent of the bound that the objective may be from the best, rounded up; null where that says nothing.
 *
 * The bound must be positive: beside zero a share has no meaning, and both numbers are said instead.
 */
export function gapPercent(objective: number | null | undefined, bound: number | null | undefined): number | null {
  if (objective == null || bound == null || !Number.isFinite(objective) || !Number.isFinite(bound)) return null;
  if (objective === bound) return 0;
  if (bound <= 0) return null;
  return (100 * Math.abs(objective - bound)) / bound;
}

/** A percentage, always rounded up: 2.21 is "2.3", 0.0041 is "0.0042", and nothing is said to be under 0.001. */
export function percentUp(percent: number): string {
  if (percent === 0) return "0";
  if (percent < 0.001) return "0.001";
  const places = percent >= 100 ? 0 : percent >= 1 ? 1 : 1 - Math.floor(Math.log10(percent));
  const step = 10 ** Math.min(places, 12);
  return String(Number((Math.ceil(Number((percent * step).toPrecision(12))) / step).toFixed(Math.min(places, 12))));
}

/** How good a running job's best is known to be. */
export function runningWords(objective: number | null, bound: number | null): string {
  if (objective == null) return "Looking for a first answer.";
  const percent = gapPercent(objective, bound);
  if (percent === 0) return "The best possible; the certificate is being checked.";
  if (percent !== null) return `Within ${percentUp(percent)}% of the best possible, and the proof goes on.`;
  if (bound == null) return "No proof yet of how good this is.";
  return `Found ${number(objective)}; the best possible is not beyond ${number(bound)}, and the proof goes on.`;
}

/** Whether what is called the best has a bound beside it that differs by rounding alone, both being next to nothing. */
export const byRounding = (result: Result): boolean => result.termination === "optimal" && result.solver === "gromov";

/** How good a finished answer is, and why it ended. */
export function doneWords(result: Result): string {
  const { objective } = result;
  const { bound, facts } = result.certificate;
  if (result.termination === "infeasible") return "Impossible; proved.";
  const percent = gapPercent(objective, bound);
  const before =
    {
      time_limit: "Stopped at your limit; the best so far is kept. ",
      stopped: "Stopped by you; the best so far is kept. ",
    }[result.termination] ?? "";
  if (result.termination === "optimal") {
    if (percent === 0 && !facts?.exhausted) return "The best possible; proved.";
    return (percent !== null && percent < 1e-7) || byRounding(result)
      ? "The best possible; proved, up to rounding."
      : "The best possible; all others ruled out.";
  }
  if (percent === 0) return `${before}The best possible; proved.`;
  if (percent !== null && percent <= 100) return `${before}Within ${percentUp(percent)}% of the best possible; proved.`;
  if (bound == null || objective == null) return `${before}No proof of how good this is.`;
  return `${before}Found ${number(objective)}; the best possible is not beyond ${boundText(bound, objective, bound > objective)}; proved.`;
}

/** How many jobs are taken before a waiting one; the one that is taken next has place 1. */
export const jobsAhead = (job: Job): number => Math.max(0, (job.queue_position ?? 1) - 1);

/** The same in a list, shorter. */
export function listWords(job: Job, objective: number | null, bound: number | null): string {
  if (job.state === "queued") {
    const ahead = jobsAhead(job);
    return ahead === 0 ? "starts next" : ahead === 1 ? "one job ahead" : `${ahead} jobs ahead`;
  }
  if (job.state === "failed") return job.error?.detail ?? "a fault of ours; your file is kept";
  if (job.state === "cancelled") return "cancelled before it began";
  if (job.termination === "infeasible") return "impossible; proved";
  const percent = gapPercent(objective, bound);
  if (job.state === "running") return percent === null ? "no proof yet" : `within ${percentUp(percent)}% so far`;
  if (job.termination === "optimal" || percent === 0) return "the best possible; proved";
  if (percent === null || percent > 100)
    return bound == null ? "no proof of how good" : `not beyond ${number(bound)}; proved`;
  return `within ${percentUp(percent)}%; proved`;
}

/** Seconds as people say them. */
export function seconds(value: number): string {
  if (value < 0.001) return "< 1 ms";
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 9.95) return `${Number(value.toPrecision(2))} s`;
  if (value < 59.5) return `${Math.round(value)} s`;
  if (value < 3600 && Math.round(value) % 60 === 0) return `${Math.round(value / 60)} min`;
  return value < 3600 ? `${clock(value)} min` : `${Number((value / 3600).toFixed(1))} h`;
}

/** Seconds as a clock: 1:04. */
export function clock(value: number): string {
  const total = Math.max(0, Math.floor(value));
  return `${Math.floor(total / 60)}:${String(total % 60).padStart(2, "0")}`;
}

export function bytes(value: number): string {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let step = 0;
  while (value >= 1000 && step < units.length - 1) [value, step] = [value / 1000, step + 1];
  return `${Number(value.toPrecision(value < 10 ? 2 : 3))} ${units[step]}`;
}

export const PROBLEMS: Record<string, { tab: string; under: string; action: string }> = {
  lap: { tab: "Assign", under: "people to jobs, one each", action: "Find the best assignment" },
  auction: { tab: "Match sparse", under: "only some pairs are allowed", action: "Find the best matching" },
  uot: { tab: "Transport", under: "amounts from here to there", action: "Find the cheapest plan" },
  qap: { tab: "Layout", under: "departments into rooms", action: "Find a better layout" },
  barycenter: { tab: "Average", under: "one shape between several", action: "Find the average" },
  gromov: { tab: "Align", under: "two spaces by their distances", action: "Find what goes with what" },
};

export const plural = (count: number, word: string): string => {
  if (count === 1) return `${whole.format(count)} ${word}`;
  return `${whole.format(count)} ${/(s|x|ch|sh)$/.test(word) ? `${word}es` : /[^aeiou]y$/.test(word) ? `${word.slice(0, -1)}ies` : `${word}s`}`;
};

/** "Layout, 30 departments": what a job is about, from its inputs alone. */
export function sizeWords(job: Job): string {
  const shapes = Object.values(job.input_digests).map((input) =>
    "csr" in input ? input.csr.shape : (input.shape ?? []),
  );
  const kind = PROBLEMS[job.solver]?.tab ?? job.solver;
  if (job.solver === "qap") return `${kind}, ${plural(shapes[0]?.[0] ?? 0, "place")}`;
  const [x, y] = ["x", "y"].map((name) => job.input_digests[name] ?? job.input_digests[`${name}_distance`]);
  const sizes = job.input_digests.sizes;
  if (x && y && sizes && !("csr" in sizes)) return `${kind}, ${plural(sizes.shape?.[0] ?? 0, "problem")}`;
  if (x && y && !("csr" in x) && !("csr" in y))
    return `${kind}, ${whole.format(x.shape?.[0] ?? 0)} × ${whole.format(y.shape?.[0] ?? 0)}`;
  const matrix = shapes.find((shape) => shape.length >= 2) ?? [];
  return `${kind}, ${matrix.map((extent) => whole.format(extent)).join(" × ")}`;
}
