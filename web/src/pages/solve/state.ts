/** What lies on the bench: files, what their sheets are used for, and how to solve. */

import { computed, signal } from "@preact/signals";
import { get, Refused, send, words } from "../../api/http";
import type { Cell, Preview, Sheet } from "../../api/types";
import { assignUses, type Use } from "./uses";

export interface Source {
  filename: string;
  bytes: number;
  tookS: number;
  body: Blob | null;
  sample: string | null;
  sheets: Sheet[];
  /** What a person says of lines that may hold names or numbers; "" before. */
  doubtful?: Doubtful;
}

export type Doubtful = "" | "names" | "numbers";

export interface Choice {
  limitS: number;
  maximize: boolean;
  stay: number[];
  beginToday: boolean;
  moveCost: number | null;
  mayStayFree: boolean;
  spread: number;
  loss: number | null;
  metric: string;
  options: Record<string, unknown>;
}

export const FRESH: Choice = {
  limitS: 60,
  maximize: false,
  stay: [],
  beginToday: true,
  moveCost: null,
  mayStayFree: false,
  spread: 0.05,
  loss: 1,
  metric: "euclidean",
  options: {},
};

export const problem = signal("lap");
export const sources = signal<Source[]>([]);
export const overrides = signal<Record<number, string>>({});
export const choice = signal<Choice>({ ...FRESH });
export const reading = signal(false);
/** True while nothing but cells that a person has typed is read: what is pressed then waits for them. */
export const typed = signal(false);
export const wrong = signal("");
export const active = signal(0);
export const kept = signal<Set<string>>(new Set());

/** The job whose numbers are being changed: the next one begins with its answer, and is named after it. */
export const follows = signal<{ job: string | null; title: string } | null>(null);

export const sheets = computed(() => sources.value.flatMap((source) => source.sheets));
export const uses = computed<Use[]>(() => assignUses(problem.value, sheets.value, overrides.value));
export const sheetFor = (name: string): Sheet | undefined => sheets.value[uses.value.findIndex((use) => use === name)];

/** What an empty cell means: nothing flows in a layout, nothing is between a thing and itself; elsewhere the pair is not allowed. */
export const missing = computed(() =>
  ["qap", "gromov"].includes(problem.value)
    ? "zero"
    : problem.value === "auction" || choice.value.maximize
      ? "-inf"
      : "inf",
);
export const missingWords = computed(() => (missing.value === "zero" ? "0" : "“not allowed”"));

async function preview(body: Blob, filename: string, doubtful: Doubtful = ""): Promise<Preview> {
  const asked = new URLSearchParams({ filename, missing: missing.value, doubtful });
  return (
    await send(`/v1/previews?${asked}`, {
      method: "POST",
      body,
      headers: { "Content-Type": "application/octet-stream" },
    })
  ).json();
}

/** What becomes of the bench once something was read. */
export type Laid = () => void;

let last: Promise<void> = Promise.resolve();
let waiting = 0;
let cleared = 0;

/** Once all that was asked for before is read, whether it could be. */
export async function settled(): Promise<boolean> {
  const open = waiting > 0;
  await last;
  return !open || wrong.value === "";
}

/**
 * One after another: whoever begins while another reads would put back the sheets that they both began with.
 *
 * `undone` says what was not done if it fails.
 */
export function guarded(work: () => Promise<Laid>, undone = ""): Promise<void> {
  const asked = cleared;
  typed.value = undone !== "" && (waiting === 0 || typed.value);
  waiting += 1;
  reading.value = true;
  last = last.then(async () => {
    wrong.value = "";
    try {
      const lay = await work();
      if (asked === cleared) lay(); // else it was asked for before the bench was cleared
    } catch (error) {
      if (asked === cleared) wrong.value = [undone, words(error)].filter(Boolean).join(" ");
    } finally {
      waiting -= 1;
      reading.value = waiting > 0;
    }
  });
  return last;
}

const clear = (): void => {
  follows.value = null;
  overrides.value = {};
  kept.value = new Set();
  active.value = 0;
  choice.value = { ...FRESH, limitS: choice.value.limitS };
};

async function read(body: Blob, filename: string, doubtful: Doubtful = ""): Promise<Source> {
  const begun = performance.now();
  const found = await preview(body, filename, doubtful);
  return {
    filename,
    bytes: body.size,
    tookS: (performance.now() - begun) / 1000,
    body,
    sample: null,
    sheets: found.sheets,
    doubtful,
  };
}

export const addFiles = (files: Iterable<File>, replace: boolean): Promise<void> =>
  guarded(async () => {
    const found: Source[] = [];
    const not: string[] = [];
    for (const file of files) {
      try {
        found.push(await read(file, file.name));
      } catch (error) {
        if (!(error instanceof Refused) || error.status !== 422) throw error;
        not.push(unread(file.name, error));
      }
    }
    return () => {
      wrong.value = not.join(" ");
      if (!found.length) return;
      if (replace) clear();
      sources.value = replace ? found : [...sources.value, ...found];
    };
  });

/** Which file could not be read, and why: "costs.xls is an old Excel workbook, which is not read here". */
function unread(filename: string, { errors, message }: Refused): string {
  const [first] = errors;
  if (first?.field === "file.dtype")
    return `${filename} is of no kind that is read here; save the table as .csv, .xlsx or .npy.`;
  return first?.field === "file" ? `${filename} ${first.message}.` : `${filename} cannot be read. ${message}.`;
}

export const addText = (text: string, name: string): Promise<void> =>
  guarded(async () => {
    const source = await read(new Blob([text]), `${name}.tsv`);
    return () => {
      if (!sources.value.length) clear();
      sources.value = [...sources.value, source];
    };
  });

export const loadSample = (name: string): Promise<void> =>
  guarded(async () => {
    const begun = performance.now();
    const found = await get<Preview>(`/v1/samples/${name}?missing=${missing.value}`);
    const source: Source = {
      filename: name,
      bytes: 0,
      tookS: (performance.now() - begun) / 1000,
      body: null,
      sample: name,
      sheets: found.sheets,
    };
    return () => {
      clear();
      sources.value = [source];
    };
  });

/** Read everything again: an empty cell means something else now. */
export const readAgain = (): Promise<void> =>
  guarded(async () => {
    const again: Source[] = [];
    for (const source of sources.value) again.push(await readOnce(source));
    return () => (sources.value = again);
  });

export async function readOnce(source: Source): Promise<Source> {
  if (source.sample)
    return { ...source, sheets: (await get<Preview>(`/v1/samples/${source.sample}?missing=${missing.value}`)).sheets };
  if (source.body) return read(source.body, source.filename, source.doubtful);
  return { ...source, sheets: await reread(source.sheets, source.doubtful) };
}

/** A person says what the lines of a sheet are that may hold names or numbers; its file is read again. */
export const tell = (sheet: Sheet, doubtful: Doubtful): Promise<void> =>
  guarded(async () => {
    const at = sources.value.findIndex((source) => source.sheets.includes(sheet));
    const again = await readOnce({ ...sources.value[at]!, doubtful });
    return () => (sources.value = sources.value.map((source, i) => (i === at ? again : source)));
  });

export function empty(): void {
  cleared += 1;
  sources.value = [];
  wrong.value = "";
  clear();
}

/** A fraction ends in e0: beside what a person has typed, as 1.234,50, its point could be one between thousands. */
const quoted = (cell: Cell): string => {
  if (cell === null || cell === "") return "";
  if (typeof cell === "string") return `"${cell.replace(/"/g, '""')}"`;
  return Number.isInteger(cell) || String(cell).includes("e") ? String(cell) : `${cell}e0`;
};

async function written(cells: Cell[][], name: string, doubtful: Doubtful = ""): Promise<[Blob, Sheet]> {
  const body = new Blob([cells.map((line) => line.map(quoted).join("\t")).join("\n")]);
  return [body, { ...(await preview(body, `${name}.tsv`, doubtful)).sheets[0]!, name }];
}

/** Sheets of a file in which a cell was changed: there are only their cells. */
async function reread(old: Sheet[], doubtful: Doubtful = ""): Promise<Sheet[]> {
  const again: Sheet[] = [];
  for (const sheet of old)
    again.push(sheet.cells.length && sheet.cells_whole ? (await written(sheet.cells, sheet.name, doubtful))[1] : sheet);
  return again;
}

/** One cell typed anew: the sheet is sent again as text, and read in the same way as any other. */
export const edit = (index: number, row: number, column: number, text: string): Promise<void> =>
  guarded(
    async () => {
      const sheet = sheets.value[index]!;
      const cells = sheet.cells.map((line) => [...line]);
      while (cells.length <= row) cells.push([]);
      while (cells[row]!.length <= column) cells[row]!.push(null);
      cells[row]![column] = text;
      const told = sources.value.find((source) => source.sheets.includes(sheet))?.doubtful;
      const [body, changed] = await written(cells, sheet.name, told);
      return () => {
        let at = 0;
        sources.value = sources.value.map((source) => {
          const own = source.sheets.map((one) => (at++ === index ? changed : one));
          const touched = own.some((one, i) => one !== source.sheets[i]);
          return touched
            ? { ...source, sheets: own, body: source.sheets.length === 1 ? body : null, sample: null }
            : source;
        });
      };
    },
    `“${text}” was not put into row ${row + 1} of ${sheets.value[index]!.name}.`,
  );
