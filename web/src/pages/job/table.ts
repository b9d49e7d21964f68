/** The answer as a table with names: what is shown is what is saved. */

import type { Result } from "../../api/types";
import type { Table } from "../../files/cells";
import { shares } from "../../charts/plan";
import { number, plural } from "../../words";
import type { Live } from "./live";

export interface Named {
  head: string[];
  /** From which column on cells are numbers. */
  numeric: number;
  rows: Table;
  caption: string;
  /** Which pair each row is about, where a pair could be excluded. */
  pairs?: [number, number][];
}

const titled = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

export function tableOf(live: Live): Named | null {
  const { job, result } = live;
  if (!job || !result) return null;
  if (result.termination === "infeasible") return tooFew(live, result);
  if (job.solver === "qap") return layout(live, result);
  if (job.solver === "uot" || job.solver === "gromov") return transport(live, result);
  if (job.solver === "barycenter") return masses(live, result);
  return pairs(live, result);
}

const WORDS: Record<string, [string, string]> = { qap: ["department", "room"] };
const wordsOf = ({ job, note }: Live): [string, string] => {
  const [row, column] = WORDS[job?.solver ?? ""] ?? ["row", "column"];
  return [note?.rowWord ?? row, note?.columnWord ?? column];
};

const rowName = (live: Live, i: number): string => live.note?.rows?.[i] ?? `${titled(wordsOf(live)[0])} ${i + 1}`;
const columnName = (live: Live, j: number): string =>
  j < 0 ? "" : (live.note?.columns?.[j] ?? `${titled(wordsOf(live)[1])} ${j + 1}`);

/** How much of the average is at each place. */
function masses(live: Live, result: Result): Named | null {
  if (!Array.isArray(result.barycenter)) return null;
  return {
    head: [titled(wordsOf(live)[1]), "Share"],
    numeric: 1,
    rows: result.barycenter.map((mass, j) => [columnName(live, j), short(mass)]),
    caption: "How much is where",
  };
}

function layout(live: Live, result: Result): Named | null {
  const permutation = result.permutation;
  if (!permutation) return null;
  const { flow, distance } = live.inputs;
  const today = live.note?.today ?? null;
  const factor = live.note?.factor ?? 1;
  const unit = live.note?.unit || "way";
  const parts = flow && distance ? shares(flow.values, distance.values, permutation) : null;
  const rows: Table = permutation.map((place, i) => [
    rowName(live, i),
    columnName(live, place),
    ...(today ? [today[i] === place ? "stays" : columnName(live, today[i]!)] : []),
    ...(parts ? [parts[i]!.trips, short(parts[i]!.way * factor)] : []),
  ]);
  const order = permutation.map((_, i) => i);
  if (parts) order.sort((a, b) => parts[b]!.way - parts[a]!.way);
  const head = ["Department", "Room", ...(today ? ["Today"] : []), ...(parts ? ["Trips", titled(unit)] : [])];
  return {
    head,
    numeric: today ? 3 : 2,
    rows: order.map((i) => rows[i]!),
    caption: "Who is where, most walked first",
    pairs: order.map((i) => [i, permutation[i]!]),
  };
}

/** A dense cost, or the entry of a sparse row. */
export function pairValue(live: Live, i: number, j: number): number | null {
  const matrix = live.inputs.cost ?? live.inputs.benefit;
  if (matrix && matrix.shape.length === 2) return matrix.values[i * matrix.shape[1]! + j] ?? null;
  if (!live.sparse) return null;
  const { indptr, indices, values } = live.sparse;
  for (let at = indptr.values[i]!; at < indptr.values[i + 1]!; at++)
    if (indices.values[at] === j) return values.values[at]!;
  return null;
}

/** Rows that have too few columns between them: why there is no answer. */
function tooFew(live: Live, result: Result): Named | null {
  const rows = result.hall_rows;
  if (!Array.isArray(rows)) return null;
  const word = live.note?.rowWord ?? "row";
  return {
    head: [titled(word)],
    numeric: 9,
    rows: rows.map((i) => [rowName(live, i as number)]),
    caption: `Each ${word} that has too few to share`,
  };
}

/** "7 nurses share 6 shifts": who stands in each other's way. */
export function tooFewWords(live: Live): string {
  const result = live.result!;
  const rows = result.hall_rows;
  if (!Array.isArray(rows)) return "";
  const count = Array.isArray(result.hall_cols)
    ? result.hall_cols.length
    : Number(result.certificate.facts.hall_columns ?? NaN);
  const names = rows.slice(0, 8).map((i) => rowName(live, i as number));
  const who = `${plural(rows.length, live.note?.rowWord ?? "row")} share ${Number.isFinite(count) ? plural(count, live.note?.columnWord ?? "column") : "too little"}`;
  return `${who}: ${names.join(", ")}${rows.length > names.length ? ", …" : ""}.`;
}

function pairs(live: Live, result: Result): Named | null {
  if (!Array.isArray(result.assignment) || Array.isArray(result.assignment[0])) return null;
  const [one, other] = [titled(live.note?.rowWord ?? "row"), titled(live.note?.columnWord ?? "column")];
  const rows: Table = result.assignment.map((j, i) => [
    rowName(live, i),
    j < 0 ? "none" : columnName(live, j),
    j < 0 ? null : pairValue(live, i, j),
  ]);
  const known = rows.some((row) => row[2] !== null);
  return {
    head: [one, other, ...(known ? [live.note?.unit ? titled(live.note.unit) : "Value"] : [])],
    pairs: result.assignment.map((j, i) => [i, j]),
    numeric: 2,
    rows: known ? rows : rows.map((row) => row.slice(0, 2)),
    caption: "Who gets what",
  };
}

const MOST_FLOWS = 10_000;

function transport(live: Live, result: Result): Named | null {
  const plan = result.plan;
  if (!Array.isArray(plan) || !Array.isArray(plan[0])) return null;
  const flows: [number, number, number][] = [];
  const total = plan.reduce((sum, row) => sum + row.reduce((part, one) => part + one, 0), 0);
  plan.forEach((row, i) => row.forEach((amount, j) => amount > total * 1e-7 && flows.push([i, j, amount])));
  flows.sort((a, b) => b[2] - a[2]);
  const kept = flows.slice(0, MOST_FLOWS);
  const rows: Table = kept.map(([i, j, amount]) => [
    rowName(live, i),
    columnName(live, j),
    short(amount),
    short((100 * amount) / total),
  ]);
  const of = flows.length > kept.length ? ` (the largest of ${number(flows.length)})` : "";
  const [what, sides] =
    live.job!.solver === "uot" ? ["What goes where", ["From", "To"]] : ["What goes with what", ["First", "Second"]];
  return { head: [...sides, "Amount", "% of all"], numeric: 2, rows, caption: `${what}, most first${of}` };
}

const short = (value: number): number => Number(value.toPrecision(6));
