import { beforeAll, expect, test, vi } from "vitest";

beforeAll(() => {
  vi.stubGlobal("sessionStorage", { getItem: () => null, setItem: () => undefined, removeItem: () => undefined });
});

test("events are cut wherever the network cuts them", async () => {
  const { EventReader } = await import("../src/api/events");
  const stream =
    'retry: 1000\n\nid: 1-0\nevent: state\ndata: {"state": "running"}\n\n: still here\n\nid: 2-0\nevent: incumbent\ndata: {"objective":\ndata: 5}\n\n';
  for (const size of [1, 3, 7, stream.length]) {
    const reader = new EventReader();
    const found = [];
    for (let at = 0; at < stream.length; at += size) found.push(...reader.feed(stream.slice(at, at + size)));
    expect(found).toEqual([
      { id: "1-0", kind: "state", data: { state: "running" } },
      { id: "2-0", kind: "incumbent", data: { objective: 5 } },
    ]);
  }
});

function npy(kind: string, shape: string, data: ArrayBuffer, fortran = "False"): ArrayBuffer {
  const text = `{'descr': '${kind}', 'fortran_order': ${fortran}, 'shape': (${shape}), }`;
  const header = text.padEnd(Math.ceil((text.length + 11) / 64) * 64 - 11) + "\n";
  const out = new Uint8Array(10 + header.length + data.byteLength);
  out.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0, header.length & 255, header.length >> 8]);
  out.set(new TextEncoder().encode(header), 10);
  out.set(new Uint8Array(data), 10 + header.length);
  return out.buffer;
}

test("arrays as NumPy writes them", async () => {
  const { readNpy } = await import("../src/api/npy");
  expect(readNpy(npy("<f8", "2, 2", new Float64Array([1, 2, 3, 4.5]).buffer))).toMatchObject({
    shape: [2, 2],
    values: new Float64Array([1, 2, 3, 4.5]),
    exact: null,
  });
  expect([...readNpy(npy("<i8", "3,", new BigInt64Array([1n, -2n, 2n ** 60n]).buffer)).exact!]).toEqual([
    1n,
    -2n,
    2n ** 60n,
  ]);
  expect([...readNpy(npy("<f8", "2, 3", new Float64Array([1, 4, 2, 5, 3, 6]).buffer, "True")).values]).toEqual([
    1, 2, 3, 4, 5, 6,
  ]);
  expect(() => readNpy(npy("|O", "1,", new ArrayBuffer(8)))).toThrow("not read here");
});

test("sheets find their use by what they are called, and a person may say otherwise", async () => {
  const { assignUses } = await import("../src/pages/solve/uses");
  const sheet = (name: string, role: string) => ({ name, role }) as never;
  const office = [
    sheet("Distances", "matrix"),
    sheet("Trips", "matrix"),
    sheet("Today", "pairs"),
    sheet("Rooms", "points"),
  ];
  expect(assignUses("qap", office, {})).toEqual(["distance", "flow", "today", "rooms"]);
  expect(assignUses("qap", [sheet("A", "matrix"), sheet("Sheet2", "matrix")], {})).toEqual(["flow", "distance"]);
  expect(assignUses("qap", office, { 3: "" })).toEqual(["distance", "flow", "today", null]);
  expect(assignUses("uot", [sheet("Day 2", "points"), sheet("Day 4", "points")], {})).toEqual(["x", "y"]);
  expect(assignUses("uot", [sheet("Costs", "matrix"), sheet("Supply", "list"), sheet("Demand", "list")], {})).toEqual([
    "cost",
    "a",
    "b",
  ]);
  expect(assignUses("lap", [sheet("Minutes", "matrix"), sheet("P", "points"), sheet("Q", "points")], {})).toEqual([
    "cost",
    "from",
    "to",
  ]);
});
