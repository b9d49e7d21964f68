import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Progress } from "../src/api/types";
import { curve } from "../src/charts/curve";
import { extended, type History, KEPT, NOTHING, shown } from "../src/pages/job/history";

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => undefined, removeItem: () => undefined });
  vi.stubGlobal("addEventListener", () => undefined);
  vi.stubGlobal("removeEventListener", () => undefined);
});
afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const report = (at: number, objective: number, bound: number | null = null, permutation?: number[]): Progress => ({
  phase: "solve",
  fraction: null,
  iteration: 0,
  objective,
  bound,
  gap: null,
  elapsed_s: at,
  permutation,
});
const BOX = { width: 208, height: 222 };

/** A job of many hours that improves twenty times a second. */
function long(hours: number, step = 0.05): { kept: History; all: Progress[] } {
  const all: Progress[] = [];
  let kept = NOTHING;
  const layout = Array.from({ length: 2000 }, (_, i) => i);
  for (let at = 0.001, k = 0; at < hours * 3600; at += step, k++) {
    all.push(report(at, 1e6 - k, k % 7, layout));
    if (k % 1000 === 999) kept = extended(kept, all.slice(-1000));
  }
  return { kept, all };
}

test("a job of an hour is remembered in a few thousand moments and eight answers", () => {
  const { kept, all } = long(1);
  expect(all.length).toBeGreaterThan(70_000);
  expect(kept.moments.length).toBeLessThan(7600);
  expect(kept.betters.length).toBe(KEPT);
  expect(kept.improved).toBe(Math.floor(all.length / 1000) * 1000);
  expect(kept.betters.at(-1)!.permutation).not.toBeNull();
});

test.each([true, false])("its curve is the one of all its reports, to half a pixel (log %s)", (log) => {
  const { kept, all } = long(0.1);
  const last = kept.moments.at(-1)!;
  const told = all.slice(0, kept.improved);
  const whole = told.map(({ elapsed_s: at, objective, bound }) => ({ at, objective, bound }));
  const [thin, full] = [kept.moments, whole].map((moments) => curve(moments, last.at, 360, BOX, { log, today: null }));
  expect(thin!.yTicks).toEqual(full!.yTicks);
  for (let k = 0; k < told.length; k += 37) {
    const at = told[k]!.elapsed_s;
    const near = kept.moments.reduce((a, b) => (Math.abs(b.at - at) < Math.abs(a.at - at) ? b : a));
    expect(Math.abs(thin!.x(near.at) - full!.x(at))).toBeLessThanOrEqual(0.5);
    expect(Math.abs(thin!.y(near.objective!) - full!.y(told[k]!.objective!))).toBeLessThan(2);
  }
});

test("what changes nothing is not kept, and the newest always is", () => {
  const kept = extended(NOTHING, [report(0.1, 9), report(0.2, 9), report(100, 8, 3), report(100.001, 8, 4)]);
  expect(kept.moments).toEqual([
    { at: 0.1, objective: 9, bound: null },
    { at: 100, objective: 8, bound: 3 },
    { at: 100.001, objective: 8, bound: 4 },
  ]);
  expect(kept.improved).toBe(2);
  const next = extended(kept, [report(100.002, 7, 4)]);
  expect(next.moments.at(-1)).toEqual({ at: 100.002, objective: 7, bound: 4 });
  expect(next.moments.length).toBe(3);
});

test("a request outlasts a broken line, and says when it will try again", async () => {
  const { Persistent } = await import("../src/api/persist");
  const { Refused, Unreachable } = await import("../src/api/http");
  const told: (number | string)[] = [];
  const asked = new Persistent({ lost: (s) => told.push(s), back: () => told.push("back") });
  const faults = [new Unreachable("no line"), new Refused(503, "starting"), new Unreachable("no line")];
  const answer = asked.ask(async () => {
    const fault = faults.shift();
    if (fault) throw fault;
    return 7;
  });
  await vi.advanceTimersByTimeAsync(1000 + 2000);
  asked.now(); // a person does not wait for the third
  expect(await answer).toBe(7);
  expect(told).toEqual([1, 2, 4, "back"]);
  await expect(asked.ask(() => Promise.reject(new Refused(404, "gone")))).rejects.toThrow("gone");
  asked.stop();
  await expect(asked.ask(() => Promise.reject(new Unreachable("no line")))).rejects.toThrow("no line");
});

test("an answer that breaks off is no answer", async () => {
  const { get, Unreachable } = await import("../src/api/http");
  const broken = { ok: true, status: 200, json: () => Promise.reject(new TypeError("network error")) };
  vi.stubGlobal("fetch", async () => broken);
  await expect(get("/v1/jobs/1")).rejects.toBeInstanceOf(Unreachable);
});

test("the picture of a running job is the last answer that a report carried", () => {
  const { betters } = extended(NOTHING, [report(1, 9, null, [2, 0, 1]), report(2, 8, null, [0, 1, -1]), report(3, 7)]);
  expect(shown(betters)).toEqual([0, 1, -1]);
  expect(shown(extended(NOTHING, [report(1, 9)]).betters)).toBeNull();
});
