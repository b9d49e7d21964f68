import { expect, test } from "vitest";
import type { Job, Result } from "../src/api/types";
import { strips } from "../src/charts/bars";
import { levels } from "../src/charts/heat";
import { ticks } from "../src/charts/scale";
import { changes, planOf } from "../src/pages/compare/changes";
import { finding, judge, named, sameNumbers } from "../src/pages/compare/judged";
import type { Scenario } from "../src/pages/compare/Plans";

const one = (objective: number, more: { bound?: number; options?: object; title?: string; blob?: string } = {}) =>
  ({
    job: {
      id: "0".repeat(32),
      solver: "uot",
      options: more.options ?? {},
      input_digests: { x: { blob: more.blob ?? "sha256:1" } },
      time_limit_s: 60,
    } as unknown as Job,
    result: { objective, certificate: { bound: more.bound ?? null, facts: {} } } as unknown as Result,
    note: more.title ? { title: more.title } : null,
    name: "",
    answer: null,
  }) as unknown as Scenario;
const value = ({ result }: Scenario) => result.objective ?? NaN;
const shown = (raw: number) => `${raw} minutes`;

test("a range thinner than a number can be has one tick, and ends", () => {
  expect(ticks(232.7, 232.70000000000002, 5)).toEqual([232.7]);
  expect(ticks(1e300, 1e300 * (1 + 2e-16), 5).length).toBeLessThan(3);
});

test("answers that are the same but for rounding lie at one place of the strip, and not at its ends", () => {
  const { shapes, low, high } = strips(
    [
      { floor: 232.69999999999996, found: 232.7 },
      { floor: null, found: NaN },
    ],
    null,
    472,
  );
  expect(high - low).toBeGreaterThan(0.1);
  expect(Math.abs(shapes[0]!.found - 236)).toBeLessThan(1);
  expect(Math.abs(shapes[0]!.found - shapes[0]!.floor!)).toBeLessThan(0.01);
});

test("scenarios are called by what they asked for and the others did not", () => {
  const three = [0.05, 0.2, 0.2].map((reg) => one(1, { title: "Cells", options: { reg, reg_m: 1 } }));
  named(three);
  expect(three.map(({ name }) => name)).toEqual(["Reg 0.05", "Reg 0.2", "Reg 0.2 (2)"]);
  const titled = [one(1, { title: "Noon" }), one(1, { title: "Dusk", options: { log: true } })];
  named(titled);
  expect(titled.map(({ name }) => name)).toEqual(["Noon, log by default", "Dusk, log"]);
});

test("of equal answers none is called better, and the best proved comes first", () => {
  const two = [one(113, { bound: 100 }), one(113 + 1e-12, { bound: 109 })];
  named(two);
  const judged = judge(two, value, false);
  expect(judged.level).toBe(true);
  expect(judged.best).toBe(two[1]);
  expect(finding(judged, two, value, shown)).toMatch(/^Both come to 113/);
});

test("the best is told with how far the next is, in either direction", () => {
  const three = [one(NaN), one(90, { title: "Night" }), one(100, { title: "Day" })];
  named(three);
  expect(finding(judge(three, value, false), three, value, shown)).toBe("Night: 90 minutes, 10% less than the next");
  expect(finding(judge(three, value, true), three, value, shown)).toBe("Day: 100 minutes, 11.2% more than the next");
});

test("other numbers are noticed", () => {
  expect(sameNumbers([one(1), one(2)])).toBe(true);
  expect(sameNumbers([one(1), one(2, { blob: "sha256:2" })])).toBe(false);
  expect(sameNumbers([one(1), one(2, { blob: "sha256:2" })], ["flow"])).toBe(true);
});

test("plans are fetched where they are only referred to, and differ where most has changed", async () => {
  const fetched = async () => ({ shape: [2, 2], values: Float64Array.of(1, 2, 3, 4), exact: null });
  expect(await planOf({ blob: "b", shape: [2, 2] }, fetched)).toEqual([
    [1, 2],
    [3, 4],
  ]);
  expect(await planOf({ blob: "b", shape: [1e5, 1e5] }, fetched)).toBeNull();
  const plans = [
    [
      [1, 0],
      [0, 5],
    ],
    [
      [1, 2],
      [0, 1],
    ],
  ];
  expect(changes(plans)).toEqual([
    [1, 1, 5, 1],
    [0, 1, 0, 2],
  ]);
});

test("pictures of one scale give one amount one colour", () => {
  expect(levels([4, 0], true, 16)[0]).toBe(levels([4, 16], true, 16)[0]);
  expect(levels([4, 0], true, 16)[0]).not.toBe(levels([16, 0], true, 16)[0]);
});
