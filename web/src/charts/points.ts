/** Points of two sets in one box, and lines between those that belong together. */

export type Place = [number, number];

/** Both sets scaled by the same factor into width x height, y upwards as on a map. */
export function fit(
  one: number[][],
  other: number[][],
  width: number,
  height: number,
  margin = 10,
): { one: Place[]; other: Place[] } {
  const all = [...one, ...other];
  const xs = all.map((row) => row[0] ?? 0),
    ys = all.map((row) => row[1] ?? 0);
  const low = [min(xs), min(ys)] as const,
    high = [max(xs), max(ys)] as const;
  const scale = Math.min(
    (width - 2 * margin) / (high[0] - low[0] || 1),
    (height - 2 * margin) / (high[1] - low[1] || 1),
  );
  const [dx, dy] = [(width - scale * (high[0] - low[0])) / 2, (height - scale * (high[1] - low[1])) / 2];
  const place = (row: number[]): Place => [
    dx + ((row[0] ?? 0) - low[0]) * scale,
    height - dy - ((row[1] ?? 0) - low[1]) * scale,
  ];
  return { one: one.map(place), other: other.map(place) };
}

const min = (values: number[]): number => values.reduce((a, b) => Math.min(a, b), Infinity);
const max = (values: number[]): number => values.reduce((a, b) => Math.max(a, b), -Infinity);

export function longest(one: Place[], other: Place[], assignment: ArrayLike<number>): number {
  let [best, length] = [-1, -1];
  for (let i = 0; i < one.length; i++) {
    const j = assignment[i]!;
    if (j < 0 || !other[j]) continue;
    const far = Math.hypot(one[i]![0] - other[j]![0], one[i]![1] - other[j]![1]);
    if (far > length) [best, length] = [i, far];
  }
  return best;
}

/** Rows in the order of the columns that they got: an assignment is then a rising staircase of dots. */
export function sortedRows(assignment: ArrayLike<number>): number[] {
  return Array.from({ length: assignment.length }, (_, i) => i).sort((a, b) => assignment[a]! - assignment[b]!);
}
