/** What a person calls things. The service solves numbers; names stay in this browser, beside the job's id. */

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

export async function noteOf(id: string): Promise<Note | null> {
  return (await ask<Note>("readonly", (store) => store.get(id))) ?? null;
}

export async function keepNote(id: string, note: Note): Promise<void> {
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
