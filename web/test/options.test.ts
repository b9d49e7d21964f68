import { expect, test } from "vitest";
import { controlOf, shownOf, valueOf } from "../src/pages/solve/options";

test("an option that nobody has heard of is asked for in a form that fits", () => {
  expect(controlOf({ type: "boolean", default: true })).toEqual({ kind: "switch" });
  expect(controlOf({ enum: ["a", "b"], type: "string" })).toEqual({ kind: "choice", choices: ["a", "b"], none: false });
  expect(controlOf({ anyOf: [{ const: "a" }, { const: "b" }, { type: "null" }] })).toEqual({
    kind: "choice",
    choices: ["a", "b"],
    none: true,
  });
  expect(controlOf({ anyOf: [{ type: "integer", minimum: 1, maximum: 9 }, { type: "null" }] })).toEqual({
    kind: "number",
    whole: true,
    min: 1,
    max: 9,
  });
  expect(controlOf({ anyOf: [{ anyOf: [{ type: "integer" }, { type: "number" }] }, { type: "null" }] })).toMatchObject({
    kind: "number",
    whole: false,
  });
});

test("what has several forms is a line of text that says which", () => {
  const several = controlOf({ anyOf: [{ type: "number" }, { const: "inf", type: "string" }, { type: "array" }] });
  expect(several).toEqual({ kind: "text", under: "a number, or inf, or a list, as 1, 2" });
  expect(controlOf({ type: "object" })).toEqual({ kind: "text", under: 'pairs, as {"0": 3}' });
  expect(controlOf({})).toEqual({ kind: "text", under: "" });
});

test("what is typed there is what JSON would say", () => {
  expect(valueOf(" ")).toBe(undefined);
  expect(valueOf("0.5")).toBe(0.5);
  expect(valueOf("inf")).toBe("inf");
  expect(valueOf("1, 2")).toEqual([1, 2]);
  expect(valueOf("[3]")).toEqual([3]);
  expect(valueOf("gilmore-lawler, rlt1")).toEqual(["gilmore-lawler", "rlt1"]);
  expect(valueOf('{"0": 3}')).toEqual({ "0": 3 });
  for (const value of [0.5, "inf", [1, 2], { "0": 3 }]) expect(valueOf(shownOf(value))).toEqual(value);
});
