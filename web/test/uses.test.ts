import { expect, test } from "vitest";
import type { Sheet } from "../src/api/types";
import { canMeasure, measured } from "../src/pages/solve/measured";
import { assignUses, likeliest } from "../src/pages/solve/uses";

const sheet = (name: string, role: Sheet["role"], shape: number[] = [6, 6], missing = 0, corner = ""): Sheet =>
  ({ name, role, shape, missing, corner }) as Sheet;

test("sheets say which problem they are, where they can", () => {
  expect(likeliest([sheet("Trips", "matrix"), sheet("Metres", "matrix"), sheet("Rooms", "points")])).toBe("qap");
  expect(
    likeliest([sheet("Sheet1", "matrix", [6, 6], 0, "trips a day"), sheet("Sheet2", "matrix", [6, 6], 0, "metres")]),
  ).toBe("qap");
  expect(likeliest([sheet("Trips", "matrix"), sheet("Metres", "matrix", [5, 5])])).toBeNull();
  expect(likeliest([sheet("Day 2", "points", [60, 3]), sheet("Day 4", "points", [70, 3])])).toBe("uot");
  expect(likeliest([sheet("day 2", "matrix", [60, 3]), sheet("day 4", "matrix", [70, 3])])).toBe("uot");
  expect(likeliest([sheet("Monday", "matrix", [8, 6]), sheet("Tuesday", "matrix", [8, 6])])).toBeNull();
  expect(likeliest([sheet("likeness", "matrix", [20, 24], 360)])).toBe("auction");
  expect(likeliest([sheet("minutes", "matrix", [20, 24], 12)])).toBeNull();
  expect(likeliest([sheet("Trips", "matrix"), sheet("Rooms", "points", [6, 4])])).toBe("qap");
  expect(likeliest([sheet("Trips", "matrix"), sheet("Rooms", "points", [7, 4])])).not.toBe("qap");
  expect(likeliest([])).toBeNull();
});

test("distances follow from where rooms are, if there is one for each department", () => {
  const rooms = {
    ...sheet("Rooms", "points", [2, 4]),
    row_names: ["R\t1", "R2"],
    column_names: ["X", "y", "w", "h"],
    points: [
      [0, 0, 10, 4],
      [10, 4, 20, 8],
    ],
  } as Sheet;
  expect(canMeasure(sheet("Trips", "matrix", [2, 2]), rooms)).toBe(true);
  expect(canMeasure(sheet("Trips", "matrix", [3, 3]), rooms)).toBe(false);
  expect(canMeasure(sheet("Trips", "matrix", [2, 2]), { ...rooms, column_names: ["r", "g", "b", "h"] })).toBe(false);
  expect(measured(rooms)).toBe("distance\tR 1\tR2\nR 1\t0\t21\nR2\t21\t0");
});

test("of each space one table is taken: distances where it is square, points elsewhere", () => {
  const [square, other, points] = [sheet("A", "matrix"), sheet("B", "matrix", [4, 4]), sheet("P", "points", [9, 2])];
  expect(assignUses("gromov", [square, other], {})).toEqual(["x_distance", "y_distance"]);
  expect(assignUses("gromov", [points, square], {})).toEqual(["x", "y_distance"]);
  expect(assignUses("gromov", [sheet("Q", "matrix", [9, 3]), points], {})).toEqual(["x", "y"]);
  expect(assignUses("gromov", [square, other, sheet("C", "matrix", [6, 4]), sheet("w", "list", [6, 1])], {})).toEqual([
    "x_distance",
    "y_distance",
    "cost",
    "a",
  ]);
  expect(assignUses("gromov", [sheet("C", "matrix", [6, 4]), square, other], { 0: "cost" })).toEqual([
    "cost",
    "x_distance",
    "y_distance",
  ]);
});

test("amounts are those of the side whose names they have, else whose number", () => {
  const named = (one: Sheet, rows: string[], columns: string[] | null = null): Sheet => ({
    ...one,
    row_names: rows,
    column_names: columns,
  });
  const table = named(sheet("cost", "matrix", [2, 2]), ["A", "B"], ["S", "T"]);
  const [demand, supply] = [
    named(sheet("demand", "list", [2, 1]), ["S", "T"]),
    named(sheet("supply", "list", [2, 1]), ["B", "A"]),
  ];
  expect(assignUses("uot", [table, demand, supply], {})).toEqual(["cost", "b", "a"]); // as a folder sorts them
  const list = (count: number) => sheet("amounts", "list", [count, 1]);
  expect(assignUses("uot", [list(3), sheet("cost", "matrix", [2, 3]), list(2)], {})).toEqual(["b", "cost", "a"]);
  expect(assignUses("uot", [sheet("cost", "matrix", [2, 3]), list(3)], {})).toEqual(["cost", "b"]);
  expect(assignUses("uot", [sheet("cost", "matrix", [3, 3]), list(3), list(3)], {})).toEqual(["cost", "a", "b"]);
  expect(assignUses("uot", [sheet("cost", "matrix", [3, 3]), list(4)], {})).toEqual(["cost", "a"]);
});
