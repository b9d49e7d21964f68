/** What scenarios are called, which is best, and whether they may be compared at all. */

import type { Input } from "../../api/types";
import { gapPercent, number, percentUp } from "../../words";
import type { Scenario } from "./Plans";

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
const SAID = new Set(["fixed", "warm_start"]);

/** Option names that not all scenarios give the same value. */
function differing(found: Scenario[]): string[] {
  const names = new Set(found.flatMap(({ job }) => Object.keys(job.options)));
  return [...names].filter(
    (name) => !SAID.has(name) && new Set(found.map(({ job }) => JSON.stringify(job.options[name]))).size > 1,
  );
}

/** Names that tell them apart: what each asked for that the others did not. */
export function named(found: Scenario[]): void {
  const options = differing(found);
  const limits = new Set(found.map(({ job }) => job.time_limit_s)).size > 1;
  const titles = new Set(found.map(({ note }) => note?.title ?? "")).size > 1;
  const seen = new Map<string, number>();
  for (const one of found) {
    const { job, note } = one;
    const fixed = Object.keys((job.options.fixed as object) ?? {}).length;
    const parts = [
      fixed ? `${fixed} must stay` : "",
      job.input_digests.linear ? "moves counted" : "",
      ...options.map((name) => optionWords(name.replaceAll("_", " "), job.options[name])),
      limits && job.time_limit_s ? `${job.time_limit_s} s` : "",
    ].filter(Boolean);
    const own = titles ? (note?.title ?? job.id.slice(0, 8)) : "";
    const plain = job.solver === "qap" ? "All free" : (note?.title ?? job.id.slice(0, 8));
    const name = capital([own, ...parts].filter(Boolean).join(", ")) || plain;
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    one.name = count > 1 ? `${name} (${count})` : name;
  }
}

function optionWords(name: string, value: unknown): string {
  if (typeof value === "boolean") return value ? name : `no ${name}`;
  return `${name} ${value === undefined ? "by default" : typeof value === "number" ? number(value) : String(value)}`;
}

/** What a job begins with, and what is charged beside the problem, may differ: the problem is the same. */
const BESIDE = new Set(["linear", "permutation0"]);

const digestOf = (input: Input): string =>
  ("csr" in input ? [input.csr.indptr, input.csr.indices, input.csr.values] : [input])
    .map((one) => one.blob ?? one.digest)
    .join();

/** True if all were given the same numbers; `names` alone are looked at, where any are given. */
export function sameNumbers(found: Scenario[], names?: string[]): boolean {
  const told = found.map(({ job }) =>
    JSON.stringify(
      Object.entries(job.input_digests)
        .filter(([name]) => (names ? names.includes(name) : !BESIDE.has(name)))
        .map(([name, input]) => [name, digestOf(input)])
        .sort(),
    ),
  );
  return new Set(told).size === 1;
}

const level = (a: number, b: number): boolean => Math.abs(a - b) <= 1e-9 * Math.max(Math.abs(a), Math.abs(b));

export interface Judged {
  best: Scenario;
  /** All come to the same. */
  level: boolean;
}

/** The best by what it comes to; of several that come to the same, the one that more is proved of. */
export function judge(found: Scenario[], value: (one: Scenario) => number, maximize: boolean): Judged {
  const gap = ({ result }: Scenario) => gapPercent(result.objective, result.certificate.bound) ?? Infinity;
  const better = (a: Scenario, b: Scenario): boolean => {
    if (!Number.isFinite(value(a)) || !Number.isFinite(value(b))) return Number.isFinite(value(a));
    return level(value(a), value(b)) ? gap(a) < gap(b) : maximize ? value(a) > value(b) : value(a) < value(b);
  };
  const best = found.reduce((a, b) => (better(b, a) ? b : a));
  return { best, level: found.every((one) => level(value(one), value(best))) };
}

/** "Reg 0.05: 0.08 cost of moving, 2% less than the next", or that there is nothing between them. */
export function finding(
  { best, level: same }: Judged,
  found: Scenario[],
  value: (one: Scenario) => number,
  shown: (raw: number) => string,
): string {
  if (same) return `${found.length === 2 ? "Both" : `All ${found.length}`} come to ${shown(value(best))}`;
  const others = found.filter((one) => Number.isFinite(value(one)) && !level(value(one), value(best)));
  if (!others.length) return `${best.name}: ${shown(value(best))}`;
  const next = others.reduce((a, b) => (Math.abs(value(b) - value(best)) < Math.abs(value(a) - value(best)) ? b : a));
  const percent = (100 * Math.abs(value(next) - value(best))) / Math.abs(value(next));
  const by = `${percentUp(percent)}% ${value(best) < value(next) ? "less" : "more"} than the ${found.length === 2 ? "other" : "next"}`;
  return `${best.name}: ${shown(value(best))}${Number.isFinite(percent) ? `, ${by}` : ""}`;
}
