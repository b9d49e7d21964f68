/** Plans of several transports, as matrices, and where they differ. */

import type { Matrix } from "../../api/npy";
import type { Input, Reference, Result } from "../../api/types";

const FETCHED_MOST = 4_000_000;
const SHOWN = 100;

/** A plan as rows: as it came, or fetched where the answer only refers to it; null where it is none or too large. */
export async function planOf(
  plan: Result["plan"],
  fetch: (input: Input) => Promise<Matrix | null>,
): Promise<number[][] | null> {
  if (!plan) return null;
  if (Array.isArray(plan)) return Array.isArray(plan[0]) ? plan : null;
  const [rows = 0, columns = 0] = (plan as Reference).shape ?? [];
  if (!rows || !columns || rows * columns > FETCHED_MOST) return null;
  const found = await fetch(plan);
  return found && Array.from({ length: rows }, (_, i) => [...found.values.slice(i * columns, (i + 1) * columns)]);
}

/** The pairs between which the amounts differ most: row, column, and the amount in each plan. */
export function changes(plans: number[][][]): number[][] {
  const [first] = plans;
  const most = Math.max(...plans.map((plan) => plan.reduce((a, row) => Math.max(a, ...row), 0)));
  const found: [number, number[]][] = [];
  first!.forEach((row, i) =>
    row.forEach((_, j) => {
      const amounts = plans.map((plan) => plan[i]?.[j] ?? 0);
      const by = Math.max(...amounts) - Math.min(...amounts);
      if (by > 1e-6 * most) found.push([by, [i, j, ...amounts]]);
    }),
  );
  return found
    .sort((a, b) => b[0] - a[0])
    .slice(0, SHOWN)
    .map(([, row]) => row);
}
