/** Arrays as the service keeps them: .npy, and the blobs that a job refers to. */

import { send, whole } from "./http";
import type { Input, Reference } from "./types";

export interface Matrix {
  shape: number[];
  /** Whole numbers beyond 2^53 lose digits here; `exact` keeps them. */
  values: Float64Array;
  exact: BigInt64Array | null;
}

const KINDS: Record<string, (buffer: ArrayBuffer) => ArrayLike<number> | BigInt64Array> = {
  "<f8": (buffer) => new Float64Array(buffer),
  "<f4": (buffer) => new Float32Array(buffer),
  "<i8": (buffer) => new BigInt64Array(buffer),
  "<i4": (buffer) => new Int32Array(buffer),
  "<i2": (buffer) => new Int16Array(buffer),
  "|i1": (buffer) => new Int8Array(buffer),
  "<u4": (buffer) => new Uint32Array(buffer),
  "<u2": (buffer) => new Uint16Array(buffer),
  "|u1": (buffer) => new Uint8Array(buffer),
};

export function readNpy(buffer: ArrayBuffer): Matrix {
  const view = new DataView(buffer);
  if (view.getUint32(0) !== 0x934e554d) throw new Error("not an .npy file");
  const wide = view.getUint8(6) > 1;
  const begin = wide ? 12 : 10;
  const length = wide ? view.getUint32(8, true) : view.getUint16(8, true);
  const header = new TextDecoder("latin1").decode(new Uint8Array(buffer, begin, length));
  const kind = /'descr':\s*'([^']+)'/.exec(header)?.[1] ?? "";
  const shape = (/'shape':\s*\(([^)]*)\)/.exec(header)?.[1] ?? "")
    .split(",")
    .filter((part) => part.trim())
    .map(Number);
  const read = KINDS[kind];
  if (!read) throw new Error(`numbers of the type ${kind} are not read here`);
  const raw = read(buffer.slice(begin + length));
  const exact = raw instanceof BigInt64Array ? raw : null;
  const values = exact ? Float64Array.from(exact, Number) : Float64Array.from(raw as ArrayLike<number>);
  return { shape, values: /'fortran_order':\s*True/.test(header) ? transposed(values, shape) : values, exact };
}

function transposed(values: Float64Array, shape: number[]): Float64Array {
  const [rows = 1, columns = 1] = shape;
  if (shape.length !== 2) return values;
  const out = new Float64Array(values.length);
  for (let i = 0; i < rows; i++) for (let j = 0; j < columns; j++) out[i * columns + j] = values[j * rows + i]!;
  return out;
}

export async function fetchMatrix(input: Input | undefined, signal?: AbortSignal): Promise<Matrix | null> {
  if (!input || !("blob" in input) || (input as Reference).format !== "npy") return null;
  const answer = await send(`/v1/blobs/${(input as Reference).blob}`, { signal });
  return readNpy(await whole(answer, (one) => one.arrayBuffer()));
}

export interface Sparse {
  indptr: Matrix;
  indices: Matrix;
  values: Matrix;
  shape: number[];
}

export async function fetchSparse(input: Input | undefined, signal?: AbortSignal): Promise<Sparse | null> {
  if (!input || !("csr" in input)) return null;
  const { indptr, indices, values, shape } = input.csr;
  const [one, two, three] = await Promise.all([indptr, indices, values].map((one) => fetchMatrix(one, signal)));
  return one && two && three ? { indptr: one, indices: two, values: three, shape } : null;
}
