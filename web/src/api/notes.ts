/** What a person calls things. The service solves numbers; names are kept beside the job, there and in this browser. */

import { get, send } from "./http";

export interface Note {
  title: string;
  rows: string[] | null;
  columns: string[] | null;
  /** What one is called: "department", "taxi". */
  rowWord: string;
  columnWord: string;
  /** The objective in words: factor, unit, and what it measures ("km", "walked a week"). */
  factor: number;
  unit: string;
  measure: string;
  /** A layout's rooms: x, y, w, h each; or the two point sets of an assignment or a transport. */
  rooms?: number[][];
  from?: number[][];
  to?: number[][];
  colours?: boolean;
  today?: number[];
  fixed?: Record<string, number>;
  saved: number;
}

const LIMIT = 300;
let opened: Promise<IDBDatabase> | null = null;

function open(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const asked = indexedDB.open("allot", 1);
    asked.onupgradeneeded = () => asked.result.createObjectStore("notes");
    asked.onsuccess = () => resolve(asked.result);
    asked.onerror = () => reject(asked.error);
  });
  return opened;
}

async function ask<T>(mode: IDBTransactionMode, work: (store: IDBObjectStore) => IDBRequest<T>): Promise<T | null> {
  try {
    const store = (await open()).transaction("notes", mode).objectStore("notes");
    return await new Promise((resolve, reject) => {
      const request = work(store);
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  } catch {
    return null; // a private window may have no database: names are then numbers
  }
}

/** The names of a job: those of this browser, else those that the service has, where it has any. */
export async function noteOf(id: string, noted = true): Promise<Note | null> {
  const here = await ask<Note>("readonly", (store) => store.get(id));
  if (here || !noted) return here ?? null;
  const told = asNote(await get<unknown>(`/v1/jobs/${id}/note`).catch(() => null));
  if (told) await keepHere(id, told);
  return told;
}

const texts = (value: unknown): string[] | null =>
  Array.isArray(value) && value.every((one) => typeof one === "string") ? value : null;
const numbers = (value: unknown): number[] | undefined =>
  Array.isArray(value) && value.every((one) => typeof one === "number") ? value : undefined;
const lines = (value: unknown): number[][] | undefined =>
  Array.isArray(value) && value.every((one) => numbers(one)) ? value : undefined;
const text = (value: unknown): string => (typeof value === "string" ? value.slice(0, 200) : "");

/** What came from elsewhere, as far as it is a note: another person may have written it. */
export function asNote(value: unknown): Note | null {
  if (!value || typeof value !== "object") return null;
  const told = value as Record<string, unknown>;
  return {
    title: text(told.title),
    rows: texts(told.rows),
    columns: texts(told.columns),
    rowWord: text(told.rowWord) || "row",
    columnWord: text(told.columnWord) || "column",
    factor: typeof told.factor === "number" && Number.isFinite(told.factor) ? told.factor : 1,
    unit: text(told.unit),
    measure: text(told.measure) || "in all",
    rooms: lines(told.rooms),
    from: lines(told.from),
    to: lines(told.to),
    colours: told.colours === true,
    today: numbers(told.today),
    saved: Date.now(),
  };
}

const MOST_BYTES = 1 << 20;

export async function keepNote(id: string, note: Note): Promise<void> {
  await keepHere(id, note);
  const body = JSON.stringify(note);
  if (new Blob([body]).size > MOST_BYTES) return; // longer than the service keeps: the names stay in this browser
  await send(`/v1/jobs/${id}/note`, { method: "PUT", body }).catch(() => undefined);
}

async function keepHere(id: string, note: Note): Promise<void> {
  await ask("readwrite", (store) => store.put(note, id));
  const count = await ask<number>("readonly", (store) => store.count());
  if (count !== null && count > LIMIT) await forgetOldest(count - LIMIT);
}

export async function forgetNote(id: string): Promise<void> {
  await ask("readwrite", (store) => store.delete(id));
}

async function forgetOldest(count: number): Promise<void> {
  const ids = (await ask("readonly", (store) => store.getAllKeys())) ?? [];
  const notes = (await ask<Note[]>("readonly", (store) => store.getAll())) ?? [];
  const oldest = ids.map((id, i) => [String(id), notes[i]?.saved ?? 0] as const).sort((a, b) => a[1] - b[1]);
  for (const [id] of oldest.slice(0, count)) await forgetNote(id);
}
