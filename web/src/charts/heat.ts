/** Which of sixteen colours a cell gets. */

import type { Heat } from "../api/types";

export const STEPS = 16;
export const ZERO = -1;
export const NONE = -2;

/**
 * -2: nothing there, -1: zero, else 0 to 15. Counts are shown by their square roots, or one large one hides the rest.
 *
 * `most` is the largest value of all pictures that share one scale; for counts their lowest colour then is zero's.
 */
export function levels(values: (number | null)[], counts: boolean, most = -Infinity): Int8Array {
  const finite = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (Number.isFinite(most)) finite.push(most);
  let low = Infinity,
    high = -Infinity;
  const nothing = counts ? threshold(finite) : 0;
  for (const value of finite) {
    if (counts && value <= nothing && value >= 0) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (counts && Number.isFinite(most)) low = Math.min(0, low);
  const bend = counts && low >= 0 ? Math.sqrt : (value: number) => value;
  const [from, to] = [bend(low), bend(high)];
  return Int8Array.from(values, (value) => {
    if (value === null || !Number.isFinite(value)) return NONE;
    if (counts && value <= nothing && value >= 0) return ZERO;
    if (!(to > from)) return Math.floor(STEPS / 2);
    return Math.min(STEPS - 1, Math.max(0, Math.floor(((bend(value) - from) / (to - from)) * STEPS)));
  });
}

/** So little beside the largest that it is drawn as nothing. */
const threshold = (values: number[]): number => 1e-5 * values.reduce((a, b) => Math.max(a, b), 0);

/** Values at the left, middle and right of the scale beside the picture. */
export function scaleLabels(
  values: (number | null)[],
  counts: boolean,
  most = -Infinity,
): [number, number, number] | null {
  const all = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (Number.isFinite(most)) return [0, counts ? most / 4 : most / 2, most];
  const nothing = counts ? threshold(all) : 0;
  const finite = all.filter((value) => !(counts && value <= nothing && value >= 0));
  if (!finite.length) return null;
  const [low, high] = [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))];
  const middle = counts && low >= 0 ? ((Math.sqrt(low) + Math.sqrt(high)) / 2) ** 2 : (low + high) / 2;
  return [low, middle, high];
}

const MOST = 96;

/** A matrix that is here, or a part of it, as the service would draw it: means over blocks, and the sums at the edges. */
export function heatOf(
  matrix: number[][],
  part: { top: number; bottom: number; left: number; right: number } | null,
): Heat & { shape: [number, number] } {
  const shape: [number, number] = [matrix.length, matrix[0]?.length ?? 0];
  const { top, bottom, left, right } = part ?? { top: 0, bottom: shape[0], left: 0, right: shape[1] };
  const [high, wide] = [Math.ceil((bottom - top) / MOST), Math.ceil((right - left) / MOST)];
  const [height, width] = [Math.ceil((bottom - top) / high), Math.ceil((right - left) / wide)];
  const sums = new Array<number>(height * width).fill(0);
  const counts = new Array<number>(height * width).fill(0);
  const rows = new Array<number>(height).fill(0);
  const columns = new Array<number>(width).fill(0);
  for (let i = top; i < bottom; i++)
    for (let j = left; j < right; j++) {
      const [a, b] = [Math.floor((i - top) / high), Math.floor((j - left) / wide)];
      const value = matrix[i]![j]!;
      sums[a * width + b]! += value;
      counts[a * width + b]! += 1;
      rows[a]! += value;
      columns[b]! += value;
    }
  return { shape, height, width, values: sums.map((sum, at) => sum / counts[at]!), rows, columns };
}
