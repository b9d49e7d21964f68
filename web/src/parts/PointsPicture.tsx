import { useEffect, useMemo, useRef } from "preact/hooks";
import { bow } from "../charts/plan";
import { fit, longest, type Place, sortedRows } from "../charts/points";
import { colours } from "../shell/theme";

const WIDTH = 780,
  HEIGHT = 560,
  MOST_SVG = 1000;

/** Two sets of points and who belongs to whom. */
export function Arcs({
  from,
  to,
  assignment,
  names,
  label,
  id,
}: {
  from: number[][];
  to: number[][];
  assignment: number[];
  names: (string[] | null)[];
  label: string;
  id?: string;
}) {
  const { one, other } = useMemo(() => fit(from, to, WIDTH, HEIGHT, 14), [from, to]);
  const far = longest(one, other, assignment);
  const used = new Set(assignment);
  if (one.length > MOST_SVG) return <ManyArcs id={id} one={one} other={other} assignment={assignment} label={label} />;
  return (
    <svg id={id} viewBox={`0 0 ${WIDTH} ${HEIGHT}`} width={WIDTH} role="img" aria-label={label}>
      <rect x="0.5" y="0.5" width={WIDTH - 1} height={HEIGHT - 1} class="rule" />
      {one.map((place, i) => {
        const j = assignment[i] ?? -1;
        return j >= 0 && other[j] ? (
          <path
            class={i === far ? "flow far" : "flow"}
            stroke-width={i === far ? 2.5 : 1.5}
            d={bow(place, other[j]!, 0.12)}
          />
        ) : null;
      })}
      {other.map(([x, y], j) => (
        <rect class={used.has(j) ? "f-ink" : "pt-free"} x={x - 3.5} y={y - 3.5} width="7" height="7">
          <title>{names[1]?.[j] ?? `${j + 1}`}</title>
        </rect>
      ))}
      {one.map(([x, y], i) =>
        assignment[i]! >= 0 ? (
          <circle class="f-accent" cx={x} cy={y} r="4">
            <title>{names[0]?.[i] ?? `${i + 1}`}</title>
          </circle>
        ) : (
          <circle class="pt-free" cx={x} cy={y} r="4" />
        ),
      )}
    </svg>
  );
}

/** Thousands of lines are drawn on a canvas; the table beside it holds the same. */
function ManyArcs({
  one,
  other,
  assignment,
  label,
  id,
}: {
  one: Place[];
  other: Place[];
  assignment: number[];
  label: string;
  id?: string;
}) {
  const canvas = useRef<HTMLCanvasElement>(null);
  useEffect(() => {
    const target = canvas.current!;
    const pen = target.getContext("2d")!;
    pen.setTransform(2, 0, 0, 2, 0, 0);
    pen.clearRect(0, 0, WIDTH, HEIGHT);
    pen.strokeStyle = getComputedStyle(target).color;
    pen.globalAlpha = 0.5;
    pen.beginPath();
    one.forEach(([x, y], i) => {
      const end = other[assignment[i]!];
      if (end) (pen.moveTo(x, y), pen.lineTo(end[0], end[1]));
    });
    pen.stroke();
  }, [one, other, assignment, colours.value]);
  return (
    <canvas ref={canvas} id={id} class="many" role="img" aria-label={label} width={WIDTH * 2} height={HEIGHT * 2} />
  );
}

/** Rows in the order of their columns: dots on a staircase, gaps where a column stays free. */
export function Sorted({
  assignment,
  columns,
  label,
  id,
}: {
  assignment: number[];
  columns: number;
  label: string;
  id?: string;
}) {
  const order = useMemo(() => sortedRows(assignment).filter((row) => assignment[row]! >= 0), [assignment]);
  const size = 420,
    dot = Math.max(1.5, Math.min(5, size / Math.max(assignment.length, columns) / 2));
  const stride = Math.max(1, Math.ceil(order.length / 2000));
  return (
    <svg id={id} viewBox={`0 0 ${size} ${size}`} width={size} role="img" aria-label={label}>
      <rect x="0.5" y="0.5" width={size - 1} height={size - 1} class="rule" />
      {order
        .filter((_, at) => at % stride === 0)
        .map((row, at) => (
          <circle
            class="f-accent"
            r={dot}
            cx={((assignment[row]! + 0.5) / columns) * size}
            cy={((at * stride + 0.5) / Math.max(1, order.length)) * size}
          />
        ))}
    </svg>
  );
}

/** Colours of one picture, and what they become when they take over the amounts of the other. */
export function Swatches({
  from,
  to,
  mapped,
  label,
  id,
}: {
  from: number[][];
  to: number[][];
  mapped: number[][] | null;
  label: string;
  id?: string;
}) {
  const lines: [string, number[][]][] = [
    ["before", from],
    ...(mapped ? [["after", mapped] as [string, number[][]]] : []),
    ["taken from", to],
  ];
  const most = Math.max(...lines.map(([, list]) => list.length));
  const scale =
    Math.max(...lines.flatMap(([, list]) => list.map((row) => Math.max(...row.slice(0, 3))))) > 1.5 ? 1 : 255;
  const step = WIDTH / most;
  return (
    <svg
      id={id}
      class="swatches"
      viewBox={`0 0 ${WIDTH} ${lines.length * 120}`}
      width={WIDTH}
      role="img"
      aria-label={label}
    >
      {lines.map(([name, list], line) => (
        <g transform={`translate(0 ${line * 120})`}>
          <text class="label" x="0" y="17">
            {name}
          </text>
          {list.map((row, at) => (
            <rect
              x={at * step}
              y="25"
              width={step + 0.4}
              height="80"
              fill={`rgb(${row
                .slice(0, 3)
                .map((one) => Math.round(one * scale))
                .join(" ")})`}
            />
          ))}
        </g>
      ))}
    </svg>
  );
}

/** Where the points of a sheet are: a first look before anything runs. Colours are drawn as themselves. */
export function Scatter({ points, colours: coloured, label }: { points: number[][]; colours: boolean; label: string }) {
  const size = 180,
    stride = Math.max(1, Math.ceil(points.length / 1500));
  const shown = points.filter((_, at) => at % stride === 0);
  const { one } = fit(
    coloured ? shown.map(([r = 0, g = 0, b = 0]) => [(r - b) * 0.8 + g * 0.2, r * 0.3 + g * 0.6 + b * 0.1]) : shown,
    [],
    size,
    size,
    8,
  );
  const scale = Math.max(...shown.flatMap((row) => row.slice(0, 3))) > 1.5 ? 1 : 255;
  return (
    <svg viewBox={`0 0 ${size} ${size}`} width={size} role="img" aria-label={label}>
      <rect x="0.5" y="0.5" width={size - 1} height={size - 1} class="rule" />
      {one.map(([x, y], at) => (
        <circle
          class={coloured ? undefined : "f-edge"}
          fill={
            coloured
              ? `rgb(${shown[at]!.slice(0, 3)
                  .map((value) => Math.round(value * scale))
                  .join(" ")})`
              : undefined
          }
          cx={x}
          cy={y}
          r={coloured ? 5 : 2.2}
        />
      ))}
    </svg>
  );
}
