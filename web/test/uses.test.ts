import { expect, test } from "vitest";
import type { Sheet } from "../src/api/types";
import { likeliest } from "../src/pages/solve/uses";

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
  expect(likeliest([])).toBeNull();
});
