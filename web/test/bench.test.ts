import { beforeEach, expect, test, vi } from "vitest";

interface Asked {
  missing: string | null;
  answer: (name: string) => void;
}

/** What the page asks of the service, answered when the test says so. */
const asked: Asked[] = [];
const turn = () => new Promise((resolve) => setTimeout(resolve));

beforeEach(() => {
  vi.resetModules();
  asked.length = 0;
  vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => undefined, removeItem: () => undefined });
  vi.stubGlobal(
    "fetch",
    (path: string) =>
      new Promise((resolve) => {
        const told = (name: string) => ({ sheets: [{ name, role: "matrix", shape: [2, 2], cells: [[1]] }] });
        asked.push({
          missing: new URLSearchParams(path.split("?")[1]).get("missing"),
          answer: (name) => resolve({ ok: true, json: async () => told(name) }),
        });
      }),
  );
});

async function answered(...names: string[]): Promise<void> {
  for (const name of names) {
    await turn();
    asked.shift()!.answer(name);
  }
  await turn();
}

test("a sheet that comes while the others are read again is kept, and nothing is left as being read", async () => {
  const { addText, problem, readAgain, reading, sheets } = await import("../src/pages/solve/state");
  void addText("1", "Trips");
  await answered("Trips");
  problem.value = "qap";
  void readAgain();
  void addText("2", "Distances");
  await answered("Trips, read again");
  expect(reading.value).toBe(true);
  await answered("Distances");
  expect(sheets.value.map((sheet) => sheet.name)).toEqual(["Trips, read again", "Distances"]);
  expect(reading.value).toBe(false);
});

test("a file that is being read when its problem is found out is read as that problem means it", async () => {
  const { addText, problem, readAgain } = await import("../src/pages/solve/state");
  void addText("1", "Trips");
  await turn();
  problem.value = "qap";
  void readAgain();
  expect(asked[0]!.missing).toBe("inf");
  await answered("Trips");
  expect(asked[0]!.missing).toBe("zero");
});

test("what was still being read when the bench was cleared does not come back", async () => {
  const { addText, empty, reading, sheets } = await import("../src/pages/solve/state");
  void addText("1", "Trips");
  await turn();
  empty();
  void addText("2", "Distances");
  await answered("Trips", "Distances");
  expect(sheets.value.map((sheet) => sheet.name)).toEqual(["Distances"]);
  expect(reading.value).toBe(false);
});

test("a file of which a cell was changed is read again from its cells: an empty one means something else now", async () => {
  const { choice, FRESH, readAgain, sheets, sources } = await import("../src/pages/solve/state");
  const sheet = (name: string) => ({ name, role: "matrix", cells: [[1.5, null]], cells_whole: true });
  const source = { filename: "a.xlsx", bytes: 9, tookS: 0, body: null, sample: null };
  sources.value = [{ ...source, sheets: [sheet("One"), sheet("Two")] as never }];
  choice.value = { ...FRESH, maximize: true };
  void readAgain();
  await turn();
  expect(asked[0]!.missing).toBe("-inf");
  await answered("any", "any");
  expect(sheets.value.map(({ name, shape }) => [name, shape])).toEqual([
    ["One", [2, 2]],
    ["Two", [2, 2]],
  ]);
});
