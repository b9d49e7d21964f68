/** From the bench to a job: inputs, options, and the note that keeps the names. */

import type { Note } from "../../api/notes";
import type { Sheet } from "../../api/types";
import { titleOf } from "../../samples";
import { plural } from "../../words";
import { type Choice, choice, follows, problem, sheetFor, sources } from "./state";

export interface Request {
  solver: string;
  inputs: Record<string, unknown>;
  options: Record<string, unknown>;
  time_limit_s: number;
  warm_start?: string;
}

/** The table of one space: its distances or its points. */
export const spaceOf = (name: string): Sheet | undefined => sheetFor(`${name}_distance`) ?? sheetFor(name);

type Side = "from" | "to";

/** Where the rows or the columns of a table are: found by their names where both have these, else in the order given. */
function placed(side: Side): Sheet | undefined {
  const [sheet, table] = [sheetFor(side), sheetFor("cost") ?? sheetFor("benefit")];
  if (!sheet?.points || !table) return sheet;
  const own = sheet.row_names?.map((name) => name.trim()) ?? [];
  const names = (side === "from" ? table.row_names : table.column_names)?.map((name) => name.trim());
  const at = new Map(own.map((name, row) => [name, row]));
  if (names && at.size === own.length && names.every((name) => at.has(name)))
    return { ...sheet, row_names: names, points: names.map((name) => sheet.points![at.get(name)!]!) };
  return sheet.points.length === counted(side) ? sheet : undefined;
}

const counted = (side: Side): number | undefined =>
  (sheetFor("cost") ?? sheetFor("benefit"))?.shape?.slice(-2)[side === "from" ? 0 : 1];

/** Positions that are neither named after the rows or columns of the table nor as many: whose they are is not known. */
export const misplaced = (): [sheet: Sheet, expected: string][] =>
  (["from", "to"] as const).flatMap((side) => {
    const sheet = sheetFor(side);
    return !sheet || placed(side) ? [] : [[sheet, plural(counted(side) ?? 0, side === "from" ? "row" : "column")]];
  });

/** Facility to room, from names; null where a name is not known or a room is taken twice. */
export function todayOf(): number[] | null {
  const [today, flow, distance] = [sheetFor("today"), sheetFor("flow"), sheetFor("distance")];
  if (!today?.pairs || !flow?.row_names || !distance?.row_names) return null;
  const where = new Map(today.pairs.map(([who, room]) => [who.trim(), room.trim()]));
  const rooms = new Map(distance.row_names.map((name, at) => [name.trim(), at]));
  const found = flow.row_names.map((who) => rooms.get(where.get(who.trim()) ?? "") ?? -1);
  return new Set(found).size === found.length && !found.includes(-1) ? found : null;
}

export function request(): Request {
  const picked = choice.value;
  const options: Record<string, unknown> = { ...picked.options };
  const inputs = INPUTS[problem.value]!(picked, options);
  const before = follows.value?.job;
  const start = before && !("permutation0" in inputs) ? { warm_start: before } : {};
  return { solver: problem.value, inputs, options, time_limit_s: picked.limitS, ...start };
}

const INPUTS: Record<string, (picked: Choice, options: Record<string, unknown>) => Record<string, unknown>> = {
  lap(picked, options) {
    if (picked.maximize) options.maximize = true;
    return { cost: sheetFor("cost")?.reference };
  },
  auction(picked, options) {
    const reject = sheetFor("reject");
    if (reject || picked.mayStayFree) options.allow_unassigned = true;
    return { benefit: sheetFor("benefit")?.reference, ...(reject ? { reject: reject.reference } : {}) };
  },
  uot(picked, options) {
    const scale = costScale();
    options.reg ??= short(picked.spread * scale);
    options.reg_m ??= picked.loss === null ? "inf" : short(picked.loss * scale);
    const cost = sheetFor("cost");
    if (cost) {
      const inputs: Record<string, unknown> = { cost: cost.reference };
      for (const side of ["a", "b"]) if (sheetFor(side)) inputs[side] = sheetFor(side)!.reference;
      return inputs;
    }
    const [x, y] = [sheetFor("x")!, sheetFor("y")!];
    const [a, b] = [shareOf(x), shareOf(y)];
    return { x: x.reference, y: y.reference, ...(a ? { a } : {}), ...(b ? { b } : {}) };
  },
  barycenter() {
    const [shapes, cost, x] = [sheetFor("histograms")!, sheetFor("cost"), sheetFor("x")];
    if (cost) return { histograms: shapes.reference, cost: cost.reference };
    const inALine = Array.from({ length: shapes.shape?.[1] ?? 0 }, (_, at) => [at]);
    return { histograms: shapes.reference, x: x?.reference ?? inALine };
  },
  gromov(picked, options) {
    const inputs: Record<string, unknown> = {};
    for (const [space, weights] of ["xa", "yb"]) {
      const sheet = spaceOf(space!)!;
      const share = sheetFor(weights!)?.reference ?? (sheetFor(space!) ? shareOf(sheet) : null);
      inputs[sheetFor(space!) ? space! : `${space}_distance`] = sheet.reference;
      if (share) inputs[weights!] = share;
    }
    if (sheetFor("cost")) inputs.cost = sheetFor("cost")!.reference;
    if (sheetFor("x") || sheetFor("y")) options.metric ??= picked.metric;
    return inputs;
  },
  qap(picked, options) {
    const inputs: Record<string, unknown> = {
      flow: sheetFor("flow")?.reference,
      distance: sheetFor("distance")?.reference,
    };
    const [today, order, linear] = [todayOf(), sheetFor("today"), sheetFor("linear")];
    if (linear) inputs.linear = linear.reference;
    if (picked.beginToday && today) inputs.permutation0 = today;
    else if (picked.beginToday && order?.role === "order") inputs.permutation0 = order.reference;
    if (picked.stay.length && today)
      options.fixed = Object.fromEntries(picked.stay.map((facility) => [facility, today[facility]]));
    if (picked.moveCost && today)
      inputs.linear = today.map((room) =>
        today.map((_, place) => (place === room ? 0 : picked.moveCost! / measure().factor)),
      );
    return inputs;
  },
};

const short = (value: number): number => Number(value.toPrecision(3));

/** What a typical pair costs: options in plain words are shares of it. */
export function costScale(): number {
  const facts = sheetFor("cost")?.facts;
  if (facts?.max != null && facts.min != null) return Math.max(Math.abs(facts.max), Math.abs(facts.min)) / 4 || 1;
  const [x, y] = [place(sheetFor("x")), place(sheetFor("y"))];
  if (!x.length || !y.length) return 1;
  let [sum, count] = [0, 0];
  for (let i = 0; i < x.length; i += Math.ceil(x.length / 40)) {
    for (let j = 0; j < y.length; j += Math.ceil(y.length / 40)) {
      sum += x[i]!.reduce((total, one, d) => total + (one - (y[j]![d] ?? 0)) ** 2, 0);
      count++;
    }
  }
  return sum / count || 1;
}

const BESIDE = /^(w|h|width|height|weight|mass|amount|count|angle)$/i;

function place(sheet: Sheet | undefined): number[][] {
  const columns = (sheet?.column_names ?? [])
    .map((name, at) => [name, at] as const)
    .filter(([name]) => !BESIDE.test(name.trim()))
    .map(([, at]) => at);
  return (sheet?.points ?? []).map((row) => columns.map((at) => row[at] ?? 0));
}

/** Weights as shares of one, where a sheet of points has any. */
function shareOf(sheet: Sheet): number[] | null {
  const at = (sheet.column_names ?? []).findIndex((name) => /^(weight|mass|amount|count)$/i.test(name.trim()));
  if (at < 0 || !sheet.points) return null;
  const weights = sheet.points.map((row) => row[at] ?? 0);
  const sum = weights.reduce((total, one) => total + one, 0);
  return sum > 0 ? weights.map((one) => one / sum) : null;
}

/** The objective in a person's unit. */
export function measure(): { factor: number; unit: string; measure: string } {
  if (problem.value === "qap") {
    const period = /\b(?:a|per) (day|week|month|year|shift)\b/i.exec(sheetFor("flow")?.corner ?? "")?.[1];
    const metres = /^(m|metres?|meters?)$/i.test((sheetFor("distance")?.corner ?? "").trim());
    return metres
      ? { factor: 0.001, unit: "km", measure: `walked${period ? ` a ${period}` : ""}` }
      : { factor: 1, unit: "", measure: "total way" };
  }
  const corner = (sheetFor("cost") ?? sheetFor("benefit"))?.corner.trim() ?? "";
  if (problem.value === "lap")
    return /^(min|minutes?|h|hours?|s|seconds?|km|metres?|meters?|m|€|\$|£|eur|usd)$/i.test(corner)
      ? { factor: 1, unit: corner, measure: "in all" }
      : { factor: 1, unit: "", measure: choice.value.maximize ? "total worth" : "total cost" };
  if (problem.value === "gromov")
    return { factor: 1, unit: "", measure: sheetFor("cost") ? "cost in all" : "mean squared difference" };
  return { factor: 1, unit: "", measure: problem.value === "auction" ? "total worth" : "cost of moving" };
}

const one = (name: string | undefined, fallback: string): string => {
  const word = (name ?? "").trim().toLowerCase();
  return word && /^[\p{L} -]{2,24}$/u.test(word) ? word.replace(/s$/, "") : fallback;
};

export function note(): Note {
  const kind = problem.value;
  const told = sources.value
    .map((source) => (source.sample ? titleOf(source.sample) : source.filename.replace(/\.\w+$/, "")))
    .join(", ");
  const title = follows.value?.title ?? told;
  const main = kind === "gromov" ? undefined : (sheetFor("histograms") ?? sheetFor("cost") ?? sheetFor("benefit"));
  const [from, to] = [placed("from") ?? spaceOf("x"), placed("to") ?? spaceOf("y")];
  const asked =
    kind === "qap"
      ? [
          choice.value.stay.length ? `${choice.value.stay.length} must stay` : "",
          choice.value.moveCost ? "moves counted" : "",
        ].filter(Boolean)
      : [];
  const base = { title: [title || "Without a name", ...asked].join(", "), saved: Date.now(), ...measure() };
  if (kind === "qap") {
    const [flow, distance, rooms] = [sheetFor("flow"), sheetFor("distance"), sheetFor("rooms")];
    const today = todayOf() ?? undefined;
    const fixed = today && Object.fromEntries(choice.value.stay.map((facility) => [facility, today[facility]!]));
    return {
      ...base,
      rows: flow?.row_names ?? null,
      columns: distance?.row_names ?? null,
      rowWord: "department",
      columnWord: "room",
      rooms: inOrder(rooms, distance) ?? undefined,
      today,
      fixed,
    };
  }
  return {
    ...base,
    rows: main?.row_names ?? from?.row_names ?? null,
    columns: main?.column_names ?? to?.row_names ?? null,
    rowWord: one(from?.corner, "row"),
    columnWord: one(to?.corner, "column"),
    from: from?.points ?? undefined,
    to: to?.points ?? undefined,
    colours: kind !== "gromov" && /^(r|red)$/i.test(from?.column_names?.[0] ?? ""),
  };
}

/** Rooms in the order of the distances, whatever order their own sheet has. */
function inOrder(rooms: Sheet | undefined, distance: Sheet | undefined): number[][] | null {
  if (!rooms?.points || !distance?.shape || rooms.points.length !== distance.shape[0]) return null;
  const columns = ["x", "y", "w", "h"]
    .map((name) =>
      (rooms.column_names ?? []).findIndex(
        (one) =>
          one
            .trim()
            .toLowerCase()
            .replace(/^width$/, "w")
            .replace(/^height$/, "h") === name,
      ),
    )
    .filter((at) => at >= 0);
  const rows = rooms.points.map((row) => columns.map((at) => row[at]!));
  if (!rooms.row_names || !distance.row_names) return rows;
  const at = new Map(rooms.row_names.map((name, i) => [name, i]));
  const ordered = distance.row_names.map((name) => rows[at.get(name) ?? -1]);
  return ordered.every((row) => row !== undefined) ? (ordered as number[][]) : null;
}
