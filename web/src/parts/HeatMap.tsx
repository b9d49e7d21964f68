import { useLayoutEffect, useRef } from "preact/hooks";
import type { Heat } from "../api/types";
import { levels, NONE, scaleLabels, ZERO } from "../charts/heat";
import { ramp } from "../charts/ramp";
import { colours, isDark } from "../shell/theme";
import { number } from "../words";

interface Given {
  rows: number[] | null;
  columns: number[] | null;
}

interface Props {
  heat: Heat;
  label: string;
  size: number;
  /** Counts: zero is blank, and the colour follows the square root. */
  counts: boolean;
  sums?: boolean;
  /** Amounts that were asked for at the edges, drawn as a line over the sums. */
  given?: Given;
  unit?: string;
  id?: string;
  /** The largest value of all pictures that share one scale of colours. */
  most?: number;
}

const BAR = 22,
  GAP = 5;

export function HeatMap({ heat, label, size, counts, sums = false, given, unit = "", id, most }: Props) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const scale = size / Math.max(heat.width, heat.height, 1);
  const [width, height] = [Math.max(24, heat.width * scale), Math.max(24, heat.height * scale)];
  const edge = sums ? BAR + GAP : 0;
  useLayoutEffect(() => {
    const target = canvas.current;
    if (target) draw(target, heat, { width, height, counts, sums, given, most });
  }, [heat, width, height, counts, sums, given, most, colours.value]);
  const marks = scaleLabels(heat.values, counts, most);
  return (
    <div>
      <canvas
        ref={canvas}
        id={id}
        role="img"
        aria-label={label}
        width={(width + edge) * 2}
        height={(height + edge) * 2}
        class="heat-canvas"
        data-width={width + edge}
      />
      {marks && <Scale marks={marks} width={Math.min(width, 180)} unit={unit} />}
    </div>
  );
}

function draw(
  canvas: HTMLCanvasElement,
  heat: Heat,
  box: { width: number; height: number; counts: boolean; sums: boolean; given?: Given; most?: number },
): void {
  const edge = box.sums ? BAR + GAP : 0;
  canvas.style.width = `${box.width + edge}px`;
  const pen = canvas.getContext("2d")!;
  const style = getComputedStyle(canvas);
  const colour = (name: string) => style.getPropertyValue(name).trim();
  const probe = (name: string) => resolved(canvas, name) || colour(name);
  pen.setTransform(2, 0, 0, 2, 0, 0);
  pen.clearRect(0, 0, box.width + edge, box.height + edge);
  const shades = ramp(isDark());
  const found = levels(heat.values, box.counts, box.most);
  const [w, h] = [box.width / heat.width, box.height / heat.height];
  const wash = probe("--wash"),
    line = probe("--line");
  for (let i = 0; i < heat.height; i++) {
    for (let j = 0; j < heat.width; j++) {
      const level = found[i * heat.width + j]!;
      pen.fillStyle = level === ZERO ? wash : level === NONE ? line : shades[level]!;
      const [x0, y0] = [Math.round(j * w * 2) / 2, Math.round(i * h * 2) / 2];
      pen.fillRect(x0, y0, Math.round((j + 1) * w * 2) / 2 - x0, Math.round((i + 1) * h * 2) / 2 - y0);
    }
  }
  if (!box.sums) return;
  const edgeInk = probe("--edge"),
    ink = probe("--ink");
  bars(pen, heat.rows, box.given?.rows ?? null, box.width + GAP, h, true, edgeInk, ink);
  bars(pen, heat.columns, box.given?.columns ?? null, box.height + GAP, w, false, edgeInk, ink);
}

function bars(
  pen: CanvasRenderingContext2D,
  sums: number[],
  given: number[] | null,
  from: number,
  step: number,
  across: boolean,
  fill: string,
  ink: string,
): void {
  const most = Math.max(...sums.map(Math.abs), ...(given ?? []), 1e-300);
  const long = (value: number) => (BAR * Math.abs(value)) / most;
  pen.fillStyle = fill;
  sums.forEach((value, at) => {
    const thick = Math.max(0.5, step - 0.75);
    if (across) pen.fillRect(from, at * step, long(value), thick);
    else pen.fillRect(at * step, from, thick, long(value));
  });
  if (!given) return;
  pen.strokeStyle = ink;
  pen.lineWidth = 1;
  pen.beginPath();
  given.forEach((value, at) => {
    const place = (at + 0.5) * step;
    if (across) pen.lineTo(from + long(value), place);
    else pen.lineTo(place, from + long(value));
  });
  pen.stroke();
}

/** A token as a colour that a canvas takes: light-dark() is resolved by giving it to an element. */
function resolved(near: HTMLElement, name: string): string {
  const probe = document.createElement("i");
  probe.style.color = `var(${name})`;
  near.parentElement?.append(probe);
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour;
}

function Scale({ marks, width, unit }: { marks: [number, number, number]; width: number; unit: string }) {
  const shades = ramp(isDark());
  void colours.value;
  const most = Math.max(...marks.map(Math.abs));
  const [low, middle, high] = marks.map((value) => number(Math.abs(value) < 1e-4 * most ? 0 : value, 3));
  return (
    <svg class="heat-scale" width={width} height="24" viewBox={`0 0 ${width} 24`} aria-hidden="true">
      {shades.map((shade, at) => (
        <rect x={(at * width) / 16} y="5" width={width / 16 + 0.5} height="5" fill={shade} />
      ))}
      <text class="tick" x="0" y="21">
        {low}
      </text>
      {width > 120 && low !== high && (
        <text class="tick tm" x={width / 2} y="21">
          {middle}
        </text>
      )}
      <text class="tick te" x={width} y="21">
        {low === high ? "" : `${high}${unit ? ` ${unit}` : ""}`}
      </text>
    </svg>
  );
}
