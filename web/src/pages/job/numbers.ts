/** The problem of a job as sheets on Solve's bench, where a number can be changed; the next job begins with this answer. */

import type { Matrix } from "../../api/npy";
import { addText, choice, empty, follows, FRESH, problem, readAgain } from "../solve/state";
import { line, sheetText } from "../../files/sheets";
import type { Live } from "./live";

const MOST_CELLS = 10_000;

type Sheet = [name: string, text: string];

/** null where the problem is not small tables: batches, sparse graphs, points, or too many cells. */
export function sheetsOf({ job, inputs, note }: Live): Sheet[] | null {
  const small = (matrix: Matrix | null | undefined): matrix is Matrix =>
    !!matrix && matrix.shape.length === 2 && matrix.values.length <= MOST_CELLS;
  if (!job) return null;
  if (job.solver === "qap") {
    const { flow, distance, linear } = inputs;
    if (!small(flow) || !small(distance) || ("linear" in job.input_digests && !small(linear))) return null;
    const [who, where] = [names(note?.rows, "department", flow), names(note?.columns, "room", distance)];
    const period = /^walked (a \w+)$/.exec(note?.measure ?? "")?.[1] ?? "";
    const found: Sheet[] = [
      ["Trips", sheetText(flow, `trips ${period}`.trim(), who, who)],
      ["Distances", sheetText(distance, note?.unit === "km" ? "metres" : "distance", where, where)],
    ];
    if (small(linear)) found.push(["Place cost", sheetText(linear, "cost", who, where)]);
    if (note?.today)
      found.push(["Today", ["who\twhere", ...note.today.map((room, at) => line([who[at]!, where[room]!]))].join("\n")]);
    if (note?.rooms) {
      const columns = ["room", "x", "y", "w", "h"].slice(0, 1 + note.rooms[0]!.length);
      found.push(["Rooms", [line(columns), ...note.rooms.map((room, at) => line([where[at]!, ...room]))].join("\n")]);
    }
    return found;
  }
  const table = inputs.cost ?? inputs.benefit;
  if (!["lap", "auction"].includes(job.solver) || !small(table) || "reject" in job.input_digests) return null;
  return [["Table", sheetText(table, note?.unit || "value", note?.rows ?? null, note?.columns ?? null)]];
}

const names = (known: string[] | null | undefined, word: string, matrix: Matrix): string[] =>
  known ?? Array.from({ length: matrix.shape[0]! }, (_, at) => `${word} ${at + 1}`);

/** Lay the sheets of a job on the bench, with what was asked of it. */
export async function layOnBench(live: Live, sheets: Sheet[]): Promise<void> {
  const job = live.job!;
  const { maximize, allow_unassigned, fixed, ...options } = job.options as Record<string, unknown>;
  const stay = Object.entries((fixed ?? {}) as Record<string, number>);
  const asToday = stay.every(([who, room]) => live.note?.today?.[Number(who)] === room);
  empty();
  problem.value = job.solver;
  for (const [name, text] of sheets) await addText(text, name);
  choice.value = {
    ...FRESH,
    limitS: job.time_limit_s ?? FRESH.limitS,
    maximize: maximize === true,
    mayStayFree: allow_unassigned === true,
    beginToday: false,
    stay: asToday ? stay.map(([who]) => Number(who)) : [],
    options: asToday || !fixed ? options : { ...options, fixed },
  };
  if (maximize) await readAgain(); // an empty cell means something else then
  const title = live.note?.title || "Without a name";
  follows.value = {
    job: job.id,
    title: title.endsWith(", changed") ? title : `${title}, changed`,
  };
}
