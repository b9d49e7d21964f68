import { useMemo, useState } from "preact/hooks";
import { corridors, type Segment } from "../charts/corridors";
import { round } from "../charts/curve";
import { bow, type Flow, layOut, type Plan, strokeWidth, turned } from "../charts/plan";
import { useNarrow } from "../shell/theme";

interface Props {
  positions: number[][];
  /** Facility to place. */
  permutation: number[];
  flows: Flow[];
  facilityNames: string[] | null;
  placeNames: string[] | null;
  before: number[] | null;
  fixed: Set<number>;
  label: string;
  width: number;
  mini?: boolean;
  mostTrips?: number;
  toggle?: (facility: number) => void;
  id?: string;
  /** Straight between rooms, even where the floor has corridors. */
  straight?: boolean;
  /** Told which department is looked at. */
  looked?: (facility: number | null) => void;
}

/** A floor with who is where. The other flows fade while one department is under the pointer or has the focus. */
export function FloorPlan(props: Props) {
  const { positions, permutation, flows, width, mini = false } = props;
  const [near, look] = useState<number | null>(null);
  const setNear = (facility: number | null) => (look(facility), props.looked?.(facility));
  const sketch = positions.some((row) => row.length < 4);
  const phone = useNarrow() && !mini;
  const plan = useMemo(
    () => (phone ? turned(layOut(positions, 640, 356)) : layOut(positions, width - 2, mini ? 300 : 620)),
    [positions, width, mini, phone],
  );
  const ways = useMemo(() => (sketch || props.straight ? null : corridors(plan)), [plan, props.straight]);
  const most = props.mostTrips ?? flows[0]?.count ?? 1;
  const seats = permutation.map((place, facility) => ({ place, facility, room: plan.rooms[place]! }));
  return (
    <svg
      id={props.id}
      class={mini ? "plan mini" : "plan"}
      viewBox={`-1 -1 ${Math.ceil(plan.width) + 2} ${Math.ceil(plan.height) + 2}`}
      width={Math.ceil(plan.width) + 2}
      role={mini ? "img" : "group"}
      aria-label={props.label}
      onPointerLeave={() => setNear(null)}
    >
      {!sketch && <rect class="hull" width={plan.width} height={plan.height} />}
      {seats.map(({ room, facility, place }) => {
        const moved = props.before !== null && props.before[facility] !== place;
        const kind = props.fixed.has(facility) ? "room fixed" : moved ? "room moved" : "room";
        const name = props.facilityNames?.[facility] ?? `${facility + 1}`;
        const code = props.placeNames?.[place] ?? `${place + 1}`;
        if (mini) return <rect key={facility} class={kind} x={room.x} y={room.y} width={room.w} height={room.h} />;
        return (
          <g
            key={facility}
            class="seat"
            transform={`translate(${room.x} ${room.y})`}
            tabIndex={0}
            role="button"
            aria-pressed={props.fixed.has(facility)}
            aria-label={`${name}, ${code}${moved ? ", moved" : ""}${props.fixed.has(facility) ? ", must stay" : ""}`}
            onPointerEnter={() => setNear(facility)}
            onFocus={() => setNear(facility)}
            onBlur={() => setNear(null)}
            onClick={() => props.toggle?.(facility)}
            onKeyDown={(event) => walk(event, plan.rooms, permutation, facility, props.toggle)}
          >
            <rect class={kind} width={room.w} height={room.h} />
            {sketch && room.w < 40 ? <title>{name}</title> : null}
          </g>
        );
      })}
      <g pointer-events="none">
        {ways ? (
          <Bands
            all={ways.segments(flows, permutation)}
            own={
              near === null
                ? null
                : ways.segments(
                    flows.filter((one) => one.from === near || one.to === near),
                    permutation,
                  )
            }
            unit={bandUnit(plan, flows, ways.narrowest)}
          />
        ) : (
          flows.map((flow) => (
            <path
              class={`flow${near !== null ? (near === flow.from || near === flow.to ? " far" : " off") : ""}`}
              d={bow(plan.doors[permutation[flow.from]!]!, plan.doors[permutation[flow.to]!]!)}
              stroke-width={Math.round(strokeWidth(flow.count, most, mini ? 4 : 11) * 10) / 10}
            />
          ))
        )}
        {!mini &&
          seats.map(({ facility, place, room }) => (
            <g key={facility} transform={`translate(${room.x} ${room.y})`}>
              <Name
                text={props.facilityNames?.[facility] ?? `${facility + 1}`}
                code={props.placeNames?.[place] ?? ""}
                room={room}
                low={!phone && plan.doors[place]![1] < room.y + room.h * 0.5}
                locked={props.fixed.has(facility)}
              />
              <circle
                class="f-accent"
                cx={plan.doors[place]![0] - room.x}
                cy={plan.doors[place]![1] - room.y}
                r="2.5"
              />
            </g>
          ))}
      </g>
    </svg>
  );
}

/**
 * How many pixels wide one trip is.
 *
 * It follows from the floor and the trips alone, so that plans of one floor can be compared. All ways of the busiest
 * department fit its room, and a quarter of all trips fits the narrowest corridor.
 */
function bandUnit(plan: Plan, flows: Flow[], narrowest: number): number {
  const own = new Map<number, number>();
  for (const { from, to, count } of flows) for (const one of [from, to]) own.set(one, (own.get(one) ?? 0) + count);
  const all = flows.reduce((sum, flow) => sum + flow.count, 0) || 1;
  const side = Math.min(...plan.rooms.map((room) => Math.min(room.w, room.h)));
  return Math.min((0.16 * side) / Math.max(1e-9, ...own.values()), (0.9 * narrowest) / (0.25 * all));
}

/** Trips along corridors. While one department is looked at, its own ways are drawn over the others. */
function Bands({ all, own, unit }: { all: Segment[]; own: Segment[] | null; unit: number }) {
  return (
    <>
      <g class={own ? "ways off" : "ways"}>{all.map((part) => band(part, unit))}</g>
      {own && <g class="ways far">{own.map((part) => band(part, unit))}</g>}
    </>
  );
}

const band = ({ x0, y0, x1, y1, count, clear }: Segment, unit: number) => (
  <path
    d={`M${round(x0)} ${round(y0)}L${round(x1)} ${round(y1)}`}
    stroke-width={round(Math.max(0.6, Math.min(count * unit, 0.9 * clear)))}
  />
);

function Name({
  text,
  code,
  room,
  low,
  locked,
}: {
  text: string;
  code: string;
  room: { w: number; h: number };
  low: boolean;
  locked: boolean;
}) {
  const fits = Math.floor((room.w - 12) / 6.4);
  if (fits < 2 || room.h < 20) return null;
  const shown = text.length <= fits ? text : `${text.slice(0, Math.max(1, fits - 1))}…`;
  const two = room.h > 44 && code;
  const y = low ? room.h - (two ? 22 : 8) : 17;
  return (
    <>
      <text class="room-name halo" x="7" y={y}>
        {shown}
      </text>
      {two && (
        <text class="room-code halo" x="7" y={y + 15}>
          {code}
          {locked ? " · stays" : ""}
        </text>
      )}
    </>
  );
}

/** Arrows go to the nearest room in that direction; f or Enter fixes. */
function walk(
  event: KeyboardEvent,
  rooms: { x: number; y: number; w: number; h: number }[],
  permutation: number[],
  facility: number,
  toggle?: (facility: number) => void,
): void {
  if (event.key === "f" || event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    event.stopPropagation();
    return toggle?.(facility);
  }
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
  if (!way) return;
  event.preventDefault();
  const middle = (at: number) =>
    [
      rooms[permutation[at]!]!.x + rooms[permutation[at]!]!.w / 2,
      rooms[permutation[at]!]!.y + rooms[permutation[at]!]!.h / 2,
    ] as const;
  const [x, y] = middle(facility);
  let [best, least] = [-1, Infinity];
  permutation.forEach((_, other) => {
    const [dx, dy] = [middle(other)[0] - x, middle(other)[1] - y];
    const along = dx * way[0]! + dy * way[1]!;
    const cost = along + 2.5 * Math.abs(dx * way[1]! + dy * way[0]!);
    if (along > 1 && cost < least) [best, least] = [other, cost];
  });
  const seats = (event.currentTarget as Element).parentElement?.querySelectorAll<SVGElement>(".seat");
  if (best >= 0) seats?.[best]?.focus();
}
