/** Numbers and names as the text that Solve reads. */

import type { Matrix } from "../api/npy";

const NOTHING = -(2n ** 63n);

export const line = (cells: (string | number)[]): string =>
  cells.map((cell) => (typeof cell === "number" ? String(cell) : `"${cell.replaceAll('"', '""')}"`)).join("\t");

/** A matrix with its names; an empty cell where a pair is not allowed. */
export function sheetText(matrix: Matrix, corner: string, rows: string[] | null, columns: string[] | null): string {
  const [m = 0, n = 0] = matrix.shape;
  const cell = (at: number) =>
    matrix.exact ? (matrix.exact[at] === NOTHING ? "" : String(matrix.exact[at])) : numberText(matrix.values[at]!);
  const head = [`"${corner}"`, ...Array.from({ length: n }, (_, j) => line([columns?.[j] ?? `column ${j + 1}`]))];
  const body = Array.from({ length: m }, (_, i) =>
    [line([rows?.[i] ?? `row ${i + 1}`]), ...Array.from({ length: n }, (_, j) => cell(i * n + j))].join("\t"),
  );
  return [head.join("\t"), ...body].join("\n");
}

const numberText = (value: number): string => (Number.isFinite(value) ? String(value) : "");
