import { useEffect, useMemo, useState } from "preact/hooks";
import type { Note } from "../../api/notes";
import { fetchMatrix } from "../../api/npy";
import { heatOf } from "../../charts/heat";
import { HeatMap } from "../../parts/HeatMap";
import { Rows } from "../../parts/Rows";
import { number, plural } from "../../words";
import { changes, planOf } from "./changes";
import type { Scenario } from "./Plans";

/** Transport plans side by side, in one scale of colours, and the pairs between which most has changed. */
export function Amounts({ scenarios, note }: { scenarios: Scenario[]; note: Note | null }) {
  const [plans, setPlans] = useState<(number[][] | null)[] | null>(null);
  useEffect(() => {
    void Promise.all(scenarios.map(({ result }) => planOf(result.plan, fetchMatrix).catch(() => null))).then(setPlans);
  }, [scenarios]);
  const heats = useMemo(() => plans?.map((plan) => plan && heatOf(plan, null)) ?? null, [plans]);
  const differing = useMemo(() => (plans?.every((plan) => plan) ? changes(plans as number[][][]) : null), [plans]);
  if (!plans || !heats) return <p class="note">Drawing the plans…</p>;
  const drawn = heats.filter((heat) => heat !== null);
  if (!drawn.length) return <p class="note">These plans are too large to be compared here; their files hold them.</p>;
  const most = Math.max(...drawn.map((heat) => heat.values.reduce<number>((a, b) => Math.max(a, b ?? 0), 0)));
  const coupled = scenarios[0]!.job.solver === "gromov";
  const name = (list: string[] | null | undefined, word: string, at: number) => list?.[at] ?? `${word} ${at + 1}`;
  return (
    <>
      <section class="gap8 part">
        <div class="head">
          <h2>{coupled ? "What goes with what" : "What goes where"}</h2>
          <span class="note small wide">One scale of colours for all.</span>
        </div>
        <div class="plans">
          {scenarios.map((one, at) => {
            const heat = heats[at];
            const sum = heat ? heat.rows.reduce((a, b) => a + b, 0) : 0;
            return heat ? (
              <figure key={one.job.id}>
                <h3>
                  {one.name}
                  {!coupled && <span>{number(sum)} moved</span>}
                </h3>
                <HeatMap
                  heat={heat}
                  size={280}
                  counts
                  sums
                  most={most}
                  label={`${one.name}: what goes from ${heat.shape[0]} rows to ${heat.shape[1]} columns`}
                />
              </figure>
            ) : null;
          })}
        </div>
      </section>
      {differing && (
        <section class="gap8 part">
          <div class="head">
            <h2>What differs</h2>
            {differing.length > 0 && (
              <span class="note small">the {plural(differing.length, "pair")} that changed most</span>
            )}
          </div>
          {differing.length ? (
            <Rows
              head={["From", "To", ...scenarios.map((one) => one.name)]}
              rows={differing.map(([i, j, ...amounts]) => [
                name(note?.rows, "Row", i!),
                name(note?.columns, "Column", j!),
                ...amounts.map((one) => Number(one.toPrecision(4))),
              ])}
              numeric={2}
              caption="What differs"
            />
          ) : (
            <p class="note">Nothing: the plans are the same.</p>
          )}
        </section>
      )}
    </>
  );
}
