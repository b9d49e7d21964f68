import { useMemo } from "preact/hooks";
import type { Note } from "../../api/notes";
import type { Matrix } from "../../api/npy";
import type { Job, Result } from "../../api/types";
import { flows, fromDistances, shares, tiles, walked } from "../../charts/plan";
import type { Table } from "../../files/cells";
import { FloorPlan } from "../../parts/FloorPlan";
import { Rows } from "../../parts/Rows";
import { plural } from "../../words";

export interface Scenario {
  job: Job;
  result: Result;
  note: Note | null;
  name: string;
  answer: number[] | null;
}

export function Plans({
  scenarios,
  matrices,
  note,
  today,
  show,
}: {
  scenarios: Scenario[];
  matrices: { flow: Matrix; distance: Matrix };
  note: Note | null;
  today: number[] | null;
  show: (raw: number) => string;
}) {
  const n = matrices.flow.shape[0]!;
  const positions = useMemo(
    () => note?.rooms ?? (n <= 200 ? tiles(fromDistances(matrices.distance.values, n)) : null),
    [matrices, note],
  );
  const trips = useMemo(() => flows(matrices.flow.values, n, 250), [matrices]);
  if (!positions) return null;
  const all: [string, number[], number[]][] = [
    ...(today ? [["Today", today, []] as [string, number[], number[]]] : []),
    ...scenarios
      .filter((one) => one.answer)
      .map((one): [string, number[], number[]] => [
        one.name,
        one.answer!,
        Object.keys((one.job.options.fixed as object) ?? {}).map(Number),
      ]),
  ];
  return (
    <section class="gap8 part">
      <div class="head">
        <h2>Where people walk</h2>
        <span class="note small wide">Line width: trips. The same scale in all: the less ink, the less way.</span>
      </div>
      <div class="plans">
        {all.map(([name, permutation, fixed]) => (
          <figure>
            <h3>
              {name}
              <span>{show(walked(matrices.flow.values, matrices.distance.values, permutation))}</span>
            </h3>
            <FloorPlan
              mini
              positions={positions}
              permutation={permutation}
              flows={trips}
              facilityNames={note?.rows ?? null}
              placeNames={note?.columns ?? null}
              before={today}
              fixed={new Set(fixed)}
              label={`${name}: the places and the ways between them; the table below names them`}
              width={306}
            />
          </figure>
        ))}
      </div>
    </section>
  );
}

export function WhoMoves({
  scenarios,
  matrices,
  note,
  today,
  factor,
  unit,
}: {
  scenarios: Scenario[];
  matrices: { flow: Matrix; distance: Matrix };
  note: Note | null;
  today: number[] | null;
  factor: number;
  unit: string;
}) {
  const n = matrices.flow.shape[0]!;
  const name = (place: number) => note?.columns?.[place] ?? `${place + 1}`;
  const base = today ? shares(matrices.flow.values, matrices.distance.values, today) : null;
  const each = scenarios.map((one) =>
    one.answer ? shares(matrices.flow.values, matrices.distance.values, one.answer) : null,
  );
  const rows: Table = Array.from({ length: n }, (_, i) => [
    note?.rows?.[i] ?? `${i + 1}`,
    ...(today ? [name(today[i]!)] : []),
    ...scenarios.flatMap((one, at) => [
      one.answer ? (today?.[i] === one.answer[i] ? "stays" : name(one.answer[i]!)) : "",
      each[at] ? Number(((each[at]![i]!.way - (base?.[i]!.way ?? 0)) * factor).toPrecision(4)) : "",
    ]),
    base ? base[i]!.way : (each[0]?.[i]!.way ?? 0),
  ])
    .sort((a, b) => Number(b.at(-1)) - Number(a.at(-1)))
    .map((row) => row.slice(0, -1));
  const head = [
    "Department",
    ...(today ? ["Today"] : []),
    ...scenarios.flatMap((one) => [one.name, `${unit || "way"}${base ? ", change" : ""}`]),
  ];
  return (
    <section class="gap8 part">
      <div class="head">
        <h2>Who moves</h2>
        <span class="note small wide">most walked first</span>
      </div>
      <Rows head={head} rows={rows} numeric={99} caption="Who moves" />
    </section>
  );
}

const titled = (word: string): string => word.charAt(0).toUpperCase() + word.slice(1);

/** Rows that not all scenarios give the same. */
export function WhoChanges({ scenarios, note }: { scenarios: Scenario[]; note: Note | null }) {
  const answers = scenarios.map((one) => one.answer);
  if (answers.some((one) => !one || Array.isArray(one[0]))) return null;
  const name = (j: number | undefined) => (j === undefined || j < 0 ? "none" : (note?.columns?.[j] ?? `${j + 1}`));
  const rows: Table = answers[0]!
    .map((_, i) => [note?.rows?.[i] ?? `${i + 1}`, ...answers.map((one) => name(one![i]))])
    .filter((row) => new Set(row.slice(1)).size > 1);
  return (
    <section class="gap8 part">
      <div class="head">
        <h2>What differs</h2>
        {rows.length > 0 && (
          <span class="note small">
            {rows.length} of {plural(answers[0]!.length, note?.rowWord ?? "row")}
          </span>
        )}
      </div>
      {rows.length > 0 ? (
        <Rows
          head={[titled(note?.rowWord ?? "row"), ...scenarios.map((one) => one.name)]}
          rows={rows}
          numeric={99}
          caption="What differs"
        />
      ) : (
        <p class="note">Nothing: the answers are the same, row by row.</p>
      )}
    </section>
  );
}
