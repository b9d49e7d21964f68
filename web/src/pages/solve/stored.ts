/** The bench outlasts a reload of its page: what is small lies in the browser until the tab is closed. */

import { effect } from "@preact/signals";
import type { Cell } from "../../api/types";
import {
  active,
  type Choice,
  choice,
  type Doubtful,
  follows,
  FRESH,
  guarded,
  kept,
  overrides,
  problem,
  reading,
  readOnce,
  type Source,
  sources,
  wrong,
} from "./state";

const KEY = "allot.bench";
/** Characters in all; browsers give a page about five million. */
const MOST = 2_000_000;

interface KeptSource {
  filename: string;
  sample: string | null;
  doubtful: Doubtful;
  /** Its bytes in base 64; null where it has none, or too many. */
  body: string | null;
  /** Of a file in which a cell was changed there are only its cells. */
  cells: { name: string; cells: Cell[][] }[] | null;
}

interface Bench {
  problem: string;
  overrides: Record<number, string>;
  choice: Choice;
  kept: string[];
  active: number;
  follows: { job: string | null; title: string } | null;
  sources: KeptSource[];
}

const texts = new WeakMap<Blob, string>();

async function text64(body: Blob): Promise<string | null> {
  if (body.size > 0.75 * MOST) return null;
  if (!texts.has(body)) {
    const bytes = new Uint8Array(await body.arrayBuffer());
    let text = "";
    for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
    texts.set(body, btoa(text));
  }
  return texts.get(body)!;
}

async function keptOf(source: Source): Promise<KeptSource> {
  const whole = !source.sample && !source.body && source.sheets.every((sheet) => sheet.cells_whole);
  return {
    filename: source.filename,
    sample: source.sample,
    doubtful: source.doubtful ?? "",
    body: source.body && (await text64(source.body)),
    cells: whole ? source.sheets.map(({ name, cells }) => ({ name, cells })) : null,
  };
}

let turn = 0;

async function keep(bench: Omit<Bench, "sources">, laid: Source[]): Promise<void> {
  const own = ++turn;
  const found = await Promise.all(laid.map(keptOf));
  if (own !== turn) return; // the bench is another by now
  let room = MOST;
  const fitting = found.map((one) => {
    const size = (one.body?.length ?? 0) + (one.cells ? JSON.stringify(one.cells).length : 0);
    if (size > room) return { ...one, body: null, cells: null };
    room -= size;
    return one;
  });
  try {
    if (laid.length) sessionStorage.setItem(KEY, JSON.stringify({ ...bench, sources: fitting }));
    else sessionStorage.removeItem(KEY);
  } catch {
    sessionStorage.removeItem(KEY); // it has no room: what is there is of an earlier bench
  }
}

function found(): Bench | null {
  try {
    const bench = JSON.parse(sessionStorage.getItem(KEY) ?? "null") as Bench | null;
    return bench?.sources.length ? bench : null;
  } catch {
    return null;
  }
}

function sourceOf(one: KeptSource): Source | null {
  const { filename, sample, doubtful } = one;
  const bare = { filename, bytes: 0, tookS: 0, body: null, sample, sheets: [], doubtful };
  if (sample) return bare;
  if (one.body !== null) {
    const body = new Blob([Uint8Array.from(atob(one.body), (letter) => letter.charCodeAt(0))]);
    return { ...bare, bytes: body.size, body };
  }
  if (!one.cells) return null;
  const none = { role: "text" as const, corner: "", row_names: null, column_names: null, missing: 0, faults: [] };
  const more = { fault_count: 0, pairs: null, first: [0, 0] as [number, number], cells_whole: true };
  return {
    ...bare,
    sheets: one.cells.map(({ name, cells }) => ({ ...none, ...more, name, cells, cells_shape: [cells.length, 0] })),
  };
}

const lay = (bench: Bench): Promise<void> =>
  guarded(async () => {
    choice.value = { ...FRESH, ...bench.choice };
    const again: Source[] = [];
    const lost: string[] = [];
    for (const one of bench.sources) {
      const source = sourceOf(one);
      if (source) again.push(await readOnce(source));
      else lost.push(one.filename);
    }
    return () => {
      sources.value = again;
      follows.value = bench.follows;
      kept.value = new Set(bench.kept);
      if (!lost.length) [overrides.value, active.value] = [bench.overrides, bench.active];
      else
        wrong.value = `${lost.join(", ")} ${lost.length > 1 ? "were" : "was"} not kept when the page was loaded again: too much for the browser. Add ${lost.length > 1 ? "them" : "it"} once more.`;
    };
  });

/** Whoever types an address, or follows a link from elsewhere, begins anew. */
const isBack = (): boolean => {
  const [how] = performance.getEntriesByType("navigation") as PerformanceNavigationTiming[];
  return how?.type === "reload" || how?.type === "back_forward";
};

let begun = false;

/** Once: lay what was kept, unless something lies there already, and keep what is laid from now on. */
export async function outlast(named: boolean): Promise<void> {
  if (begun) return;
  begun = true;
  const bench = isBack() ? found() : null;
  if (bench && !sources.value.length && !reading.value) {
    if (!named) problem.value = bench.problem;
    await lay(bench);
  }
  let failed = bench !== null && !sources.value.length && wrong.value !== "";
  effect(() => {
    const now = {
      problem: problem.value,
      overrides: overrides.value,
      choice: choice.value,
      kept: [...kept.value],
      active: active.value,
      follows: follows.value,
    };
    failed = failed && !sources.value.length; // what could not be read just now may be read later
    if (!failed) void keep(now, sources.value);
  });
}
