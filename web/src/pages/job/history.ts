/** What a page remembers of a job that may run for days: what its pictures can show, and no more. */

import type { Progress } from "../../api/types";
import type { Moment } from "../../charts/curve";

export interface Better {
  at: number;
  objective: number;
  permutation: number[] | null;
}

export interface History {
  moments: Moment[];
  /** The latest improvements, each with its answer. */
  betters: Better[];
  /** How many there have been. */
  improved: number;
}

export const NOTHING: History = { moments: [], betters: [], improved: 0 };

/** An improvement is drawn at most twice a second. */
export const DRAWN_EVERY_MS = 500;
/** The list shows six, each beside the one before it. */
export const KEPT = 8;
/**
 * Moments closer than this share of their time are one: half a pixel of the curve, on either scale of time.
 *
 * An hour from the first millisecond on then holds 7,600 moments at most, a week 10,100.
 */
export const CLOSE = 0.002;

export function extended(before: History, reports: Progress[]): History {
  const moments = [...before.moments];
  const betters = [...before.betters];
  let { improved } = before;
  for (const { elapsed_s: at, objective, bound, permutation } of reports) {
    const last = moments.at(-1);
    if (last?.objective !== objective || last?.bound !== bound) {
      if (moments.length > 1 && at - moments.at(-2)!.at < CLOSE * at) moments.pop();
      moments.push({ at, objective, bound });
    }
    if (objective == null || betters.at(-1)?.objective === objective) continue;
    betters.push({ at, objective, permutation: permutation ?? null });
    improved += 1;
    if (betters.length > KEPT) betters.shift();
  }
  return { moments, betters, improved };
}

/** The best answer so far that a report carried: the place of each facility, or the column of each row. */
export function shown(betters: Better[]): number[] | null {
  return betters.findLast((one) => one.permutation)?.permutation ?? null;
}
