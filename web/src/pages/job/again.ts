/** The same problem as a new job: begun with this answer, with more departments fixed, or without some pairs. */

import { get, post } from "../../api/http";
import type { Matrix } from "../../api/npy";
import type { Job, Solver } from "../../api/types";
import type { Live } from "./live";
import { present } from "./Picture";

export interface Change {
  fixed: Set<number> | null;
  /** Pairs that the next answer must not hold, as "row,column". */
  excluded: Set<string>;
}

export const MOST_SENT = 250_000;

/** Whether pairs of this problem can be excluded: its matrix is then sent anew, with gaps. */
export function canExclude(live: Live): boolean {
  if (live.job?.solver === "qap") return (live.inputs.flow?.shape[0] ?? Infinity) ** 2 <= MOST_SENT;
  const matrix = live.inputs.cost ?? live.inputs.benefit;
  return (
    matrix?.shape.length === 2 &&
    matrix.values.length <= MOST_SENT &&
    !["uot", "barycenter", "gromov"].includes(live.job?.solver ?? "") &&
    !matrix.exact?.some(unsafe)
  );
}

const unsafe = (value: bigint): boolean => value > 2n ** 53n || (value < -(2n ** 53n) && value !== -(2n ** 63n));

/** A matrix as lists, with null where a pair is not allowed. */
export function withGaps(
  matrix: Matrix | null,
  rows: number,
  columns: number,
  excluded: Set<string>,
): (number | null)[][] {
  return Array.from({ length: rows }, (_, i) =>
    Array.from({ length: columns }, (_, j) => {
      const value = matrix ? matrix.values[i * columns + j]! : 0;
      const forbidden = !Number.isFinite(value) || matrix?.exact?.[i * columns + j] === -(2n ** 63n);
      return forbidden || excluded.has(`${i},${j}`) ? null : value;
    }),
  );
}

export async function runAgain(live: Live, warm: boolean, change: Change): Promise<Job> {
  const job = live.job!;
  const { solvers } = await get<{ solvers: Solver[] }>("/v1/solvers");
  const starts = new Set(Object.values(solvers.find((one) => one.name === job.solver)?.warm_start ?? {}));
  const changed = change.fixed !== null || change.excluded.size > 0;
  const inputs: Record<string, unknown> = Object.fromEntries(
    Object.entries(job.input_digests).filter(([name]) => !starts.has(name) || (!warm && !changed)),
  );
  const options = { ...job.options };
  const where = present(live);
  if (change.fixed && where)
    options.fixed = Object.fromEntries([...change.fixed].map((facility) => [facility, where[facility]]));
  if (change.excluded.size) exclude(live, inputs, change.excluded);
  const body = { solver: job.solver, inputs, options, time_limit_s: job.time_limit_s, keep_inputs: true };
  return post<Job>("/v1/jobs", warm && !change.excluded.size ? { ...body, warm_start: job.id } : body);
}

/** An answer that holds an excluded pair is no start any more; the problem itself says what is not allowed. */
function exclude(live: Live, inputs: Record<string, unknown>, excluded: Set<string>): void {
  if (live.job!.solver === "qap") {
    const n = live.inputs.flow!.shape[0]!;
    inputs.linear = withGaps(live.inputs.linear ?? null, n, n, excluded);
    return;
  }
  const name = live.inputs.cost ? "cost" : "benefit";
  const matrix = live.inputs[name]!;
  inputs[name] = withGaps(matrix, matrix.shape[0]!, matrix.shape[1]!, excluded);
}
