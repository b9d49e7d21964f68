import { useMemo, useState } from "preact/hooks";
import { type Flow, flows, fromDistances, tiles } from "../../charts/plan";
import { FloorPlan } from "../../parts/FloorPlan";
import { Arcs, Sorted } from "../../parts/PointsPicture";
import { number, plural } from "../../words";
import { shown } from "./history";
import type { Live } from "./live";
import { PICTURE } from "./picture-id";
import { Transport } from "./Transport";

interface Props {
  live: Live;
  fixed: Set<number>;
  toggle: (facility: number) => void;
}

export function Picture(props: Props) {
  const { job, result } = props.live;
  if (!job) return null;
  if (job.solver === "qap") return <Layout {...props} />;
  if (job.solver === "uot" || job.solver === "gromov")
    return result?.plan && !(props.live.shared && !Array.isArray(result.plan)) ? (
      <Transport live={props.live} />
    ) : (
      <Nothing live={props.live} />
    );
  if (!result) {
    const sofar = shown(props.live.betters);
    return sofar ? <Assignment live={props.live} assignment={sofar} /> : <Nothing live={props.live} />;
  }
  if (result.termination === "infeasible" || !Array.isArray(result.assignment)) return <Nothing live={props.live} />;
  return <Assignment live={props.live} assignment={result.assignment as number[]} />;
}

function Nothing({ live }: { live: Live }) {
  const over = live.job && !["queued", "running"].includes(live.job.state);
  return <p class="note">{over ? "There is no picture of this answer." : "The picture comes with the answer."}</p>;
}

/** The permutation that is best so far, or whatever the job began with. */
export function present(live: Live): number[] | null {
  const { result, note, inputs, job } = live;
  if (result?.permutation) return result.permutation;
  const sofar = shown(live.betters);
  const n = inputs.flow?.shape[0];
  if (sofar) return sofar;
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
  const [straight, setStraight] = useState(false);
  const [looked, setLooked] = useState<number | null>(null);
  if (!flow || !distance)
    return (
      <p class="note">
        {live.shared
          ? "What was given is not shown, so there is no plan."
          : flow === null || distance === null
            ? "There is no plan: what was given was not kept with the job, or is too large to be sent here."
            : "Loading the problem…"}
      </p>
    );
  if (!positions || !permutation)
    return <p class="note">A layout of {n} places is too large to be drawn here; the table below has all of it.</p>;
  const before = live.note?.today ?? null;
  const moved = before ? permutation.filter((place, i) => before[i] !== place && !fixed.has(i)).length : 0;
  const found = live.result !== null || shown(live.betters) !== null;
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
        straight={straight}
        looked={setLooked}
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
        {live.note?.rooms?.every((row) => row.length > 3) && (
          <button class="link fine no-print" type="button" onClick={() => setStraight(!straight)}>
            {straight ? "Draw ways along corridors" : "Draw straight lines"}
          </button>
        )}
        {!live.note?.rooms && <span>Places are drawn by their distances</span>}
        {!found && <span>Shown: where the search began</span>}
      </figcaption>
      <p class="note fine no-print">
        {looked === null
          ? `Point at a department to see its ways alone${live.shared ? "." : "; click it to fix it."}`
          : tripWords(trips, looked, live.note?.rows ?? null)}
      </p>
    </figure>
  );
}

/** "Reception: 818 trips, most with Emergency (261)". */
function tripWords(trips: Flow[], facility: number, names: string[] | null): string {
  const own = trips.filter((one) => one.from === facility || one.to === facility);
  const name = (at: number) => names?.[at] ?? `${at + 1}`;
  const most = own
    .slice(0, 3)
    .map((one) => `${name(one.from === facility ? one.to : one.from)} (${number(one.count)})`);
  const sum = own.reduce((total, one) => total + one.count, 0);
  return `${name(facility)}: ${plural(sum, "trip")}${most.length ? `, most with ${most.join(", ")}` : ""}.`;
}

function Assignment({ live, assignment }: { live: Live; assignment: number[] }) {
  if (Array.isArray(assignment[0]))
    return (
      <p class="note">
        A batch has one answer for each of its {assignment.length} problems; the files below hold them all.
      </p>
    );
  const { note, inputs, sparse, job } = live;
  const columns = (inputs.cost ?? inputs.benefit)?.shape[1] ?? sparse?.shape[1] ?? Math.max(...assignment, 0) + 1;
  const free = assignment.filter((j) => j < 0).length;
  const [one, other] = [note?.rowWord ?? "row", note?.columnWord ?? "column"];
  const label = `${assignment.length - free} of ${assignment.length} ${one}s with one ${other} each`;
  const frames = Boolean(job?.input_digests.sizes); // whose columns are counted from each frame's first
  const [from, to] = frames ? [null, null] : [note?.from ?? points(inputs.x), note?.to ?? points(inputs.y)];
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
