import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Table } from "../files/cells";
import { usePaper } from "../shell/theme";
import { number } from "../words";

const HEIGHT = 37,
  VIEW = 460,
  SPARE = 8,
  ON_PAPER = 200;

/** A table of any length: only the rows in view are in the document. */
export function Rows({
  head,
  rows,
  numeric,
  caption,
  mark,
  action,
}: {
  head: string[];
  rows: Table;
  numeric: number;
  caption: string;
  mark?: (row: number) => boolean;
  action?: (row: number) => ComponentChildren;
}) {
  const [top, setTop] = useState(0);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = box.current!;
    let frame = 0;
    const moved = () => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        setTop(element.scrollTop);
      });
    };
    element.addEventListener("scroll", moved, { passive: true });
    return () => element.removeEventListener("scroll", moved);
  }, []);
  const paper = usePaper();
  const long = rows.length > ON_PAPER;
  const first = long && !paper ? Math.max(0, Math.floor(top / HEIGHT) - SPARE) : 0;
  const most = paper ? ON_PAPER : Math.ceil(VIEW / HEIGHT) + 2 * SPARE;
  const last = long ? Math.min(rows.length, first + most) : rows.length;
  return (
    <div class="scroll" ref={box} tabIndex={0} role="region" aria-label={caption}>
      <table class="data" aria-rowcount={rows.length + 1}>
        <thead>
          <tr>
            {head.map((name, j) => (
              <th scope="col" class={j >= numeric ? "right" : ""}>
                {name}
              </th>
            ))}
            {action && (
              <td>
                <span class="away">Change</span>
              </td>
            )}
          </tr>
        </thead>
        <tbody>
          {first > 0 && (
            <tr aria-hidden="true">
              <td colSpan={head.length} height={first * HEIGHT} />
            </tr>
          )}
          {rows.slice(first, last).map((row, at) => (
            <tr key={first + at} aria-rowindex={first + at + 2}>
              {row.map((cell, j) => {
                const text = typeof cell === "number" ? number(cell) : (cell ?? "");
                return j === 0 ? (
                  <th scope="row">{text}</th>
                ) : (
                  <td class={j >= numeric ? "right" : ""}>
                    {j === 1 && mark?.(first + at) ? <span class="to">{text}</span> : text}
                  </td>
                );
              })}
              {action && <td class="right">{action(first + at)}</td>}
            </tr>
          ))}
          {last < rows.length && !paper && (
            <tr aria-hidden="true">
              <td colSpan={head.length} height={(rows.length - last) * HEIGHT} />
            </tr>
          )}
        </tbody>
      </table>
      {long && (
        <p class="note on-paper">
          Rows {number(first + 1)} to {number(last)} of {number(rows.length)}; a file holds all of them.
        </p>
      )}
    </div>
  );
}
