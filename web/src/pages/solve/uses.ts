/** Which sheet is which input. Guessed from shapes and names; a person may say otherwise. */

import type { Sheet } from "../../api/types";

export type Use = string | null;

export interface Slot {
  name: string;
  label: string;
  roles: Sheet["role"][];
  hint?: RegExp;
  required?: boolean;
}

export const SLOTS: Record<string, Slot[]> = {
  lap: [
    { name: "cost", label: "Costs of pairs", roles: ["matrix", "stack"], required: true },
    { name: "from", label: "Where the rows are", roles: ["points"] },
    { name: "to", label: "Where the columns are", roles: ["points"] },
  ],
  auction: [
    { name: "benefit", label: "Worth of pairs", roles: ["matrix", "sparse"], required: true },
    { name: "reject", label: "Worth of staying free", roles: ["list"] },
    { name: "from", label: "Where the rows are", roles: ["points"] },
    { name: "to", label: "Where the columns are", roles: ["points"] },
  ],
  uot: [
    { name: "cost", label: "Costs of moving", roles: ["matrix"] },
    { name: "a", label: "Amounts of the rows", roles: ["list"] },
    { name: "b", label: "Amounts of the columns", roles: ["list"] },
    { name: "x", label: "Points that send", roles: ["points", "matrix"] },
    { name: "y", label: "Points that receive", roles: ["points", "matrix"] },
  ],
  qap: [
    { name: "flow", label: "Trips", roles: ["matrix"], hint: /trip|flow|traffic|move|^a$/i, required: true },
    { name: "distance", label: "Distances", roles: ["matrix"], hint: /dist|metre|meter|way|^b$/i, required: true },
    { name: "linear", label: "Cost of a place", roles: ["matrix"], hint: /linear|place cost/i },
    { name: "today", label: "Who is where today", roles: ["pairs", "order"] },
    { name: "rooms", label: "Where the rooms are", roles: ["points"] },
  ],
  barycenter: [
    { name: "histograms", label: "The shapes, a row each", roles: ["matrix"], required: true },
    { name: "cost", label: "Costs between the columns", roles: ["matrix"], hint: /dist|cost|metre|meter/i },
    { name: "x", label: "Where the columns are", roles: ["points"] },
  ],
  gromov: [
    { name: "x_distance", label: "Distances within the first", roles: ["matrix"] },
    { name: "x", label: "Points of the first", roles: ["points", "matrix"] },
    { name: "y_distance", label: "Distances within the second", roles: ["matrix"] },
    { name: "y", label: "Points of the second", roles: ["points", "matrix"] },
    { name: "cost", label: "Costs between the two", roles: ["matrix"] },
    { name: "a", label: "Weights of the first", roles: ["list"] },
    { name: "b", label: "Weights of the second", roles: ["list"] },
  ],
};

const isSquare = ({ shape }: Sheet): boolean => shape?.length === 2 && shape[0] === shape[1];

/** Whose amounts a list holds, by its names or else by their number: of the rows ("a") or columns ("b") of a table. */
function sideOf(list: Sheet, table: Sheet | undefined): string | null {
  const [rows, columns] = table?.shape ?? [];
  const all = (names: string[] | null | undefined): boolean =>
    !!names && !!list.row_names?.every((name) => names.includes(name));
  const [first, second] = [all(table?.row_names), all(table?.column_names)];
  if (first !== second) return first ? "a" : "b";
  if (rows === columns) return null;
  return list.shape?.[0] === rows ? "a" : list.shape?.[0] === columns ? "b" : null;
}

export function assignUses(problem: string, sheets: Sheet[], overrides: Record<number, string>): Use[] {
  const slots = SLOTS[problem] ?? [];
  const uses: Use[] = sheets.map((_, at) => (at in overrides ? overrides[at]! || null : null));
  const open = (at: number): boolean => uses[at] === null && !(at in overrides);
  const taken = new Set(uses.filter(Boolean));
  const give = (name: string, at: number): void => {
    if (at < 0) return;
    uses[at] = name;
    taken.add(name);
  };
  for (const slot of slots) {
    if (slot.hint && !taken.has(slot.name))
      give(
        slot.name,
        sheets.findIndex((sheet, at) => open(at) && slot.roles.includes(sheet.role) && slot.hint!.test(sheet.name)),
      );
  }
  for (const space of problem === "gromov" ? ["x", "y"] : []) {
    if (taken.has(space) || taken.has(`${space}_distance`)) continue;
    const at = sheets.findIndex((sheet, at) => open(at) && ["matrix", "points"].includes(sheet.role));
    give(at >= 0 && sheets[at]!.role === "matrix" && isSquare(sheets[at]!) ? `${space}_distance` : space, at);
  }
  for (const slot of slots) {
    if (taken.has(slot.name) || slot.name === "linear") continue;
    if (problem === "gromov" && /^[xy]/.test(slot.name)) continue;
    if (problem === "uot" && taken.has("cost") && (slot.name === "x" || slot.name === "y")) continue;
    if (
      problem === "uot" &&
      slot.name === "cost" &&
      sheets.filter((sheet) => ["points", "matrix"].includes(sheet.role)).length >= 2
    )
      continue;
    const table = problem === "uot" ? sheets[uses.indexOf("cost")] : undefined;
    const fits = (sheet: Sheet, at: number, side: string | null): boolean =>
      open(at) && slot.roles.includes(sheet.role) && (!table || sideOf(sheet, table) === side);
    const own = sheets.findIndex((sheet, at) => fits(sheet, at, slot.name));
    give(slot.name, own >= 0 ? own : sheets.findIndex((sheet, at) => fits(sheet, at, null)));
  }
  return uses;
}

const EMPTY_SHARE = 0.5;

/** Many rows of few numbers: coordinates of something, more likely than costs of pairs. */
const isList = ({ shape }: Sheet): boolean => shape?.length === 2 && shape[1]! * 3 <= shape[0]!;

/** The problem that the sheets look like; null where they could be anything. */
export function likeliest(sheets: Sheet[]): string | null {
  const matrices = sheets.filter((sheet) => ["matrix", "sparse", "stack"].includes(sheet.role));
  const square = matrices.filter(({ shape }) => shape && shape.length === 2 && shape[0] === shape[1]);
  const called = (name: string) => {
    const hint = SLOTS.qap!.find((slot) => slot.name === name)!.hint!;
    return square.find((sheet) => hint.test(sheet.name) || hint.test(sheet.corner));
  };
  const [flow, distance] = [called("flow"), called("distance")];
  if (flow && distance && flow !== distance && flow.shape![0] === distance.shape![0]) return "qap";
  const rooms = sheets.filter((sheet) => sheet.role === "points");
  if (flow && matrices.length === 1 && rooms.length === 1 && rooms[0]!.shape?.[0] === flow.shape![0]) return "qap";
  const lists = sheets.filter((sheet) => sheet.role === "points" || (sheet.role === "matrix" && isList(sheet)));
  if (lists.length === 2 && matrices.every((sheet) => lists.includes(sheet))) {
    const [one, other] = lists.map(({ column_names }) => (column_names ?? []).join());
    if (!matrices.length || one === other) return "uot";
  }
  if (!matrices.length) return null;
  const [only] = matrices;
  const cells = (only!.shape?.[0] ?? 0) * (only!.shape?.[1] ?? 0);
  if (matrices.length === 1 && (only!.role === "sparse" || only!.missing > EMPTY_SHARE * cells)) return "auction";
  return null;
}
