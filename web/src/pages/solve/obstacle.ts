/** What keeps the bench from becoming a job, in words of its sheets. */

import { Refused, words } from "../../api/http";
import type { Sheet } from "../../api/types";
import { number, plural } from "../../words";
import { spaceOf } from "./request";
import { choice, problem, sheetFor, sheets, uses } from "./state";

/** What keeps a job from being made, in words; "" when nothing does. */
export function obstacle(): string {
  const at = (name: string) => sheetFor(name);
  const kind = problem.value;
  const empty = sheets.value.find((sheet, index) => uses.value[index] && sheet.facts && sheet.facts.min === null);
  if (empty) return `${empty.name} holds no number. Numbers were expected where it has text or empty cells.`;
  if (kind === "qap") {
    const [flow, distance] = [at("flow"), at("distance")];
    if (!flow?.shape) return "A layout needs trips between departments. Add a sheet with them.";
    if (!distance?.shape) return "A layout needs distances between rooms. Add a sheet with them.";
    for (const sheet of [flow, distance]) {
      const [rows = 0, columns = 0] = sheet.shape!;
      if (rows !== columns)
        return `${sheet.name} has ${plural(rows, "row")} and ${plural(columns, "column")}. A layout needs as many columns as rows.${odd(sheet)}`;
    }
    if (flow.shape[0] !== distance.shape[0])
      return `${flow.name} has ${plural(flow.shape[0]!, "department")}, ${distance.name} has ${plural(distance.shape[0]!, "room")}. A layout needs as many rooms as departments.`;
    return "";
  }
  if (kind === "lap")
    return at("cost") ? "" : "An assignment needs a table of costs: a row for each person, a column for each job.";
  if (kind === "auction")
    return at("benefit")
      ? ""
      : "A matching needs a table of what each pair is worth. An empty cell is a pair that is not allowed.";
  if (kind === "barycenter") {
    const rows = at("histograms")?.shape?.[0] ?? 0;
    if (rows >= 2 && rows <= 100) return "";
    return "An average needs a table with a row for each of 2 to 100 shapes, and a column for each place.";
  }
  if (kind === "gromov") return between(spaceOf("x"), spaceOf("y"), at("cost"));
  if (at("cost")) return amounts(at("cost")!);
  if (at("x") && at("y")) return "";
  return "A transport needs costs of moving, or two sheets of points.";
}

/** What keeps amounts from being those of the rows and columns of a table. */
function amounts(table: Sheet): string {
  const sides: [string, string, string[] | null][] = [
    ["a", "row", table.row_names],
    ["b", "column", table.column_names],
  ];
  for (const [index, [name, word, names]] of sides.entries()) {
    const list = sheetFor(name);
    const count = table.shape?.[index] ?? 0;
    if (!list) continue;
    if (list.shape?.[0] !== count)
      return `${list.name} has ${plural(list.shape?.[0] ?? 0, "amount")}, ${table.name} has ${plural(count, word)}.`;
    const other = list.row_names?.findIndex((one, i) => one !== names?.[i]) ?? -1;
    if (names && other >= 0 && list.row_names!.every((one) => names.includes(one)))
      return `${list.name} is in another order than the ${word}s of ${table.name}: “${list.row_names![other]}” where “${names[other]}” is. Sort one of them.`;
  }
  const [a, b] = [sheetFor("a"), sheetFor("b")];
  const [from, to] = [a?.facts?.sum, b?.facts?.sum];
  if (choice.value.loss !== null || from == null || to == null || Math.abs(from - to) <= 1e-6 * Math.abs(from))
    return "";
  return `${a!.name} adds up to ${number(from)}, ${b!.name} to ${number(to)}. Let amounts appear or vanish, or make both the same.`;
}

/** Why the service will not take it, with the names of sheets in the place of what the service calls them. */
export function refusal(error: unknown): string {
  if (!(error instanceof Refused) || !error.errors.length) return words(error);
  const told = error.errors.map(({ field, message }) => {
    const sheet = sheetFor(/^inputs\.(\w+)/.exec(field)?.[1] ?? "");
    return sheet ? `${sheet.name} ${message}` : `${field}: ${message}`;
  });
  return `${told.join("; ")}.`;
}

/** What keeps two spaces from being aligned. */
function between(first: Sheet | undefined, second: Sheet | undefined, cost: Sheet | undefined): string {
  if (!first || !second) return "An alignment needs two tables: of each space its distances, or its points.";
  for (const name of ["x", "y"]) {
    if (sheetFor(name) && sheetFor(`${name}_distance`))
      return `${sheetFor(name)!.name} and ${sheetFor(`${name}_distance`)!.name} are of one space. Say which of them is meant.`;
    const points = sheetFor(name);
    if (points?.missing)
      return `${points.name} has ${plural(points.missing, "empty cell")}. A point needs all of its numbers.`;
    const sheet = sheetFor(`${name}_distance`);
    const [rows = 0, columns = 0] = sheet?.shape ?? [];
    if (rows !== columns)
      return `${sheet!.name} has ${plural(rows, "row")} and ${plural(columns, "column")}. Distances need as many columns as rows.${odd(sheet!)}`;
    if (sheet && sheet.missing > rows)
      return `${sheet.name} has ${plural(sheet.missing, "empty cell")}. Only what is between a row and itself may be empty.`;
  }
  const [n, m] = [first.shape?.[0], second.shape?.[0]];
  if (cost && (cost.shape?.[0] !== n || cost.shape?.[1] !== m))
    return `${cost.name} is ${cost.shape?.join(" by ")}. Costs between the two need ${n} rows and ${m} columns.`;
  return "";
}

/** Which name stands on one side only. */
function odd(sheet: Sheet): string {
  const [rows, columns] = [sheet.row_names ?? [], sheet.column_names ?? []];
  const lone = rows.find((name) => !columns.includes(name));
  if (rows.length && columns.length && lone) return ` “${lone}” is in the rows only.`;
  const other = columns.find((name) => !rows.includes(name));
  return rows.length && columns.length && other ? ` “${other}” is in the columns only.` : "";
}
