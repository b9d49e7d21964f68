/** A floor with rooms, and the ways between them. */

export interface Room {
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface Plan {
  rooms: Room[];
  width: number;
  height: number;
  /** Where people go in and out: in the middle of a room, towards the nearest open ground. */
  doors: [number, number][];
}

/** Rooms from rows of x, y and perhaps w, h; without sizes each gets a square that fits between its neighbours. */
export function layOut(positions: number[][], width: number, most: number): Plan {
  const sized = positions.every((row) => row.length >= 4);
  const side = sized ? 0 : nearest(positions) * 0.82 || 1;
  const boxes = positions.map(([x = 0, y = 0, w = side, h = side]) =>
    sized ? { x, y, w, h } : { x: x - side / 2, y: y - side / 2, w: side, h: side },
  );
  const left = Math.min(...boxes.map((box) => box.x)),
    top = Math.min(...boxes.map((box) => box.y));
  const right = Math.max(...boxes.map((box) => box.x + box.w)),
    bottom = Math.max(...boxes.map((box) => box.y + box.h));
  const scale = Math.min(width / (right - left || 1), most / (bottom - top || 1));
  const rooms = boxes.map((box) => ({
    x: (box.x - left) * scale,
    y: (box.y - top) * scale,
    w: box.w * scale,
    h: box.h * scale,
  }));
  const doors = rooms.map(
    (room) =>
      [room.x + room.w / 2, room.y + room.h / 2 + (sized ? side_(room, rooms) * room.h * 0.3 : 0)] as [number, number],
  );
  return { rooms, width: (right - left) * scale, height: (bottom - top) * scale, doors };
}

/** +1 where the ground below a room is open, -1 above, 0 where neither or both. */
function side_(room: Room, rooms: Room[]): number {
  const open = (y: number) =>
    !rooms.some(
      (other) =>
        other !== room &&
        room.x + room.w / 2 > other.x &&
        room.x + room.w / 2 < other.x + other.w &&
        y > other.y &&
        y < other.y + other.h,
    );
  const inside = (y: number) => rooms.some((other) => other.y < y) && rooms.some((other) => other.y + other.h > y);
  const below = room.y + room.h + 2,
    above = room.y - 2;
  const [down, up] = [open(below) && inside(below), open(above) && inside(above)];
  return down === up ? 0 : down ? 1 : -1;
}

function nearest(positions: number[][]): number {
  let least = Infinity;
  for (let i = 0; i < positions.length; i++) {
    for (let j = 0; j < i; j++) {
      const [a, b] = [positions[i]!, positions[j]!];
      const gap = Math.max(Math.abs(a[0]! - b[0]!), Math.abs(a[1]! - b[1]!));
      if (gap > 0) least = Math.min(least, gap);
    }
  }
  return Number.isFinite(least) ? least : 0;
}

export interface Flow {
  from: number;
  to: number;
  count: number;
}

/** Trips both ways between each pair, most first. */
export function flows(matrix: ArrayLike<number>, n: number, most = 400): Flow[] {
  const found: Flow[] = [];
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < i; j++) {
      const count = (matrix[i * n + j] ?? 0) + (matrix[j * n + i] ?? 0);
      if (count > 0) found.push({ from: j, to: i, count });
    }
  }
  return found.sort((a, b) => b.count - a.count).slice(0, most);
}

/** A bow between two places, bent away from the straight line so that opposite pairs do not hide each other. */
export function bow([x0, y0]: [number, number], [x1, y1]: [number, number], bend = 0.16): string {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const flip = dx < 0 || (dx === 0 && dy < 0) ? -1 : 1;
  const [mx, my] = [(x0 + x1) / 2 - dy * bend * flip, (y0 + y1) / 2 + dx * bend * flip];
  const show = (value: number) => Math.round(value * 10) / 10;
  return `M${show(x0)} ${show(y0)}Q${show(mx)} ${show(my)} ${show(x1)} ${show(y1)}`;
}

export const strokeWidth = (count: number, most: number, widest = 10): number =>
  Math.max(0.6, (widest * count) / (most || 1));

/** The same plan turned a quarter, for a screen that is higher than wide. */
export function turned(plan: Plan): Plan {
  return {
    rooms: plan.rooms.map(({ x, y, w, h }) => ({ x: plan.height - y - h, y: x, w: h, h: w })),
    width: plan.height,
    height: plan.width,
    doors: plan.doors.map(([x, y]) => [plan.height - y, x]),
  };
}

/** Rooms of one size in rows, each near those that its distances put it near. */
export function tiles(places: number[][]): number[][] {
  const across = Math.ceil(Math.sqrt(places.length * 1.4));
  const order = places.map((_, i) => i).sort((a, b) => places[a]![1]! - places[b]![1]!);
  const found: number[][] = places.map(() => []);
  for (let row = 0; row * across < order.length; row++) {
    const line = order.slice(row * across, (row + 1) * across).sort((a, b) => places[a]![0]! - places[b]![0]!);
    line.forEach((place, at) => (found[place] = [at * 12.5, row * 12.5, 11, 10]));
  }
  return found;
}

/**
 * Places in the plane whose distances resemble the given ones: classical scaling by power iteration.
 *
 * For rooms whose positions nobody has told. The picture is then a sketch, not a floor.
 */
export function fromDistances(distance: ArrayLike<number>, n: number): number[][] {
  const square = Float64Array.from({ length: n * n }, (_, at) => {
    const [i, j] = [Math.floor(at / n), at % n];
    return (((distance[i * n + j] ?? 0) + (distance[j * n + i] ?? 0)) / 2) ** 2;
  });
  const means = Array.from(
    { length: n },
    (_, i) => square.subarray(i * n, (i + 1) * n).reduce((sum, one) => sum + one, 0) / n,
  );
  const all = means.reduce((sum, one) => sum + one, 0) / n;
  const gram = square.map((one, at) => -0.5 * (one - means[Math.floor(at / n)]! - means[at % n]! + all));
  const first = leading(gram, n);
  for (let at = 0; at < n * n; at++)
    gram[at]! -= first.value * first.vector[Math.floor(at / n)]! * first.vector[at % n]!;
  const second = leading(gram, n);
  const [a, b] = [Math.sqrt(Math.max(0, first.value)), Math.sqrt(Math.max(0, second.value))];
  return first.vector.map((one, i) => [one * a, second.vector[i]! * b]);
}

function leading(matrix: Float64Array, n: number): { value: number; vector: number[] } {
  let vector = Array.from({ length: n }, (_, i) => Math.sin(1 + 2.7 * i) + 0.1);
  let value = 0;
  for (let round = 0; round < 200; round++) {
    const next = vector.map((_, i) => vector.reduce((sum, one, j) => sum + matrix[i * n + j]! * one, 0));
    const length = Math.hypot(...next) || 1;
    vector = next.map((one) => one / length);
    value = length;
  }
  const image = vector.map((_, i) => vector.reduce((sum, one, j) => sum + matrix[i * n + j]! * one, 0));
  value = image.reduce((sum, one, i) => sum + one * vector[i]!, 0);
  return { value, vector };
}

/** What a layout costs: the sum over pairs of flow times distance. */
export function walked(flow: ArrayLike<number>, distance: ArrayLike<number>, permutation: number[]): number {
  const n = permutation.length;
  let sum = 0;
  for (let i = 0; i < n; i++)
    for (let j = 0; j < n; j++) sum += flow[i * n + j]! * distance[permutation[i]! * n + permutation[j]!]!;
  return sum;
}

/** What goes to and from each facility: trips, and trips times distance. */
export function shares(
  flow: ArrayLike<number>,
  distance: ArrayLike<number>,
  permutation: number[],
): { trips: number; way: number }[] {
  const n = permutation.length;
  return permutation.map((place, i) => {
    let trips = 0,
      way = 0;
    for (let j = 0; j < n; j++) {
      const [out, back] = [flow[i * n + j]!, flow[j * n + i]!];
      trips += out + back;
      way += out * distance[place * n + permutation[j]!]! + back * distance[permutation[j]! * n + place]!;
    }
    return { trips, way };
  });
}

/** Who changed places between two layouts, as cycles: [[a, b], [c, d, e]]. */
export function exchanges(before: number[], after: number[]): number[][] {
  const holder = new Map(before.map((place, i) => [place, i]));
  const seen = new Set<number>();
  const cycles: number[][] = [];
  for (let i = 0; i < before.length; i++) {
    if (seen.has(i) || before[i] === after[i]) continue;
    const cycle: number[] = [];
    let at: number | undefined = i;
    while (at !== undefined && !seen.has(at)) {
      seen.add(at);
      cycle.push(at);
      at = holder.get(after[at]!);
    }
    cycles.push(cycle);
  }
  return cycles;
}
