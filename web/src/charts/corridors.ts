/**
 * Ways between the rooms of a floor, along its corridors: trips that share a way are drawn as one band.
 *
 * The floor is cut into cells by the walls and the doors. Open ground costs its length. A line between two rooms may be
 * crossed at three times its length, since a plan seldom says where its passages are.
 */

import { Heap } from "./heap";
import type { Flow, Plan, Room } from "./plan";

export interface Segment {
  x0: number;
  y0: number;
  x1: number;
  y1: number;
  count: number;
  /** How wide the ground is across this part of the way. */
  clear: number;
}

export interface Ways {
  /** The narrowest open ground that anybody steps on first. */
  narrowest: number;
  /** The parts of all ways that these trips take, each with how many trips share it. */
  segments(flows: Flow[], permutation: number[]): Segment[];
}

const THROUGH_WALLS = 3,
  OFF_CENTRE = 0.3,
  MOST_STEPS = 3_000_000;
enum Ground {
  blocked,
  wall,
  open,
}

interface Grid {
  xs: number[];
  ys: number[];
  wide: number;
  high: number;
  ground: Uint8Array;
  /** Width of the open ground across a cell, for ways that run along x and along y. */
  clear: [Float64Array, Float64Array];
  /** 0 in the middle of that ground, 1 at its edge. */
  off: [Float64Array, Float64Array];
}

/** null where the floor is too finely cut for this, or its rooms leave no way. */
export function corridors(plan: Plan): Ways | null {
  const n = plan.rooms.length;
  const thin = 0.04 * Math.min(...plan.rooms.map((room) => Math.min(room.w, room.h)));
  if (!(thin > 0)) return null;
  const grid = cut(plan, thin, MOST_STEPS / (2 * n));
  if (!grid) return null;
  const gates = plan.rooms.map((room, at) => gatesOf(grid, room, plan.doors[at]!, thin));
  if (gates.some((list) => !list.length)) return null;
  const trees = gates.map((list) => search(grid, list, 0.02 * (plan.width + plan.height)));
  if (gates.some((list) => !list.some((gate) => reached(trees[0]!, gate.cell)))) return null;
  const steps = gates.flat().flatMap(({ cell }) => [cell, cell + grid.wide, cell - grid.wide, cell + 1, cell - 1]);
  const clear = steps.map((cell) => Math.min(grid.clear[0][cell] || Infinity, grid.clear[1][cell] || Infinity));
  const narrowest = Math.min(plan.width, plan.height, ...clear);
  return { narrowest, segments: (flows, permutation) => collect(plan, grid, gates, trees, flows, permutation) };
}

function cut(plan: Plan, thin: number, most: number): Grid | null {
  const { rooms, doors } = plan;
  const xs = lines(
    plan.width,
    rooms.flatMap(({ x, w }) => [x, x + w]),
    doors.map(([x]) => x),
    thin,
  );
  const ys = lines(
    plan.height,
    rooms.flatMap(({ y, h }) => [y, y + h]),
    doors.map(([, y]) => y),
    thin,
  );
  const [wide, high] = [xs.length - 1, ys.length - 1];
  if (wide * high > most) return null;
  const ground = new Uint8Array(wide * high).fill(Ground.open);
  for (const { x, y, w, h } of plan.rooms)
    for (let j = 0; j < high; j++)
      for (let i = 0; i < wide; i++) {
        const [cx, cy] = [(xs[i]! + xs[i + 1]!) / 2, (ys[j]! + ys[j + 1]!) / 2];
        const inside = Math.min(cx - x, x + w - cx, cy - y, y + h - cy);
        if (inside < -0.01 * thin) continue;
        const nearWall = inside < 1.01 * thin;
        ground[j * wide + i] = nearWall ? Ground.wall : Ground.blocked;
      }
  const grid = { xs, ys, wide, high, ground };
  const across = [0, 1].map((way) => widths(grid, way));
  return {
    ...grid,
    clear: [across[0]!.clear, across[1]!.clear],
    off: [across[0]!.off, across[1]!.off],
  };
}

/** Where cells end: beside the walls, and close beside the doors, so that a way from a door is straight. */
function lines(most: number, walls: number[], doors: number[], thin: number): number[] {
  const both = (places: number[], half: number) => places.flatMap((one) => [one - half, one + half]);
  const sorted = [0, most, ...both(walls, thin), ...both(doors, thin / 8)]
    .filter((one) => one >= 0 && one <= most)
    .sort((a, b) => a - b);
  return sorted.filter((one, at) => at === 0 || one - sorted[at - 1]! > 1e-6 * most);
}

/** How wide open ground is across each cell, and how far from its middle the cell lies. */
function widths({ xs, ys, wide, high, ground }: Omit<Grid, "clear" | "off">, way: number) {
  const clear = new Float64Array(wide * high),
    off = new Float64Array(wide * high);
  const [lines, along, across] = way === 0 ? [ys, wide, high] : [xs, high, wide];
  const cell = (line: number, at: number) => (way === 0 ? at * wide + line : line * wide + at);
  for (let line = 0; line < along; line++)
    for (let from = 0; from < across; from++) {
      if (ground[cell(line, from)] !== Ground.open) continue;
      let to = from;
      while (to + 1 < across && ground[cell(line, to + 1)] === Ground.open) to++;
      const [low, high_] = [lines[from]!, lines[to + 1]!];
      for (let at = from; at <= to; at++) {
        const middle = (lines[at]! + lines[at + 1]!) / 2;
        clear[cell(line, at)] = high_ - low;
        off[cell(line, at)] = Math.abs(middle - (low + high_) / 2) / ((high_ - low) / 2 || 1);
      }
      from = to;
    }
  return { clear, off };
}

interface Gate {
  cell: number;
  /** From the middle of the room to the ground outside. */
  x: number;
  y: number;
}

/** Where a room is left: on the side of its door, else where open ground begins, else on any side. */
function gatesOf(grid: Grid, room: Room, [x, y]: [number, number], thin: number): Gate[] {
  const [dx, dy] = [x - room.x - room.w / 2, y - room.y - room.h / 2];
  const tiny = 0.01 * Math.min(room.w, room.h);
  const sides: [number, number, number][] = [
    [x, room.y - 1.5 * thin, -dy],
    [x, room.y + room.h + 1.5 * thin, dy],
    [room.x - 1.5 * thin, y, -dx],
    [room.x + room.w + 1.5 * thin, y, dx],
  ];
  const told = sides.filter(([, , towards]) => towards > tiny);
  const open = sides.filter(([gx, gy]) => grid.ground[cellAt(grid, gx, gy)] === Ground.open);
  const walls: [number, number][] = [
    [x, room.y],
    [x, room.y + room.h],
    [room.x, y],
    [room.x + room.w, y],
  ];
  return (told.length ? told : open.length ? open : walls).flatMap(([gx, gy]) => {
    const cell = cellAt(grid, gx, gy);
    return cell >= 0 && grid.ground[cell] !== Ground.blocked ? [{ cell, x, y }] : [];
  });
}

function cellAt({ xs, ys, wide }: Grid, x: number, y: number): number {
  const find = (lines: number[], value: number) =>
    lines.findIndex((line, at) => line <= value && value < (lines[at + 1] ?? -Infinity));
  const [i, j] = [find(xs, x), find(ys, y)];
  return i < 0 || j < 0 ? -1 : j * wide + i;
}

interface Tree {
  cost: Float64Array;
  /** The state before: a cell twice, and one where it was entered along y. */
  before: Int32Array;
}

const reached = (tree: Tree, cell: number): boolean =>
  Math.min(tree.cost[2 * cell]!, tree.cost[2 * cell + 1]!) < Infinity;

/** Cheapest ways from a room's gates to every cell; a turn costs a little, so that ways stay straight. */
function search(grid: Grid, gates: Gate[], turn: number): Tree {
  const { xs, ys, wide, high, ground, off } = grid;
  const size = 2 * wide * high;
  const cost = new Float64Array(size).fill(Infinity),
    before = new Int32Array(size).fill(-1);
  const heap = new Heap();
  const middle = (cell: number): [number, number] => {
    const [i, j] = [cell % wide, Math.floor(cell / wide)];
    return [(xs[i]! + xs[i + 1]!) / 2, (ys[j]! + ys[j + 1]!) / 2];
  };
  for (const gate of gates) {
    const [x, y] = middle(gate.cell);
    for (const way of [0, 1]) {
      cost[2 * gate.cell + way] = Math.abs(x - gate.x) + Math.abs(y - gate.y);
      heap.push(cost[2 * gate.cell + way]!, 2 * gate.cell + way);
    }
  }
  for (let state = heap.pop(cost); state >= 0; state = heap.pop(cost)) {
    const [cell, way] = [state >> 1, state & 1];
    const [i, j] = [cell % wide, Math.floor(cell / wide)];
    const [x, y] = middle(cell);
    for (const [di, dj] of [
      [1, 0],
      [-1, 0],
      [0, 1],
      [0, -1],
    ] as const) {
      if (i + di < 0 || i + di >= wide || j + dj < 0 || j + dj >= high) continue;
      const next = cell + dj * wide + di;
      if (ground[next] === Ground.blocked) continue;
      const along = di === 0 ? 1 : 0;
      const [nx, ny] = middle(next);
      const price = (at: number) => (ground[at] === Ground.wall ? THROUGH_WALLS : 1 + OFF_CENTRE * off[along][at]!);
      const length = Math.abs(nx - x) + Math.abs(ny - y);
      const sum = cost[state]! + (length * (price(cell) + price(next))) / 2 + (along === way ? 0 : turn);
      if (sum >= cost[2 * next + along]! - 1e-9) continue;
      cost[2 * next + along] = sum;
      before[2 * next + along] = state;
      heap.push(sum, 2 * next + along);
    }
  }
  return { cost, before };
}

/** Trips added up over the parts of their ways; parts in a line with as many trips are one. */
function collect(
  plan: Plan,
  grid: Grid,
  gates: Gate[][],
  trees: Tree[],
  flows: Flow[],
  permutation: number[],
): Segment[] {
  const { xs, ys, wide, high } = grid;
  const counts = [new Float64Array(wide * high), new Float64Array(wide * high)] as const; // to the right, and down
  const stubs = new Map<string, Segment>();
  const centre = (cell: number): [number, number] => {
    const [i, j] = [cell % wide, Math.floor(cell / wide)];
    return [(xs[i]! + xs[i + 1]!) / 2, (ys[j]! + ys[j + 1]!) / 2];
  };
  const stub = (place: number, cell: number, count: number) => {
    const [[x0, y0], [x1, y1]] = [plan.doors[place]!, centre(cell)];
    const known = stubs.get(`${place} ${cell}`) ?? { x0, y0, x1, y1, count: 0, clear: Infinity };
    stubs.set(`${place} ${cell}`, { ...known, count: known.count + count });
  };
  for (const { from, to, count } of flows) {
    const [a, b] = [permutation[from]!, permutation[to]!];
    const tree = trees[a]!;
    const ends = gates[b]!.flatMap(({ cell, x, y }) => {
      const far = Math.abs(centre(cell)[0] - x) + Math.abs(centre(cell)[1] - y);
      return [0, 1].map((way) => ({ state: 2 * cell + way, cost: tree.cost[2 * cell + way]! + far }));
    });
    let state = ends.reduce((best, one) => (one.cost < best.cost ? one : best)).state;
    stub(b, state >> 1, count);
    for (let last = tree.before[state]!; last >= 0; state = last, last = tree.before[state]!) {
      const [one, other] = [Math.min(state >> 1, last >> 1), Math.max(state >> 1, last >> 1)];
      if (one !== other) counts[other - one === 1 ? 0 : 1][one]! += count;
    }
    stub(a, state >> 1, count);
  }
  return [...stubs.values(), ...joined(grid, counts, 0), ...joined(grid, counts, 1)];
}

function joined(
  { xs, ys, wide, high, clear }: Grid,
  counts: readonly [Float64Array, Float64Array],
  way: 0 | 1,
): Segment[] {
  const found: Segment[] = [];
  const [lines, steps] = way === 0 ? [high, wide - 1] : [wide, high - 1];
  for (let line = 0; line < lines; line++) {
    let open: Segment | null = null;
    for (let at = 0; at < steps; at++) {
      const cell = way === 0 ? line * wide + at : at * wide + line;
      const count = counts[way][cell]!;
      const room = clear[way][cell]! || Infinity;
      const [i, j] = [cell % wide, Math.floor(cell / wide)];
      const [x, y] = [(xs[i]! + xs[i + 1]!) / 2, (ys[j]! + ys[j + 1]!) / 2];
      const [x1, y1] = way === 0 ? [(xs[i + 1]! + xs[i + 2]!) / 2, y] : [x, (ys[j + 1]! + ys[j + 2]!) / 2];
      if (open && count === open.count) Object.assign(open, { x1, y1, clear: Math.min(open.clear, room) });
      else {
        open = count > 0 ? { x0: x, y0: y, x1, y1, count, clear: room } : null;
        if (open) found.push(open);
      }
    }
  }
  return found;
}
