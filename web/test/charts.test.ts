import { expect, test } from "vitest";
import { proofPlace, strips } from "../src/charts/bars";
import { curve, type Moment, staircase, steps } from "../src/charts/curve";
import { heatOf, levels, NONE, scaleLabels, ZERO } from "../src/charts/heat";
import { bow, exchanges, flows, fromDistances, layOut, shares, tiles, turned, walked } from "../src/charts/plan";
import { fit, longest, sortedRows } from "../src/charts/points";
import { ramp } from "../src/charts/ramp";
import { decades, linear, log, tickLabels, ticks, timeTick } from "../src/charts/scale";

const same = (value: number) => value;
const moments: Moment[] = [
  { at: 0, objective: 100, bound: null },
  { at: 0.1, objective: 80, bound: 40 },
  { at: 0.2, objective: 80, bound: 40 },
  { at: 1, objective: 75, bound: 70 },
];

test("a series holds its changes alone", () => {
  expect(steps(moments, "objective").map((step) => step.value)).toEqual([100, 80, 75]);
  expect(steps(moments, "bound")).toEqual([
    { at: 0.1, value: 40 },
    { at: 1, value: 70 },
  ]);
});

test("a staircase has steps and no slopes", () => {
  expect(
    staircase(
      [
        { at: 1, value: 5 },
        { at: 3, value: 2 },
      ],
      9,
      same,
      same,
    ),
  ).toBe("M1 5H3V2H9");
  expect(staircase([], 9, same, same)).toBe("");
});

test("the picture keeps both series inside its box", () => {
  for (const scale of [true, false]) {
    const shape = curve(moments, 2, 10, { width: 200, height: 100 }, { log: scale, today: 120 });
    const places = `${shape.found}${shape.floor}${shape.between}`.match(/-?\d+(\.\d+)?/g)!.map(Number);
    expect(Math.min(...places)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...places)).toBeLessThanOrEqual(200);
    expect(shape.between.endsWith("Z")).toBe(true);
    expect(shape.y(120)).toBeLessThan(shape.y(75));
    expect(`${shape.found}${shape.floor}`).not.toContain("L");
  }
});

test("a floor that is far below is drawn at the edge and not to scale", () => {
  const shape = curve(
    [
      { at: 0.1, objective: 100, bound: -1e9 },
      { at: 1, objective: 99, bound: -1e9 },
    ],
    1,
    1,
    { width: 10, height: 100 },
    { log: true, today: null },
  );
  expect(shape.y(-1e9)).toBe(100);
  expect(Math.abs(shape.y(100) - shape.y(99))).toBeGreaterThan(5);
});

test("scales and ticks", () => {
  expect(linear([0, 10], [0, 100])(5)).toBe(50);
  expect(log([1, 100], [0, 2])(10)).toBeCloseTo(1);
  expect(ticks(0, 10, 5)).toEqual([0, 2, 4, 6, 8, 10]);
  expect(ticks(3, 3)).toEqual([3]);
  expect(decades(0.001, 60)).toEqual([0.001, 0.01, 0.1, 1, 10]);
  expect([0.001, 0.1, 10, 120].map(timeTick)).toEqual(["1 ms", "0.1 s", "10 s", "2 min"]);
  for (const [low, high] of [
    [232.1, 233.3],
    [0.0825, 0.0905],
    [1e5, 9e5],
    [99.97, 100.02],
  ]) {
    const labels = tickLabels(ticks(low!, high!, 4), 1);
    expect(new Set(labels).size).toBe(labels.length);
  }
});

test("a proof bar reaches its end only with the best", () => {
  expect(proofPlace(0)).toBe(1);
  expect(proofPlace(null)).toBe(0);
  expect(proofPlace(100)).toBe(0);
  expect(proofPlace(1e-7)).toBeCloseTo(0.9);
  expect(proofPlace(1)).toBeGreaterThan(proofPlace(10));
});

test("strips share one line", () => {
  const { shapes } = strips(
    [
      { floor: 50, found: 60 },
      { floor: null, found: 70 },
    ],
    100,
    472,
  );
  expect(shapes[0]!.floor!).toBeLessThan(shapes[0]!.found);
  expect(shapes[1]!.floor).toBeNull();
  expect(shapes[0]!.today).toBe(shapes[1]!.today);
});

test("levels of a heat map", () => {
  expect([...levels([0, 1, 4, 16, null], true)]).toEqual([ZERO, 0, 5, 15, NONE]);
  expect([...levels([0, 15, 30], false)]).toEqual([0, 8, 15]);
  expect([...levels([7, 7], false)]).toEqual([8, 8]);
  expect([...levels([1e-30, 1, 2], true)][0]).toBe(ZERO);
  expect(scaleLabels([0, 1, 9], true)).toEqual([1, 4, 9]);
  expect(scaleLabels([null], false)).toBeNull();
  expect(ramp(true)).toEqual(ramp(false).reverse());
});

test("a floor keeps its proportions", () => {
  const plan = layOut(
    [
      [0, 0, 10, 5],
      [10, 0, 30, 5],
      [0, 10, 40, 5],
    ],
    400,
    1000,
  );
  expect(plan.width).toBe(400);
  expect(plan.height).toBe(150);
  expect(plan.rooms[1]).toEqual({ x: 100, y: 0, w: 300, h: 50 });
  expect(plan.doors[0]![1]).toBeGreaterThan(25); // towards the corridor below it
  expect(plan.doors[2]![1]).toBeLessThan(125);
});

test("a turned plan is the same plan", () => {
  const plan = layOut(
    [
      [0, 0, 10, 5],
      [10, 0, 30, 5],
      [0, 10, 40, 5],
    ],
    400,
    1000,
  );
  const twice = turned(turned(plan));
  expect([twice.width, twice.height]).toEqual([plan.width, plan.height]);
  expect(turned(plan).rooms[1]).toEqual({ x: 100, y: 100, w: 50, h: 300 });
  for (const room of turned(plan).rooms) expect(room.x >= 0 && room.x + room.w <= turned(plan).width).toBe(true);
});

test("tiles do not overlap, whatever the distances are", () => {
  const found = tiles(fromDistances(new Array(49).fill(1), 7));
  expect(new Set(found.map(String)).size).toBe(7);
});

test("rooms without sizes do not overlap", () => {
  const { rooms } = layOut(
    [
      [0, 0],
      [1, 0],
      [0, 1],
      [2, 2],
    ],
    300,
    300,
  );
  for (const [i, a] of rooms.entries())
    for (const b of rooms.slice(0, i))
      expect(a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y).toBe(true);
});

test("what a layout costs, added up in two ways", () => {
  const flow = [0, 3, 1, 2, 0, 0, 5, 4, 0],
    distance = [0, 2, 7, 2, 0, 4, 7, 4, 0];
  expect(walked(flow, distance, [2, 0, 1])).toBe(3 * 7 + 1 * 4 + 2 * 7 + 5 * 4 + 4 * 2);
  const parts = shares(flow, distance, [2, 0, 1]);
  expect(parts.reduce((sum, part) => sum + part.way, 0)).toBe(2 * walked(flow, distance, [2, 0, 1]));
  expect(flows(flow, 3).map((one) => one.count)).toEqual([6, 5, 4]);
});

test("who changed places", () => {
  expect(exchanges([0, 1, 2, 3], [1, 0, 2, 3])).toEqual([[0, 1]]);
  expect(exchanges([0, 1, 2, 3], [1, 2, 0, 3])[0]!.sort()).toEqual([0, 1, 2]);
  expect(exchanges([2, 1], [2, 1])).toEqual([]);
});

test("places are found again from their distances", () => {
  const places = [
    [0, 0],
    [3, 0],
    [3, 4],
    [0, 4],
    [1, 1],
  ];
  const away = (list: number[][]) => list.flatMap((a) => list.map((b) => Math.hypot(a[0]! - b[0]!, a[1]! - b[1]!)));
  const found = fromDistances(away(places), 5);
  away(found).forEach((one, at) => expect(one).toBeCloseTo(away(places)[at]!, 4));
});

test("bows of opposite directions are the same line", () => {
  expect(bow([0, 0], [10, 0]).split("Q")[1]!.split(" ").slice(0, 2)).toEqual(
    bow([10, 0], [0, 0]).split("Q")[1]!.split(" ").slice(0, 2),
  );
});

test("points fit into their box", () => {
  const { one, other } = fit(
    [
      [0, 0],
      [100, 0],
    ],
    [[0, 50]],
    200,
    100,
    10,
  );
  for (const [x, y] of [...one, ...other]) {
    expect(x).toBeGreaterThanOrEqual(10 - 1e-9);
    expect(x).toBeLessThanOrEqual(190 + 1e-9);
    expect(y).toBeGreaterThanOrEqual(10 - 1e-9);
    expect(y).toBeLessThanOrEqual(90 + 1e-9);
  }
  expect(
    longest(
      [
        [0, 0],
        [9, 9],
      ],
      [
        [0, 1],
        [0, 0],
      ],
      [0, 1],
    ),
  ).toBe(1);
  expect(sortedRows([2, -1, 0])).toEqual([1, 2, 0]);
});

test("a matrix that is here is drawn in blocks", () => {
  const matrix = Array.from({ length: 200 }, (_, i) => Array.from({ length: 50 }, (_, j) => (i === j ? 1 : 0)));
  const heat = heatOf(matrix, null);
  expect([heat.shape, heat.height, heat.width]).toEqual([[200, 50], 67, 50]);
  expect(heat.columns.every((sum) => sum === 1)).toBe(true);
  expect(heat.rows.reduce((sum, one) => sum + one, 0)).toBe(50);
  expect(heat.values[0]).toBeCloseTo(1 / 3);
  const part = heatOf(matrix, { top: 10, bottom: 20, left: 10, right: 20 });
  expect([part.height, part.width, part.values[0]]).toEqual([10, 10, 1]);
});
