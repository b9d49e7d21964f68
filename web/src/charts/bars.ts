/** The proof bar and the strip: how far an answer is from the best possible. */

import { linear } from "./scale";

/** Percent to a place from 0 (100% or no proof) to 1 (the best): log, with the last stretch kept for "best". */
export function proofPlace(percent: number | null): number {
  if (percent === null) return 0;
  if (percent <= 0) return 1;
  const place = (2 - Math.log10(percent)) / 4; // 100% -> 0, 0.01% -> 1
  return 0.9 * Math.min(1, Math.max(0, place));
}

export interface StripShape {
  floor: number | null;
  found: number;
  today: number | null;
}

/** Less than this share of the values themselves is no distance: it would fill the whole line with next to nothing. */
const LEAST = 1e-3;

/** Places of floor, found and today on one line that all strips of a table share. */
export function strips(
  rows: { floor: number | null; found: number }[],
  today: number | null,
  width: number,
): { shapes: StripShape[]; low: number; high: number } {
  const values = rows.flatMap((row) => [row.found, ...(row.floor == null ? [] : [row.floor])]);
  if (today != null) values.push(today);
  const known = values.filter(Number.isFinite); // what is impossible comes to no number
  const [min, max] = known.length ? [Math.min(...known), Math.max(...known)] : [0, 0];
  const spread = Math.max(max - min, LEAST * Math.max(Math.abs(min), Math.abs(max))) || 1;
  const pad = 0.06 * spread + (spread - (max - min)) / 2;
  const [low, high] = [min - pad, max + pad];
  const x = linear([low, high], [0, width]);
  const shapes = rows.map((row) => ({
    floor: row.floor == null ? null : x(row.floor),
    found: x(row.found),
    today: today == null ? null : x(today),
  }));
  return { shapes, low, high };
}
