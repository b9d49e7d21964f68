import type { StripShape } from "../../charts/bars";
import { ticks } from "../../charts/scale";
import { number } from "../../words";

export function Axis({ low, high }: { low: number; high: number }) {
  const x = (value: number) => ((value - low) / (high - low)) * 472;
  return (
    <svg class="wide" viewBox="0 0 472 14" width="472" aria-hidden="true">
      {ticks(low, high, 5).map((tick) => (
        <text class={`tick ${x(tick) < 24 ? "" : x(tick) > 448 ? "te" : "tm"}`} x={x(tick)} y="11">
          {number(tick, 4)}
        </text>
      ))}
    </svg>
  );
}

export function Strip({ shape, ink = false }: { shape: StripShape; ink?: boolean }) {
  const { floor, found, today } = shape;
  return (
    <svg viewBox="0 0 472 36" width="472" aria-hidden="true">
      {today !== null && <path class="d-today" d={`M${today} 0V36`} />}
      {floor !== null && (
        <>
          <rect class="f-line" x="0" y="13" width={Math.max(0, floor)} height="10" />
          <rect class="d-gap" x={floor} y="13" width={Math.max(0, found - floor)} height="10" />
          <rect class="f-ink" x={floor - 0.75} y="9" width="1.5" height="18" />
        </>
      )}
      {today !== null && !ink && <path class="d-found" d={`M${found} 18H${today}`} />}
      <circle class={ink ? "f-ink" : "f-accent"} cx={found} cy="18" r="5" />
    </svg>
  );
}
