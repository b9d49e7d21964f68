import type { StripShape } from "../../charts/bars";
import { tickLabels, ticks } from "../../charts/scale";

const WIDTH = 472;

export function Axis({ low, high }: { low: number; high: number }) {
  const x = (value: number) => ((value - low) / (high - low)) * WIDTH;
  const places = ticks(low, high, 5);
  const labels = tickLabels(places, 1);
  return (
    <svg class="wide" viewBox={`0 0 ${WIDTH} 14`} width={WIDTH} aria-hidden="true">
      {places.map((tick, at) => (
        <text class={`tick ${x(tick) < 24 ? "" : x(tick) > WIDTH - 24 ? "te" : "tm"}`} x={x(tick)} y="11">
          {labels[at]}
        </text>
      ))}
    </svg>
  );
}

/** What nobody can reach, what is not known, and what was found. A ceiling lies on the right, a floor on the left. */
export function Strip({
  shape,
  ink = false,
  ceiling = false,
}: {
  shape: StripShape;
  ink?: boolean;
  ceiling?: boolean;
}) {
  const { floor, found, today } = shape;
  const [from, to] = floor === null ? [0, 0] : ceiling ? [found, floor] : [floor, found];
  if (!Number.isFinite(found)) return null;
  return (
    <svg viewBox={`0 0 ${WIDTH} 36`} width={WIDTH} aria-hidden="true">
      {today !== null && <path class="d-today" d={`M${today} 0V36`} />}
      {floor !== null && (
        <>
          <rect class="f-line" x={ceiling ? floor : 0} y="13" width={ceiling ? WIDTH - floor : floor} height="10" />
          <rect class="d-gap" x={from} y="13" width={Math.max(0, to - from)} height="10" />
          <rect class="f-ink" x={floor - 0.75} y="9" width="1.5" height="18" />
        </>
      )}
      {today !== null && !ink && <path class="d-found" d={`M${found} 18H${today}`} />}
      <circle class={ink ? "f-ink" : "f-accent"} cx={found} cy="18" r="5" />
    </svg>
  );
}
