import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../../api/http";
import type { Heat } from "../../api/types";
import { heatOf } from "../../charts/heat";
import { flows, fromDistances, tiles } from "../../charts/plan";
import { FloorPlan } from "../../parts/FloorPlan";
import { HeatMap } from "../../parts/HeatMap";
import { Arcs, Sorted, Swatches } from "../../parts/PointsPicture";
import { number } from "../../words";
import type { Live } from "./live";

export const PICTURE = "picture";

interface Props {
  live: Live;
  fixed: Set<number>;
  toggle: (facility: number) => void;
}

export function Picture(props: Props) {
  const { job, result } = props.live;
  if (!job) return null;
  if (job.solver === "qap") return <Layout {...props} />;
  if (job.solver === "uot")
    return result?.plan && !(props.live.shared && !Array.isArray(result.plan)) ? (
      <Transport {...props} />
    ) : (
      <Nothing live={props.live} />
    );
  if (!result || result.termination === "infeasible" || !Array.isArray(result.assignment))
    return <Nothing live={props.live} />;
  return <Assignment live={props.live} assignment={result.assignment as number[]} />;
}

function Nothing({ live }: { live: Live }) {
  const over = live.job && !["queued", "running"].includes(live.job.state);
  return <p class="note">{over ? "There is no picture of this answer." : "The picture comes with the answer."}</p>;
}

/** The permutation that is best so far, or whatever the job began with. */
export function present(live: Live): number[] | null {
  const { result, betters, note, inputs, job } = live;
  if (result?.permutation) return result.permutation;
  const told = betters.findLast((one) => one.permutation)?.permutation;
  const n = inputs.flow?.shape[0];
  if (told) return told;
  if (inputs.permutation0) return [...inputs.permutation0.values];
  return note?.today ?? (n && job?.solver === "qap" ? Array.from({ length: n }, (_, i) => i) : null);
}

function Layout({ live, fixed, toggle }: Props) {
  const { flow, distance } = live.inputs;
  const n = flow?.shape[0] ?? 0;
  const positions = useMemo(
    () => live.note?.rooms ?? (distance && n <= 200 ? tiles(fromDistances(distance.values, n)) : null),
    [live.note, distance],
  );
  const trips = useMemo(() => (flow ? flows(flow.values, n, n > 60 ? 300 : 500) : []), [flow]);
  const permutation = present(live);
  if (!flow || !distance)
    return (
      <p class="note">{live.shared ? "What was given is not shown, so there is no plan." : "Loading the problem…"}</p>
    );
  if (!positions || !permutation)
    return <p class="note">A layout of {n} places is too large to be drawn here; the table below has all of it.</p>;
  const before = live.note?.today ?? null;
  const moved = before ? permutation.filter((place, i) => before[i] !== place && !fixed.has(i)).length : 0;
  const found = live.result !== null || live.betters.some((one) => one.permutation);
  return (
    <figure class="gap8">
      <FloorPlan
        id={PICTURE}
        positions={positions}
        permutation={permutation}
        flows={trips}
        facilityNames={live.note?.rows ?? null}
        placeNames={live.note?.columns ?? null}
        before={before}
        fixed={fixed}
        width={832}
        toggle={toggle}
        label={`${found ? "The best layout so far" : "The layout at the beginning"} of ${n} departments; arrows go from room to room, f fixes a department`}
      />
      <figcaption class="legend">
        {before && (
          <span>
            <i class="swatch moved" />
            moved, {moved}
          </span>
        )}
        {before && (
          <span>
            <i class="swatch" />
            as today, {n - moved - fixed.size}
          </span>
        )}
        {fixed.size > 0 && (
          <span>
            <i class="swatch fixed" />
            must stay, {fixed.size}
          </span>
        )}
        <span>Line width is trips: less ink, less way</span>
        {!live.note?.rooms && <span>Places are drawn by their distances</span>}
        {!found && <span>Shown: where the search began</span>}
        {!live.shared && <span>Click a department to fix it</span>}
      </figcaption>
    </figure>
  );
}

function Assignment({ live, assignment }: { live: Live; assignment: number[] }) {
  if (Array.isArray(assignment[0]))
    return (
      <p class="note">
        A batch has one answer for each of its {assignment.length} problems; the files below hold them all.
      </p>
    );
  const { note, inputs, sparse } = live;
  const columns = (inputs.cost ?? inputs.benefit)?.shape[1] ?? sparse?.shape[1] ?? Math.max(...assignment, 0) + 1;
  const free = assignment.filter((j) => j < 0).length;
  const [one, other] = [note?.rowWord ?? "row", note?.columnWord ?? "column"];
  const label = `${assignment.length - free} of ${assignment.length} ${one}s with one ${other} each`;
  const [from, to] = [note?.from ?? points(inputs.x), note?.to ?? points(inputs.y)];
  if (!from || !to) {
    return (
      <figure class="gap8">
        <Sorted id={PICTURE} assignment={assignment} columns={columns} label={label} />
        <figcaption class="legend">
          <span>
            Each dot is a pair: {other}s from left to right, {one}s in the order of what they got
          </span>
        </figcaption>
      </figure>
    );
  }
  return (
    <figure class="gap8">
      <Arcs
        id={PICTURE}
        from={from}
        to={to}
        assignment={assignment}
        names={[note?.rows ?? null, note?.columns ?? null]}
        label={label}
      />
      <figcaption class="legend">
        <span>
          <svg width="10" height="10" aria-hidden="true">
            <circle class="f-accent" cx="5" cy="5" r="4" />
          </svg>
          {one}
        </span>
        <span>
          <svg width="10" height="10" aria-hidden="true">
            <rect class="f-ink" x="1" y="1" width="8" height="8" />
          </svg>
          {other}
        </span>
        {columns > assignment.length - free && (
          <span>
            <svg width="10" height="10" aria-hidden="true">
              <rect class="pt-free" x="1.5" y="1.5" width="7" height="7" />
            </svg>
            {other} not needed, {columns - assignment.length + free}
          </span>
        )}
        {free > 0 && (
          <span>
            <svg width="10" height="10" aria-hidden="true">
              <circle class="pt-free" cx="5" cy="5" r="3.5" />
            </svg>
            {one} without one, {free}
          </span>
        )}
        <span>The longest way is drawn bold</span>
      </figcaption>
    </figure>
  );
}

const points = (matrix: Live["inputs"][string] | undefined): number[][] | null => {
  if (!matrix || matrix.shape.length !== 2 || matrix.shape[1]! < 2) return null;
  const d = matrix.shape[1]!;
  return Array.from({ length: matrix.shape[0]! }, (_, i) => [matrix.values[i * d]!, matrix.values[i * d + 1]!]);
};

type Part = { top: number; bottom: number; left: number; right: number } | null;

function Transport({ live }: Props) {
  const [heat, setHeat] = useState<(Heat & { shape: [number, number] }) | null>(null);
  const [part, setPart] = useState<Part>(null);
  const id = live.job!.id;
  useEffect(() => {
    if (live.shared) return setHeat(heatOf(live.result!.plan as number[][], part));
    const asked = new URLSearchParams({
      array: "plan",
      most: "96",
      ...(part ? Object.fromEntries(Object.entries(part).map(([name, at]) => [name, String(at)])) : {}),
    });
    void get<Heat & { shape: [number, number] }>(`/v1/jobs/${id}/picture?${asked}`).then(setHeat, () => setHeat(null));
  }, [id, part]);
  const mapped = useMemo(() => recoloured(live), [live.result, live.note]);
  if (!heat) return <p class="note">Drawing the plan…</p>;
  const [m, n] = heat.shape;
  const shown = part ?? { top: 0, bottom: m, left: 0, right: n };
  const given = part
    ? undefined
    : { rows: edge(live.inputs.a, m, heat.height), columns: edge(live.inputs.b, n, heat.width) };
  const area =
    (heat.height &&
      heat.width &&
      ((shown.bottom - shown.top) / heat.height) * ((shown.right - shown.left) / heat.width)) ||
    1;
  const scaled = { ...heat, values: heat.values.map((one) => (one === null ? null : one * area)) };
  const zoom = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).querySelector("canvas")!.getBoundingClientRect();
    const scale = box.width / Number((event.currentTarget as Element).querySelector("canvas")!.dataset.width);
    const size = 560 / Math.max(heat.width, heat.height);
    const [j, i] = [
      (event.clientX - box.left) / scale / size / heat.width,
      (event.clientY - box.top) / scale / size / heat.height,
    ];
    if (i > 1 || j > 1) return;
    const [h, w] = [
      Math.max(8, Math.ceil((shown.bottom - shown.top) / 3)),
      Math.max(8, Math.ceil((shown.right - shown.left) / 3)),
    ];
    const top = Math.round(Math.min(Math.max(0, shown.top + i * (shown.bottom - shown.top) - h / 2), m - h));
    const left = Math.round(Math.min(Math.max(0, shown.left + j * (shown.right - shown.left) - w / 2), n - w));
    setPart({
      top: Math.max(0, top),
      bottom: Math.min(m, Math.max(0, top) + h),
      left: Math.max(0, left),
      right: Math.min(n, Math.max(0, left) + w),
    });
  };
  return (
    <figure class="gap16">
      {mapped && (
        <Swatches
          id={PICTURE}
          from={live.note!.from!}
          to={live.note!.to!}
          mapped={mapped}
          label="Colours before, after, and those they are taken from"
        />
      )}
      <div onClick={zoom}>
        <HeatMap
          id={mapped ? undefined : PICTURE}
          heat={scaled}
          size={560}
          counts
          sums
          given={given}
          label={`What goes from ${m} rows to ${n} columns, darkest where most goes`}
        />
      </div>
      <figcaption class="legend">
        <span>
          <i class="swatch ink" />
          moved
        </span>
        {given?.rows && <span>the line: given</span>}
        <span>
          {part
            ? `Rows ${number(shown.top + 1)} to ${number(shown.bottom)}, columns ${number(shown.left + 1)} to ${number(shown.right)}`
            : "Click to look closer"}
        </span>
        {part && (
          <button class="link fine" type="button" onClick={() => setPart(null)}>
            Show all of it
          </button>
        )}
      </figcaption>
    </figure>
  );
}

/** Amounts that were given, added up over the blocks of the picture; every point has the same where none were. */
function edge(given: Live["inputs"][string] | undefined, count: number, blocks: number): number[] {
  const sums = new Array<number>(blocks).fill(0);
  const step = Math.ceil(count / blocks);
  for (let i = 0; i < count; i++) {
    sums[Math.min(blocks - 1, Math.floor(i / step))]! += given ? given.values[i]! : 1 / count;
  }
  return sums;
}

/** Each colour of the first picture, as the mean of those that its plan sends it to. */
function recoloured(live: Live): number[][] | null {
  const { note, result } = live;
  const plan = result?.plan;
  if (!note?.colours || !note.from || !note.to || !Array.isArray(plan)) return null;
  return note.from.map((own, i) => {
    const row = plan[i] ?? [];
    const sum = row.reduce((total, one) => total + one, 0);
    return sum > 0
      ? [0, 1, 2].map((d) => row.reduce((total, one, j) => total + one * (note.to![j]?.[d] ?? 0), 0) / sum)
      : own;
  });
}
