import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Sheet } from "../../api/types";
import { plural } from "../../words";
import { active, edit, sheets } from "./state";

const ROWS = 60,
  COLUMNS = 40;

const letters = (column: number): string => {
  let name = "";
  for (let rest = column + 1; rest > 0; rest = Math.floor((rest - 1) / 26))
    name = String.fromCharCode(65 + ((rest - 1) % 26)) + name;
  return name;
};

/** The sheet as it is, with the names of cells that a spreadsheet has. Small ones may be typed in. */
export function Grid() {
  const all = sheets.value.map((sheet, at) => ({ sheet, at })).filter(({ sheet }) => sheet.cells.length > 0);
  const shown = all.find(({ at }) => at === active.value) ?? all[0];
  if (!shown) return null;
  const { sheet, at } = shown;
  const [rows, columns] = sheet.cells_shape;
  return (
    <div class="grid">
      <Cells key={at} sheet={sheet} index={at} />
      <div class="grid-tabs">
        {all.map((one) => (
          <button type="button" key={one.at} aria-pressed={one.at === at} onClick={() => (active.value = one.at)}>
            {one.sheet.name}
          </button>
        ))}
        <span>
          {rows > ROWS || !sheet.cells_whole
            ? `first ${Math.min(rows, sheet.cells.length, ROWS)} of ${plural(rows, "row")}`
            : columns > COLUMNS
              ? `first ${COLUMNS} of ${columns} columns`
              : "click a cell to change it"}
        </span>
      </div>
    </div>
  );
}

function Cells({ sheet, index }: { sheet: Sheet; index: number }) {
  const [at, setAt] = useState<[number, number]>([0, 0]);
  const [typing, setTyping] = useState<string | null>(null);
  const table = useRef<HTMLTableElement>(null);
  const moved = useRef(false);
  /** Whether what is typed is still to be taken: a field that goes away loses its focus, and says so once more. */
  const open = useRef(false);
  const rows = Math.min(ROWS, sheet.cells.length);
  const columns = Math.min(COLUMNS, sheet.cells_whole ? sheet.cells_shape[1] : (sheet.cells[0]?.length ?? 0));
  const faults = new Set(sheet.faults.map((fault) => fault.cell));
  const [top, left] = sheet.first;
  useLayoutEffect(() => {
    // before the next key is pressed, which would begin anew
    if (!moved.current) return;
    moved.current = false;
    const target = table.current?.querySelector<HTMLElement>(typing === null ? "[tabindex='0']" : "input");
    target?.focus();
    if (target instanceof HTMLInputElement && typing === String(sheet.cells[at[0]]?.[at[1]] ?? "")) target.select();
  });
  const move = (row: number, column: number) => {
    moved.current = true;
    open.current = false;
    setTyping(null);
    setAt([Math.min(rows - 1, Math.max(0, row)), Math.min(columns - 1, Math.max(0, column))]);
  };
  const take = (row: number, column: number, text: string) => {
    if (!open.current) return;
    open.current = false;
    setTyping(null);
    if (text !== String(sheet.cells[row]?.[column] ?? "")) void edit(index, row, column, text);
  };
  const begin = (row: number, column: number, text: string) => {
    if (!sheet.cells_whole) return;
    moved.current = open.current = true;
    setAt([row, column]);
    setTyping(text);
  };
  const pressed = (event: KeyboardEvent, row: number, column: number) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const way = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (way) return (event.preventDefault(), move(row + way[0]!, column + way[1]!));
    if (event.key === "Enter" || event.key === "F2")
      return (
        event.preventDefault(),
        event.stopPropagation(),
        begin(row, column, String(sheet.cells[row]?.[column] ?? ""))
      );
    if (sheet.cells_whole && ["Delete", "Backspace"].includes(event.key)) {
      event.preventDefault();
      open.current = true;
      return take(row, column, "");
    }
    if (event.key.length === 1) return (event.preventDefault(), event.stopPropagation(), begin(row, column, event.key));
  };
  return (
    <div class="grid-scroll" tabIndex={0} role="region" aria-label={`Cells of ${sheet.name}`}>
      <table ref={table} role="grid">
        <thead>
          <tr class="abc">
            <th class="no" scope="col">
              <span class="away">Row</span>
            </th>
            {Array.from({ length: columns }, (_, j) => (
              <th scope="col" class={j < left ? "name" : ""}>
                {letters(j)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {Array.from({ length: rows }, (_, i) => (
            <tr>
              <th class="no" scope="row">
                {i + 1}
              </th>
              {Array.from({ length: columns }, (_, j) => {
                const cell = sheet.cells[i]?.[j] ?? null;
                const here = at[0] === i && at[1] === j;
                const kind = faults.has(`${letters(j)}${i + 1}`)
                  ? "wrong"
                  : j < left
                    ? "name"
                    : i < top
                      ? "title"
                      : typeof cell === "string"
                        ? "text"
                        : "";
                return (
                  <td
                    class={kind}
                    tabIndex={here ? 0 : -1}
                    title={typeof cell === "string" && cell.length > 9 ? cell : undefined}
                    onClick={() => (here && typing !== null ? undefined : begin(i, j, String(cell ?? "")))}
                    onKeyDown={(event) => typing === null && pressed(event, i, j)}
                  >
                    {here && typing !== null ? (
                      <input
                        value={typing}
                        aria-label={`Cell ${letters(j)}${i + 1}`}
                        onBlur={(event) => take(i, j, event.currentTarget.value)}
                        onKeyDown={(event) => {
                          event.stopPropagation();
                          if (event.key === "Enter" || event.key === "Tab") {
                            event.preventDefault();
                            take(i, j, event.currentTarget.value);
                            move(
                              event.key === "Enter" ? i + 1 : i,
                              event.key === "Tab" ? j + (event.shiftKey ? -1 : 1) : j,
                            );
                          } else if (event.key === "Escape") move(i, j);
                        }}
                      />
                    ) : (
                      cell
                    )}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
