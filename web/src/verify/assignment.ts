/** The certificate of an assignment, worked out again from the problem and the answer, without rounding. */

import { inUnits, toNumber, unitOf } from "./exact";

export interface Entry {
  row: number;
  column: number;
  value: number;
}

export interface Claim {
  rows: number;
  columns: number;
  /** Every allowed pair, row by row. */
  entries: Iterable<Entry>;
  values: ArrayLike<number>;
  assignment: ArrayLike<number>;
  /** One price a column: what it takes away from a cost (minimising) or from a benefit (maximising). */
  prices: ArrayLike<number>;
  maximize: boolean;
  /** What a row adds by staying free; null: every row must be assigned as far as there are columns. */
  reject: ArrayLike<number> | null;
}

export interface Verdict {
  lines: { text: string; holds: boolean; value?: string }[];
  objective: number | null;
  bound: number | null;
  holds: boolean;
  best: boolean;
}

/**
 * Check that nothing is used twice, add the answer up again, and bound every other answer by the prices.
 *
 * For prices p (at most zero on a column that may stay free, when minimising): no assignment costs less than
 * sum over rows of min(cost - p) plus the sum of p. Maximising is the mirror image.
 */
export function verifyAssignment(claim: Claim): Verdict {
  const { rows, columns, assignment, maximize } = claim;
  const lines: Verdict["lines"] = [];
  const used = new Set<number>();
  let [free, twice, outside] = [0, 0, 0];
  for (let i = 0; i < rows; i++) {
    const j = assignment[i]!;
    if (j < 0) free++;
    else if (j >= columns) outside++;
    else if (used.has(j)) twice++;
    else used.add(j);
  }
  const mayStay = claim.reject !== null;
  lines.push({
    text: "Every row has one column, and no column is used twice",
    holds: twice === 0 && outside === 0 && (mayStay || free === Math.max(0, rows - columns)),
    value: `${used.size} of ${rows}`,
  });
  const unit = unitOf(claim.values, claim.prices, claim.reject ?? []);
  const sign = maximize ? -1n : 1n;
  const price = Array.from({ length: columns }, (_, j) => sign * inUnits(finite(claim.prices[j]!), unit));
  const reject = claim.reject && Array.from({ length: rows }, (_, i) => sign * inUnits(claim.reject![i]!, unit));
  const least: (bigint | null)[] = Array.from({ length: rows }, (_, i) => reject?.[i] ?? null);
  const chosen: (bigint | null)[] = Array.from({ length: rows }, () => null);
  for (const { row, column, value } of claim.entries) {
    if (!Number.isFinite(value)) continue;
    const cost = sign * inUnits(value, unit);
    const reduced = cost - price[column]!;
    if (least[row] === null || reduced < least[row]!) least[row] = reduced;
    if (assignment[row] === column) chosen[row] = cost;
  }
  let objective = 0n;
  let forbidden = 0;
  for (let i = 0; i < rows; i++) {
    if (assignment[i]! < 0) objective += reject?.[i] ?? 0n;
    else if (chosen[i] === null) forbidden++;
    else objective += chosen[i]!;
  }
  lines.push({ text: "Every pair is one that is allowed", holds: forbidden === 0 });
  const shown = toNumber(sign * objective, unit);
  lines.push({ text: "The sum, added up again without rounding", holds: forbidden === 0, value: String(shown) });
  const bound = lowerBound(least, price, rows, columns, mayStay);
  if (bound === null) {
    lines.push({ text: "No bound can be worked out for more rows than columns here", holds: true });
    return { lines, objective: shown, bound: null, holds: lines.every((line) => line.holds), best: false };
  }
  const holds = bound <= objective;
  lines.push({
    text: maximize ? "No other answer can be worth more than" : "No other answer can cost less than",
    holds,
    value: String(toNumber(sign * bound, unit)),
  });
  const gap = objective - bound;
  lines.push({
    text: gap === 0n ? "Both are the same number: the best possible" : "What is left between them",
    holds,
    value: String(toNumber(gap, unit)),
  });
  return {
    lines,
    objective: shown,
    bound: toNumber(sign * bound, unit),
    holds: lines.every((line) => line.holds),
    best: gap === 0n,
  };
}

/** In minimising form. A column that may stay free must not add to the bound: its price is cut at zero. */
function lowerBound(
  least: (bigint | null)[],
  price: bigint[],
  rows: number,
  columns: number,
  mayStay: boolean,
): bigint | null {
  if (rows > columns && !mayStay) return null;
  let [bound, slack] = [0n, 0n];
  for (const one of least) {
    if (one === null) return null;
    bound += one;
  }
  for (const one of price) {
    if (one > 0n && (rows !== columns || mayStay)) slack += one;
    bound += one;
  }
  return bound - slack;
}

const finite = (value: number): number => (Number.isFinite(value) ? value : 0);

export function* denseEntries(values: ArrayLike<number>, rows: number, columns: number): Iterable<Entry> {
  for (let row = 0; row < rows; row++)
    for (let column = 0; column < columns; column++) yield { row, column, value: values[row * columns + column]! };
}

export function* sparseEntries(
  indptr: ArrayLike<number>,
  indices: ArrayLike<number>,
  values: ArrayLike<number>,
): Iterable<Entry> {
  for (let row = 0; row + 1 < indptr.length; row++)
    for (let at = indptr[row]!; at < indptr[row + 1]!; at++) yield { row, column: indices[at]!, value: values[at]! };
}
