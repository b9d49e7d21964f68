/** Distances between rooms, where a planner has drawn the rooms and measured nothing. */

import type { Sheet } from "../../api/types";

/** Whether a sheet of rooms can stand in for distances: positions by name, one room for each department. */
export function canMeasure(flow: Sheet | undefined, rooms: Sheet | undefined): rooms is Sheet {
  const names = (rooms?.column_names ?? []).map((name) => name.trim().toLowerCase());
  const count = rooms?.points?.length ?? 0;
  return (
    count > 1 && flow?.shape?.[0] === count && flow.shape[1] === count && names.includes("x") && names.includes("y")
  );
}

/** A table of ways from middle to middle, along x and then along y, as one walks corridors. */
export function measured(rooms: Sheet): string {
  const names = (rooms.column_names ?? []).map((name) => name.trim().toLowerCase());
  const at = (row: number[], ...called: string[]): number => row[names.findIndex((name) => called.includes(name))] ?? 0;
  const middles = rooms.points!.map((row) => [
    at(row, "x") + at(row, "w", "width") / 2,
    at(row, "y") + at(row, "h", "height") / 2,
  ]);
  const called = middles.map((_, i) => (rooms.row_names?.[i] ?? `Room ${i + 1}`).replace(/[\t\r\n"]/g, " "));
  const way = ([x, y]: number[], [a, b]: number[]) => Number((Math.abs(x! - a!) + Math.abs(y! - b!)).toPrecision(12));
  const lines = middles.map((from, i) => [called[i], ...middles.map((to) => way(from, to))].join("\t"));
  return [["distance", ...called].join("\t"), ...lines].join("\n");
}
