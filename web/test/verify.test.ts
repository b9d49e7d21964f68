import { describe, expect, test } from "vitest";
import { denseEntries, sparseEntries, type Claim, verifyAssignment } from "../src/verify/assignment";
import { inUnits, parts, toNumber, unitOf } from "../src/verify/exact";

const dense = (cost: number[][], assignment: number[], prices: number[], more: Partial<Claim> = {}): Claim => {
  const values = Float64Array.from(cost.flat());
  const [rows, columns] = [cost.length, cost[0]!.length];
  return {
    rows,
    columns,
    values,
    entries: denseEntries(values, rows, columns),
    assignment,
    prices,
    maximize: false,
    reject: null,
    ...more,
  };
};

test("a double is a whole number times a power of two", () => {
  for (const value of [0.1, -3.75, 5e-324, 1.7e308, 0, 123456789.125]) {
    const [mantissa, exponent] = parts(value);
    expect(Number(mantissa) * 2 ** Math.max(exponent, -1000) * 2 ** Math.min(0, exponent + 1000)).toBe(value);
  }
});

test("sums in units are exact where doubles are not", () => {
  const unit = unitOf([0.1, 0.2, 0.3]);
  const sum = inUnits(0.1, unit) + inUnits(0.2, unit);
  expect(0.1 + 0.2).not.toBe(0.3);
  expect(sum - inUnits(0.3, unit)).not.toBe(0n);
  expect(toNumber(sum, unit)).toBeCloseTo(0.3, 15);
});

describe("an assignment", () => {
  const cost = [
    [4, 1, 3],
    [2, 0, 5],
    [3, 2, 2],
  ];
  test("with prices that prove it is the best", () => {
    const verdict = verifyAssignment(dense(cost, [1, 0, 2], [2, 0, 1]));
    expect(verdict).toMatchObject({ holds: true, best: true, objective: 5, bound: 5 });
  });
  test("that is not the best is not called so", () => {
    const verdict = verifyAssignment(dense(cost, [0, 1, 2], [2, 0, 1]));
    expect(verdict).toMatchObject({ holds: true, best: false, objective: 6, bound: 5 });
  });
  test("that uses a column twice does not hold", () => {
    expect(verifyAssignment(dense(cost, [1, 1, 2], [2, 0, 1])).holds).toBe(false);
  });
  test("that leaves a row free does not hold", () => {
    expect(verifyAssignment(dense(cost, [1, -1, 2], [2, 0, 1])).holds).toBe(false);
  });
  test("that uses a forbidden pair does not hold", () => {
    expect(
      verifyAssignment(
        dense(
          [
            [Infinity, 1],
            [1, 5],
          ],
          [0, 1],
          [0, 0],
        ),
      ).holds,
    ).toBe(false);
  });
  test("of fewer rows than columns: a price above zero must not help", () => {
    const verdict = verifyAssignment(dense([[1, 2, 9]], [0], [0, 0, 5]));
    expect(verdict.bound).toBeLessThanOrEqual(1);
    expect(verdict.holds).toBe(true);
  });
  test("that is maximised, with rows that may stay free", () => {
    const verdict = verifyAssignment(
      dense(
        [
          [7, 4],
          [6, 3],
        ],
        [0, -1],
        [1, 0],
        { maximize: true, reject: [0, 5] },
      ),
    );
    expect(verdict).toMatchObject({ holds: true, best: true, objective: 12, bound: 12 });
  });
  test("that is sparse", () => {
    const values = [7, 4, 6, 3, 5, 8];
    const claim: Claim = {
      rows: 3,
      columns: 3,
      values,
      entries: sparseEntries([0, 2, 4, 6], [0, 1, 1, 2, 0, 2], values),
      assignment: [0, 1, 2],
      prices: [0, 0, 0],
      maximize: true,
      reject: null,
    };
    expect(verifyAssignment(claim)).toMatchObject({ holds: true, best: true, objective: 21, bound: 21 });
  });
});

test("no prices whatever make a bound that a better answer breaks", () => {
  let seed = 7;
  const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
  for (let round = 0; round < 200; round++) {
    const cost = Array.from({ length: 3 }, () => Array.from({ length: 4 }, () => Math.round(random() * 1000) / 8));
    const prices = Array.from({ length: 4 }, () => random() * 40 - 20);
    let best = Infinity;
    for (let a = 0; a < 4; a++)
      for (let b = 0; b < 4; b++)
        for (let c = 0; c < 4; c++)
          if (new Set([a, b, c]).size === 3) best = Math.min(best, cost[0]![a]! + cost[1]![b]! + cost[2]![c]!);
    expect(verifyAssignment(dense(cost, [0, 1, 2], prices)).bound!).toBeLessThanOrEqual(best);
  }
});
