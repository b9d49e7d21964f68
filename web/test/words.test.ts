import { describe, expect, test } from "vitest";
import type { Job, Result } from "../src/api/types";
import {
  boundText,
  doneWords,
  floorNumber,
  gapPercent,
  listWords,
  number,
  percentUp,
  plural,
  runningWords,
  seconds,
  sizeWords,
} from "../src/words";

const result = (objective: number, bound: number | null, termination = "time_limit"): Result =>
  ({ objective, termination, certificate: { bound, facts: {} } }) as unknown as Result;

describe("the gap", () => {
  test("is a share of the bound, not of the objective", () => {
    expect(gapPercent(113.8, 100)).toBeCloseTo(13.8, 10);
    expect(gapPercent(88, 100)).toBeCloseTo(12, 10); // maximising: the bound lies above
  });
  test("says nothing beside a bound that is not positive", () => {
    expect(gapPercent(5, 0)).toBeNull();
    expect(gapPercent(5, -3)).toBeNull();
    expect(gapPercent(5, null)).toBeNull();
    expect(gapPercent(-3, -3)).toBe(0);
  });
  test.each([
    [2.21, "2.3"],
    [2.3, "2.3"],
    [13.8, "13.8"],
    [0.0041, "0.0041"],
    [0.00411, "0.0042"],
    [101.2, "102"],
    [0, "0"],
    [1e-9, "0.001"],
    [0.1 + 0.2, "0.3"],
  ])("%f percent is said as %s", (percent, text) => {
    expect(percentUp(percent)).toBe(text);
  });
  test("is never said to be smaller than it is", () => {
    for (let k = 0; k < 3000; k++) {
      const percent = 10 ** (-3 + (k * 5) / 3000) * 1.00037;
      expect(Number(percentUp(percent))).toBeGreaterThanOrEqual(percent * (1 - 1e-11));
      expect(Number(percentUp(percent))).toBeLessThan(percent * 1.2);
    }
  });
});

test("words for a job that runs and for one that is done", () => {
  expect(runningWords(102.3, 100)).toBe("Within 2.3% of the best possible, and the proof goes on.");
  expect(runningWords(5, -1)).toContain("Found 5");
  expect(doneWords(result(100, 100, "optimal"))).toBe("The best possible; proved.");
  expect(doneWords(result(100, 90, "optimal"))).toBe("The best possible; all others ruled out.");
  expect(doneWords(result(232.7, 232.69999999999, "optimal"))).toBe("The best possible; proved, up to rounding.");
  const alike = { ...result(1e-17, 0, "optimal"), solver: "gromov" };
  expect(doneWords(result(0.0016, 0.00067999, "converged"))).toContain("not beyond 0.0006799; proved."); // not 0.00068
  expect(doneWords(alike)).toBe("The best possible; proved, up to rounding.");
  expect(doneWords(result(102, 100))).toBe(
    "Stopped at your limit; the best so far is kept. Within 2% of the best possible; proved.",
  );
  expect(doneWords(result(102, null, "stopped"))).toContain("No proof of how good this is.");
  const job = { state: "running", termination: null } as unknown as Job;
  expect(listWords(job, 102.3, 100)).toBe("within 2.3% so far");
});

test("the job that is taken next has place 1, and nothing ahead of it", () => {
  const waiting = (place: number | null) => listWords({ state: "queued", queue_position: place } as Job, null, null);
  expect([1, 2, 3, null].map(waiting)).toEqual(["starts next", "one job ahead", "2 jobs ahead", "starts next"]);
});

test("numbers", () => {
  expect(number(12937)).toBe("12,937");
  expect(number(568.62)).toBe("568.6");
  expect(number(0.082071)).toBe("0.08207");
  expect(number(-203.84)).toBe("−203.8");
  expect(number(Infinity)).toBe("∞");
  expect(floorNumber(556.29)).toBe("556.2");
  expect(floorNumber(-1.23456)).toBe("−1.235");
  expect(boundText(232.69999999999, 232.7, false)).toBe("232.7");
  expect(boundText(99.96, 90, true)).toBe("99.96");
  expect(boundText(1234.567, 1000, true)).toBe("1,235");
});

test("times and counts", () => {
  expect([0.0002, 0.021, 0.11, 9.9, 24, 60, 64, 600, 7200].map(seconds)).toEqual([
    "< 1 ms",
    "21 ms",
    "0.11 s",
    "9.9 s",
    "24 s",
    "1 min",
    "1:04 min",
    "10 min",
    "2 h",
  ]);
  expect([plural(1, "row"), plural(2, "company"), plural(3, "box"), plural(2, "day")]).toEqual([
    "1 row",
    "2 companies",
    "3 boxes",
    "2 days",
  ]);
});

test("a transport between points is as large as its points are many, kept or not", () => {
  const points = (count: number, how: object) => ({ ...how, shape: [count, 2] });
  for (const how of [{ blob: "sha256:1" }, { digest: "sha256:1" }]) {
    const job = { solver: "uot", input_digests: { x: points(20, how), y: points(30, how) } };
    expect(sizeWords(job as unknown as Job)).toBe("Transport, 20 × 30");
  }
});

test("several problems between points are counted, as all their points together are no problem", () => {
  const points = (count: number) => ({ blob: "sha256:1", shape: [count, 4] });
  const sizes = { blob: "sha256:2", shape: [9, 2] };
  const job = { solver: "lap", input_digests: { x: points(200), y: points(300), sizes } };
  expect(sizeWords(job as unknown as Job)).toBe("Assign, 9 problems");
});
