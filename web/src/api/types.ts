/** What the API says, as far as the pages read it. */

export type State = "queued" | "running" | "succeeded" | "failed" | "cancelled";

export interface Progress {
  phase: "load" | "solve" | "certify" | "store";
  fraction: number | null;
  iteration: number;
  objective: number | null;
  bound: number | null;
  gap: number | null;
  elapsed_s: number;
  /** The answer behind the objective, where the service sends it with an improvement. */
  permutation?: number[];
  assignment?: number[];
}

export interface Reference {
  blob: string;
  /** In place of the blob, where the numbers came in the request and were not kept. */
  digest?: string;
  format?: string;
  member?: string;
  dtype?: string;
  shape?: number[];
}

export interface SparseReference {
  csr: { indptr: Reference; indices: Reference; values: Reference; shape: number[] };
}

export type Input = Reference | SparseReference;

export interface Job {
  id: string;
  solver: string;
  state: State;
  attempt: number;
  queue_position: number | null;
  progress: Progress | null;
  termination: string | null;
  error: { detail?: string } | null;
  device: string;
  ran_on: string | null;
  options: Record<string, unknown>;
  input_digests: Record<string, Input>;
  time_limit_s: number | null;
  timings_ms: Record<string, number>;
  created_at: string;
  started_at: string | null;
  ended_at: string | null;
  expires_at: string | null;
  noted?: boolean;
}

export interface Certificate {
  bound: number | null;
  gap_abs: number | null;
  gap_rel: number | null;
  max_violation: number | null;
  holds: boolean;
  proved: string;
  facts: Record<string, unknown>;
}

export interface Result {
  id: string;
  solver: string;
  termination: string;
  objective: number | null;
  certificate: Certificate;
  method: string;
  device: string;
  iterations: number;
  options: Record<string, unknown>;
  timings_ms: Record<string, number>;
  assignment?: number[] | Reference;
  permutation?: number[];
  barycenter?: number[] | Reference;
  plan?: number[][] | Reference;
  duals?: { u?: number[]; v?: number[] };
  prices?: number[];
  profits?: number[];
  [name: string]: unknown;
}

export interface Worker {
  name: string;
  device: "cpu" | "gpu";
  queue: string;
  /** These three are not told to keys that may not see what others do. */
  state?: string;
  heartbeat_age_s?: number;
  host_bytes?: number;
  gpu: {
    uuid: string;
    name: string;
    bytes_total: number;
    /** Not told to keys that may not see what others do. */
    bytes_free?: number;
    bytes_used?: number;
    count?: number;
    utilisation?: number;
    use_per_minute?: number[];
  } | null;
  broken: Record<string, string>;
}

export interface Heat {
  height: number;
  width: number;
  values: (number | null)[];
  rows: number[];
  columns: number[];
}

export interface Facts {
  min: number | null;
  max: number | null;
  sum: number | null;
  zero_share: number;
  whole_numbers: boolean;
  symmetric: boolean | null;
  infinite: number;
  stored?: number;
}

export interface Fault {
  cell: string;
  row: number;
  column: number;
  found: string;
  names: [string, string];
}

export type Role = "matrix" | "points" | "list" | "pairs" | "text" | "sparse" | "stack" | "order";
export type Cell = null | number | string;

export interface Sheet {
  name: string;
  role: Role;
  corner: string;
  row_names: string[] | null;
  column_names: string[] | null;
  missing: number;
  faults: Fault[];
  fault_count: number;
  pairs: [string, string][] | null;
  first: [number, number];
  /** How many pairs it was written as a list of, one a line. */
  listed?: number;
  /** Which lines may hold names or numbers, where nobody can tell. */
  doubt?: string;
  /** The first whole number that 64 bits do not hold, and how many there are. */
  rounded?: { cell: string; found: string; read: string; count: number } | null;
  cells: Cell[][];
  cells_whole: boolean;
  cells_shape: [number, number];
  shape?: number[];
  facts?: Facts;
  reference?: Input;
  weights?: Reference | null;
  points?: number[][] | null;
  heat?: Heat;
}

export interface Preview {
  filename: string;
  bytes?: number;
  sheets: Sheet[];
}

export interface Estimate {
  host_bytes: number;
  device_bytes: number;
  seconds: number;
  certify_seconds: number;
  first_seconds: number;
}

export interface Estimates {
  estimates: Record<string, Estimate>;
  device: string | null;
  fits: boolean;
  reason?: string;
}

export interface OptionSchema {
  description?: string;
  default?: unknown;
  type?: string;
  enum?: unknown[];
  const?: unknown;
  minimum?: number;
  maximum?: number;
  anyOf?: OptionSchema[];
  oneOf?: OptionSchema[];
}

export interface Solver {
  name: string;
  summary: string;
  devices: string[];
  options_schema: { properties: Record<string, OptionSchema> };
  warm_start: Record<string, string>;
}
