/** Keys that work on every page, and those that a page adds while it is shown. */

import { signal } from "@preact/signals";
import { useLayoutEffect } from "preact/hooks";
import { go, path } from "./router";

export const helpShown = signal(false);
export const commandsShown = signal(false);
export type Bindings = Record<string, () => void>;

const stack: Bindings[] = [];
let leader = 0;
export const PAGE_KEYS: [string, string, string][] = [
  ["g s", "Solve", "/solve"],
  ["g j", "Jobs", "/jobs"],
  ["g c", "Compare", "/compare"],
  ["g w", "Workers", "/workers"],
  ["g d", "Docs", "/docs"],
];
const PAGES = Object.fromEntries(PAGE_KEYS.map(([keys, , address]) => [keys.slice(2), address]));

const typing = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable ||
    ["SELECT", "TEXTAREA"].includes(target.tagName) ||
    (target.tagName === "INPUT" && !["checkbox", "radio"].includes((target as HTMLInputElement).type)));

export function useKeys(bindings: Bindings, depends: unknown[]): void {
  useLayoutEffect(() => {
    stack.push(bindings);
    return () => void stack.splice(stack.indexOf(bindings), 1);
  }, depends);
}

addEventListener("keydown", (event) => {
  const withControl = event.ctrlKey || event.metaKey;
  const name = withControl ? `Ctrl ${event.key}` : event.key;
  if (event.altKey || (typing(event.target) && !withControl)) return;
  if (leader && performance.now() - leader < 1200 && PAGES[event.key]) {
    leader = 0;
    event.preventDefault();
    if (event.key === "d") location.assign("/docs");
    else go(PAGES[event.key]!);
    return;
  }
  leader = event.key === "g" && !withControl ? performance.now() : 0;
  const action = stack.findLast((one) => one[name])?.[name] ?? GLOBAL[name];
  if (!action) return;
  event.preventDefault();
  action();
});

const focusFind = () => document.getElementById("find")?.focus();
const GLOBAL: Bindings = {
  "/": focusFind,
  "Ctrl k": () => path.value !== "/shared" && (commandsShown.value = !commandsShown.value),
  n: () => go("/solve"),
  "?": () => (helpShown.value = !helpShown.value),
};

export const KEYS: [string, string][] = [
  ["/", "find a job"],
  ["Ctrl k", "commands"],
  ...PAGE_KEYS.map(([keys, page]): [string, string] => [keys, page]),
  ["n", "new"],
  ["j k", "next row, row before"],
  ["x", "choose a row"],
  ["c", "compare the chosen"],
  ["Enter", "open"],
  ["Ctrl Enter", "solve"],
  [".", "stop and keep the best"],
  ["l", "log or linear time"],
  ["f", "fix a department"],
  ["?", "these keys"],
];

/** What the page that is shown can do, by its own keys; moving from row to row has no name of its own. */
export function offered(): { keys: string; what: string; run: () => void }[] {
  const found = new Map(stack.flatMap((bindings) => Object.entries(bindings)));
  const named = new Map(KEYS);
  return [...found].flatMap(([keys, run]) =>
    named.has(keys) && keys !== "Enter" ? [{ keys, what: named.get(keys)!, run }] : [],
  );
}
