/** Answer and proof against time: two staircases and what lies between them. */

import { apart, decades, linear, log, type Scale, ticks } from "./scale";

export interface Moment {
  at: number;
  objective: number | null;
  bound: number | null;
}

export interface Step {
  at: number;
  value: number;
}

export interface CurveShape {
  found: string;
  floor: string;
  between: string;
  x: Scale;
  y: Scale;
  xTicks: number[];
  yTicks: number[];
  last: { found: Step | null; floor: Step | null };
  bottom: number;
}

export const FIRST_S = 0.001;
/** Pixels that "10 ms" takes, and a little air. */
const LABEL = 46;

/** The changes of one series, in order of time, each value once. */
export function steps(moments: Moment[], pick: "objective" | "bound"): Step[] {
  const found: Step[] = [];
  for (const moment of moments) {
    const value = moment[pick];
    if (value == null || !Number.isFinite(value)) continue;
    if (found.at(-1)?.value !== value) found.push({ at: Math.max(moment.at, FIRST_S), value });
  }
  return found;
}

/** A staircase: level until the next change, never a slope. */
export function staircase(series: Step[], end: number, x: Scale, y: Scale): string {
  if (!series.length) return "";
  const parts = [`M${round(x(series[0]!.at))} ${round(y(series[0]!.value))}`];
  for (const step of series.slice(1)) parts.push(`H${round(x(step.at))}V${round(y(step.value))}`);
  parts.push(`H${round(x(end))}`);
  return parts.join("");
}

/**
 * The shape of the picture.
 *
 * A floor far below the answers would press them flat: it is then drawn at the bottom edge, where it enters.
 */
export function curve(
  moments: Moment[],
  now: number,
  end: number,
  box: { width: number; height: number },
  options: { log: boolean; today: number | null },
): CurveShape {
  const found = steps(moments, "objective");
  const floor = steps(moments, "bound");
  const values = [...found.map((step) => step.value), ...(options.today == null ? [] : [options.today])];
  const best = found.at(-1)?.value ?? floor.at(-1)?.value ?? 0;
  const lastFloor = floor.at(-1)?.value;
  const shown = values.length ? values : [best];
  let [low, high] = [Math.min(...shown), Math.max(...shown)];
  const spread = Math.max(high - low, Math.abs(best) * 0.02, 1e-12);
  if (lastFloor != null) {
    low = Math.min(low, Math.max(lastFloor, best - 6 * spread));
    high = Math.max(high, Math.min(lastFloor, best + 6 * spread));
  }
  const pad = Math.max(0.06 * (high - low), Math.abs(best) * 0.004, 1e-12);
  [low, high] = [low - pad, high + pad];
  const begin = options.log ? FIRST_S : 0;
  const until = Math.max(end, now, options.log ? 0.01 : 0.001);
  const x = (options.log ? log : linear)([begin, until], [0, box.width]);
  const free = linear([low, high], [box.height, 0]);
  const y: Scale = (value) => Math.min(box.height, Math.max(0, free(value)));
  const tail = Math.min(Math.max(now, found.at(-1)?.at ?? 0, floor.at(-1)?.at ?? 0), until);
  return {
    found: staircase(found, tail, x, y),
    floor: staircase(floor, tail, x, y),
    between: band(found, floor, tail, x, y),
    x,
    y,
    xTicks: apart(options.log ? decades(begin, until) : ticks(0, until, 4), x, LABEL),
    yTicks: ticks(low, high, 4),
    last: { found: found.at(-1) ?? null, floor: floor.at(-1) ?? null },
    bottom: low,
  };
}

/** The ground between both staircases, from where both exist. */
function band(found: Step[], floor: Step[], end: number, x: Scale, y: Scale): string {
  if (!found.length || !floor.length) return "";
  const begin = Math.max(found[0]!.at, floor[0]!.at);
  const over = from(found, begin),
    under = from(floor, begin);
  const forth = staircase(over, end, x, y);
  let back = "";
  for (let i = under.length - 1; i >= 0; i--)
    back += `${i === under.length - 1 ? "L" : "H"}${round(x(i === under.length - 1 ? end : under[i + 1]!.at))}${i === under.length - 1 ? " " : "V"}${round(y(under[i]!.value))}`;
  return `${forth}${back}H${round(x(begin))}Z`;
}

function from(series: Step[], begin: number): Step[] {
  const before = series.filter((step) => step.at <= begin).at(-1);
  const after = series.filter((step) => step.at > begin);
  return before ? [{ at: begin, value: before.value }, ...after] : after;
}

export const round = (value: number): number => Math.round(value * 10) / 10;
