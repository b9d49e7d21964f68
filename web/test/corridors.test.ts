import { expect, test } from "vitest";
import { corridors, type Segment } from "../src/charts/corridors";
import { layOut } from "../src/charts/plan";

/** Two rows of three rooms, ten wide and eight high, with a corridor of four between them. */
const ROOMS = [0, 12].flatMap((y) => [0, 10, 20].map((x) => [x, y, 10, 8]));
const PLAN = layOut(ROOMS, 300, 1000);
const HERE = [0, 1, 2, 3, 4, 5];

const ink = (parts: Segment[]) =>
  parts.reduce((sum, { x0, y0, x1, y1, count }) => sum + count * (Math.abs(x1 - x0) + Math.abs(y1 - y0)), 0);

test("trips go through the corridor, and as far as its walls make them", () => {
  const parts = corridors(PLAN)!.segments([{ from: 0, to: 5, count: 3 }], HERE);
  const [a, b] = [PLAN.doors[0]!, PLAN.doors[5]!];
  expect(ink(parts)).toBeCloseTo(3 * (Math.abs(a[0] - b[0]) + Math.abs(a[1] - b[1])), 6);
  const level = parts.filter((part) => part.y0 === part.y1 && part.x0 !== part.x1);
  expect(level.length).toBe(1);
  expect(level[0]!.y0).toBeCloseTo(PLAN.height / 2, 6);
  expect(level[0]!.clear).toBeLessThanOrEqual(40);
});

test("trips that share a way are one band", () => {
  const parts = corridors(PLAN)!.segments(
    [
      { from: 0, to: 2, count: 5 },
      { from: 1, to: 2, count: 7 },
    ],
    HERE,
  );
  const counts = parts.filter((part) => part.y0 === part.y1 && part.x0 !== part.x1).map((part) => part.count);
  expect(counts).toEqual([5, 12]);
});

test("who moves takes their ways along", () => {
  const trip = [{ from: 0, to: 2, count: 1 }];
  const ways = corridors(PLAN)!;
  expect(ink(ways.segments(trip, HERE))).toBeGreaterThan(ink(ways.segments(trip, [1, 0, 2, 3, 4, 5])));
  expect(ways.segments([], HERE)).toEqual([]);
});

test("rooms without any ground between them are left through their walls", () => {
  const tight = layOut(
    [0, 10].flatMap((y) => [0, 10, 20].map((x) => [x, y, 10, 10])),
    300,
    1000,
  );
  const parts = corridors(tight)!.segments([{ from: 0, to: 4, count: 1 }], HERE);
  expect(ink(parts)).toBeCloseTo(200, -1);
});

test("a floor that is cut too finely has straight lines instead", () => {
  const many = Array.from({ length: 120 }, (_, at) => [at * 11 + (at % 7), (at % 13) * 11 + (at % 5), 9, 9 + (at % 3)]);
  expect(corridors(layOut(many, 800, 800))).toBeNull();
});
