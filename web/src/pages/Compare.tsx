import { useEffect, useMemo, useState } from "preact/hooks";
import { get, words } from "../api/http";
import { noteOf } from "../api/notes";
import { fetchMatrix, type Matrix } from "../api/npy";
import type { Job, Result } from "../api/types";
import { strips } from "../charts/bars";
import { walked } from "../charts/plan";
import { Bones } from "../parts/forms";
import { query } from "../shell/router";
import { doneWords, maximises, number, plural, sizeWords } from "../words";
import { measureOf } from "./job/told";
import { Choose } from "./compare/Choose";
import { finding, judge, named, sameNumbers } from "./compare/judged";
import { Axis, Strip } from "./compare/Strips";
import { Amounts } from "./compare/Amounts";
import { Plans, type Scenario, WhoChanges, WhoMoves } from "./compare/Plans";

export default function Compare() {
  const ids = (query.value.get("jobs") ?? "")
    .split(",")
    .filter((id) => /^[0-9a-f]{32}$/.test(id))
    .slice(0, 6);
  return ids.length < 2 ? <Choose chosen={ids} /> : <Compared key={ids.join()} ids={ids} />;
}

function Compared({ ids }: { ids: string[] }) {
  const [scenarios, setScenarios] = useState<Scenario[] | null>(null);
  const [matrices, setMatrices] = useState<{ flow: Matrix; distance: Matrix } | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const load = async () => {
      const found = await Promise.all(ids.map(scenario));
      named(found);
      if (found[0]!.job.solver === "qap" && sameNumbers(found, ["flow", "distance"])) {
        const [flow, distance] = await Promise.all(
          ["flow", "distance"].map((name) => fetchMatrix(found[0]!.job.input_digests[name])),
        );
        if (flow && distance) setMatrices({ flow, distance });
      }
      setScenarios(found);
    };
    load().catch((error) => setWrong(words(error)));
  }, []);
  if (wrong)
    return (
      <>
        <h1>These cannot be compared</h1>
        <p class="lede">{wrong}</p>
        <p>
          <a class="link" href="/compare">
            Choose others
          </a>
        </p>
      </>
    );
  if (!scenarios) return <Bones />;
  if (new Set(scenarios.map(({ job }) => `${sizeWords(job)} ${maximises(job)}`)).size > 1)
    return (
      <>
        <h1>These are different problems</h1>
        <p class="lede">
          Only jobs of one problem can be compared.{" "}
          <a class="link" href="/compare">
            Choose others
          </a>
        </p>
      </>
    );
  return <Shown scenarios={scenarios} matrices={matrices} />;
}

async function scenario(id: string): Promise<Scenario> {
  const [job, result] = await Promise.all([get<Job>(`/v1/jobs/${id}`), get<Result>(`/v1/jobs/${id}/result`)]);
  const note = await noteOf(id, job.noted);
  const answer = result.permutation ?? (Array.isArray(result.assignment) ? result.assignment : null);
  return { job, result, note, name: "", answer };
}

function Shown({
  scenarios,
  matrices,
}: {
  scenarios: Scenario[];
  matrices: { flow: Matrix; distance: Matrix } | null;
}) {
  const note = scenarios.find((one) => one.note)?.note ?? null;
  const first = scenarios[0]!.job;
  const planned = ["uot", "gromov"].includes(first.solver);
  const { factor, unit, measure } = measureOf(first, note);
  const today = note?.today ?? null;
  const base = today && matrices ? walked(matrices.flow.values, matrices.distance.values, today) : null;
  const own = (one: Scenario): number =>
    matrices && one.answer
      ? walked(matrices.flow.values, matrices.distance.values, one.answer)
      : (one.result.objective ?? NaN);
  const max = maximises(first);
  const judged = judge(scenarios, own, max);
  const { best } = judged;
  const from = base ?? (max ? Math.min : Math.max)(...scenarios.map(own).filter(Number.isFinite));
  const moves = (one: Scenario): number =>
    today && one.answer ? one.answer.filter((place, i) => today[i] !== place).length : 0;
  const shape = useMemo(
    () =>
      strips(
        scenarios.map((one) => ({
          found: own(one) * factor,
          floor: one.job.input_digests.linear
            ? null
            : one.result.certificate.bound == null
              ? null
              : clipped(one.result.certificate.bound, own(one), max) * factor,
        })),
        base == null ? null : base * factor,
        472,
      ),
    [scenarios, matrices],
  );
  const saved = Math.abs(from - own(best)) * factor;
  const text =
    base != null
      ? `${plural(moves(best), "move")} save${moves(best) === 1 ? "s" : ""} ${number(saved)} ${unit} ${measure.replace(/^walked /, "")}`
      : finding(judged, scenarios, own, (raw) => `${number(raw * factor)} ${unit} ${measure}`.replace("  ", " "));
  return (
    <>
      <p class="crumb">
        <span>{note?.title ?? sizeWords(first)}</span>
        <span>{sizeWords(first)}</span>
        <span>
          {plural(scenarios.length, "scenario")}
          {base != null ? " against today" : ""}
        </span>
      </p>
      <div class="say">
        <div>
          <h1>{text}</h1>
          <p class="lede">
            {judged.level && base === null
              ? ""
              : `“${best.name}” comes to ${number(own(best) * factor)}${unit ? ` ${unit}` : ""} ${measure}. `}
            {doneWords(best.result)}{" "}
            {!sameNumbers(scenarios) && "They were not all given the same numbers, so read the difference with care."}
          </p>
        </div>
        <div class="acts no-print">
          <a class="btn" href="/compare">
            Choose others
          </a>
          <button class="btn" type="button" onClick={() => print()}>
            Print
          </button>
        </div>
      </div>
      <table class="strips">
        <thead>
          <tr>
            <th scope="col">Scenario</th>
            <th scope="col">
              <Axis low={shape.low} high={shape.high} />
              <span class="away">{max ? "Found and ceiling" : "Floor, found and today"} on one line</span>
            </th>
            <th scope="col" class="right">
              {unit || measure}
            </th>
            <th scope="col" class="right">
              {base != null ? "against today" : "against the worst"}
            </th>
            {today && (
              <th scope="col" class="right">
                moves
              </th>
            )}
            <th scope="col">proof</th>
          </tr>
        </thead>
        <tbody>
          {base != null && (
            <tr>
              <th scope="row">
                <b>Today</b>
                <span class="sub">as it is</span>
              </th>
              <td class="g">
                <Strip shape={{ floor: null, found: shape.shapes[0]!.today!, today: shape.shapes[0]!.today }} ink />
              </td>
              <td class="right">{number(base * factor)}</td>
              <td class="opt" />
              {today && <td class="opt" />}
              <td class="p" />
            </tr>
          )}
          {scenarios.map((one, at) => (
            <tr class={one === best ? "best" : ""}>
              <th scope="row">
                <a href={`/jobs/${one.job.id}`}>
                  <b>{one.name}</b>
                </a>
                <span class="sub">
                  {new Date(one.job.created_at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}
                </span>
              </th>
              <td class="g">
                <Strip shape={shape.shapes[at]!} ceiling={max} />
              </td>
              <td class="right">{number(own(one) * factor)}</td>
              <td class="right strong">{signed((own(one) - from) * factor)}</td>
              {today && <td class="right opt">{moves(one)}</td>}
              <td class="p small">{doneWords(one.result)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="legend">
        <span>
          <svg width="30" height="10" aria-hidden="true">
            <rect class="f-line" width="30" height="10" />
          </svg>
          {max ? "above the ceiling" : "below the floor"}: proved that nobody gets there
        </span>
        <span>
          <svg width="30" height="10" aria-hidden="true">
            <rect class="d-gap" width="30" height="10" />
          </svg>
          not known
        </span>
        <span>
          <svg width="10" height="10" aria-hidden="true">
            <circle class="f-accent" cx="5" cy="5" r="4" />
          </svg>
          found
        </span>
        {base != null && (
          <span>
            <svg width="30" height="10" aria-hidden="true">
              <path class="d-found" d="M0 5H30" />
            </svg>
            saved against today
          </span>
        )}
      </p>
      {matrices && (
        <Plans
          scenarios={scenarios}
          matrices={matrices}
          note={note}
          today={today}
          show={(raw) => `${number(raw * factor)} ${unit}`}
        />
      )}
      {matrices && (
        <WhoMoves scenarios={scenarios} matrices={matrices} note={note} today={today} factor={factor} unit={unit} />
      )}
      {!matrices && !planned && <WhoChanges scenarios={scenarios} note={note} />}
      {planned && <Amounts scenarios={scenarios} note={note} />}
    </>
  );
}

/** A floor far away is drawn at the edge: it would press everything else flat. */
const clipped = (bound: number, found: number, max: boolean): number =>
  found > 0 ? (max ? Math.min(bound, found * 2) : Math.max(bound, found * 0.5)) : bound;
const signed = (value: number): string =>
  Number.isNaN(value) ? "" : Math.abs(value) < 1e-9 ? "0" : value > 0 ? `+${number(value)}` : number(value);
