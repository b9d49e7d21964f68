import { expect, test } from "vitest";
import { sheetText } from "../src/files/sheets";

test("a matrix is a sheet again, with its names and its gaps", () => {
  const values = Float64Array.from([1, Infinity, 0.1, -2]);
  expect(sheetText({ shape: [2, 2], values, exact: null }, "cost", ['An "n"', "Ben"], null)).toBe(
    '"cost"\t"column 1"\t"column 2"\n"An ""n"""\t1\t\n"Ben"\t0.1\t-2',
  );
});

test("whole numbers keep every digit", () => {
  const exact = BigInt64Array.from([2n ** 60n + 1n, -(2n ** 63n)]);
  expect(sheetText({ shape: [1, 2], values: new Float64Array(2), exact }, "cost", ["a"], ["b", "c"])).toBe(
    '"cost"\t"b"\t"c"\n"a"\t1152921504606846977\t',
  );
});
