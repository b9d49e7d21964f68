/** Which of sixteen colours a cell gets. */

export const STEPS = 16;
export const ZERO = -1;
export const NONE = -2;

/** -2: nothing there, -1: zero, else 0 to 15. Counts are shown by their square roots, or one large one hides the rest. */
export function levels(values: (number | null)[], counts: boolean): Int8Array {
  const finite = values.filter((value): value is number => value !== null && Number.isFinite(value));
  let low = Infinity,
    high = -Infinity;
  const nothing = counts ? threshold(finite) : 0;
  for (const value of finite) {
    if (counts && value <= nothing && value >= 0) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
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
export function scaleLabels(values: (number | null)[], counts: boolean): [number, number, number] | null {
  const all = values.filter((value): value is number => value !== null && Number.isFinite(value));
  const nothing = counts ? threshold(all) : 0;
  const finite = all.filter((value) => !(counts && value <= nothing && value >= 0));
  if (!finite.length) return null;
  const [low, high] = [finite.reduce((a, b) => Math.min(a, b)), finite.reduce((a, b) => Math.max(a, b))];
  const middle = counts && low >= 0 ? ((Math.sqrt(low) + Math.sqrt(high)) / 2) ** 2 : (low + high) / 2;
  return [low, middle, high];
}
