import { useMemo } from "preact/hooks";
import { curve, type Moment, round } from "../charts/curve";
import { tickLabels, timeTick } from "../charts/scale";
import { boundText, number } from "../words";

interface Props {
  moments: Moment[];
  now: number;
  end: number;
  log: boolean;
  today: number | null;
  /** From the solver's number to the one that is shown. */
  factor: number;
  maximize: boolean;
}

const BOX = { width: 208, height: 222 },
  LEFT = 52,
  TOP = 14;

/** Objective and bound against time; the same numbers stand in the table below it. */
export function Curve({ moments, now, end, log, today, factor, maximize }: Props) {
  const shape = useMemo(() => curve(moments, now, end, BOX, { log, today }), [moments, now, end, log, today]);
  const { found, floor } = shape.last;
  const foundAt = found ? shape.y(found.value) : 0;
  const floorAt = floor ? shape.y(floor.value) : 0;
  let [foundLabel, floorLabel] = [foundAt + 4, floorAt + 4];
  if (found && floor && Math.abs(foundLabel - floorLabel) < 15) {
    const middle = (foundLabel + floorLabel) / 2;
    [foundLabel, floorLabel] = foundAt <= floorAt ? [middle - 8, middle + 8] : [middle + 8, middle - 8];
  }
  const tail = BOX.width;
  const todayAt = today == null ? null : shape.y(today);
  const clash =
    todayAt != null &&
    [found && foundLabel - 4, floor && floorLabel - 4].some((y) => y != null && Math.abs(y - todayAt) < 14);
  const labels = tickLabels(shape.yTicks, factor);
  return (
    <svg
      class="curve"
      viewBox={`0 0 384 ${BOX.height + 44}`}
      width="384"
      role="img"
      aria-label="Best answer and proved bound against time; the improvements are listed below"
    >
      <g transform={`translate(${LEFT} ${TOP})`}>
        {shape.yTicks.map((tick, at) => (
          <g>
            <path class="rule" d={`M0 ${round(shape.y(tick))}H${BOX.width}`} />
            <text class="tick te" x="-8" y={round(shape.y(tick)) + 4}>
              {labels[at]}
            </text>
          </g>
        ))}
        <path class="axis" d={`M0 ${BOX.height}H${BOX.width}`} />
        {shape.xTicks.map((tick, at) => (
          <text
            class={`tick ${at === 0 ? "" : "tm"}`}
            x={round(shape.x(tick)) - (at === 0 ? 4 : 0)}
            y={BOX.height + 18}
          >
            {timeTick(tick)}
          </text>
        ))}
        {todayAt != null && <path class="d-today" d={`M0 ${round(todayAt)}H${BOX.width}`} />}
        {todayAt != null && !clash && (
          <text class="label" x={tail + 10} y={todayAt + 4}>
            {number(today! * factor)} today
          </text>
        )}
        <path class="d-gap" d={shape.between} />
        <path class="d-floor" d={shape.floor} />
        <path class="d-found" d={shape.found} />
        {found && (
          <circle
            class="f-accent"
            cx={round(Math.min(tail, shape.x(Math.min(Math.max(now, found.at), end))))}
            cy={round(foundAt)}
            r="3.5"
          />
        )}
        {found && (
          <text class="label a" x={tail + 10} y={foundLabel}>
            {number(found.value * factor)} found
          </text>
        )}
        {floor && (
          <text class="label b" x={tail + 10} y={floorLabel}>
            {boundText(floor.value * factor, found ? found.value * factor : null, maximize)}{" "}
            {maximize ? "ceiling" : "floor"}
          </text>
        )}
      </g>
    </svg>
  );
}
