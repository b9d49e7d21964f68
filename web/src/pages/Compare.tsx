import { useEffect, useMemo, useState } from "preact/hooks";
import { get, words } from "../api/http";
import { type Note, noteOf } from "../api/notes";
import { fetchMatrix, type Matrix } from "../api/npy";
import type { Job, Result } from "../api/types";
import { strips, type StripShape } from "../charts/bars";
import { flows, fromDistances, shares, tiles, walked } from "../charts/plan";
import { ticks } from "../charts/scale";
import type { Table } from "../files/cells";
import { FloorPlan } from "../parts/FloorPlan";
import { Bones, Notice } from "../parts/forms";
import { Rows } from "../parts/Rows";
import { go, query } from "../shell/router";
import { doneWords, maximises, number, plural, sizeWords } from "../words";
import { measureOf } from "./job/told";

interface Scenario {
  job: Job;
  result: Result;
  note: Note | null;
  name: string;
  answer: number[] | null;
}

export default function Compare() {
  const ids = (query.value.get("jobs") ?? "").split(",").filter((id) => /^[0-9a-f]{32}$/.test(id)).slice(0, 6);
  return ids.length < 2 ? <Choose chosen={ids} /> : <Compared key={ids.join()} ids={ids} />;
}

function Choose({ chosen }: { chosen: string[] }) {
  const [jobs, setJobs] = useState<{ job: Job; note: Note | null }[] | null>(null);
  const [picked, setPicked] = useState(new Set(chosen));
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const load = async () => {
      const { jobs: found } = await get<{ jobs: Job[] }>("/v1/jobs?limit=100&state=succeeded");
      setJobs(await Promise.all(found.map(async (job) => ({ job, note: await noteOf(job.id) }))));
    };
    load().catch((error) => setWrong(words(error)));
  }, []);
  const groups = new Map<string, { job: Job; note: Note | null }[]>();
  for (const one of jobs ?? []) groups.set(sizeWords(one.job), [...(groups.get(sizeWords(one.job)) ?? []), one]);
  const several = [...groups].filter(([, list]) => list.length > 1);
  const first = jobs?.find(({ job }) => picked.has(job.id));
  return (
    <>
      <h1>Compare</h1>
      <p class="lede">Choose two to six finished jobs of one problem.</p>
      {wrong && <Notice kind="bad">{wrong}</Notice>}
      {!jobs && !wrong && <Bones />}
      {jobs && !several.length && <div class="drop"><h2>Nothing to compare yet</h2><p class="note">Solve one problem twice: with other departments that must stay, or with moves counted.</p><div class="row"><a class="btn go" href="/solve">Solve something</a></div></div>}
      {several.map(([size, list]) => (
        <fieldset class="gap8" key={size}>
          <legend class="strong">{size}</legend>
          <ul>
            {list.map(({ job, note }) => (
              <li><label class="row pickable">
                <input class="check" type="checkbox" checked={picked.has(job.id)} disabled={!!first && sizeWords(first.job) !== size} onChange={() => setPicked(new Set(picked.has(job.id) ? [...picked].filter((id) => id !== job.id) : [...picked, job.id]))} />
                {note?.title || job.id.slice(0, 8)} <span class="note small">{new Date(job.created_at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}</span>
              </label></li>
            ))}
          </ul>
        </fieldset>
      ))}
      {several.length > 0 && <p><button class="btn go" type="button" disabled={picked.size < 2 || picked.size > 6} onClick={() => go(`/compare?jobs=${[...picked].join(",")}`)}>Compare {picked.size > 1 ? plural(picked.size, "job") : ""}</button></p>}
    </>
  );
}

function Compared({ ids }: { ids: string[] }) {
  const [scenarios, setScenarios] = useState<Scenario[] | null>(null);
  const [matrices, setMatrices] = useState<{ flow: Matrix; distance: Matrix } | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const load = async () => {
      const found = await Promise.all(ids.map(scenario));
      named(found);
      if (found[0]!.job.solver === "qap") {
        const [flow, distance] = await Promise.all(["flow", "distance"].map((name) => fetchMatrix(found[0]!.job.input_digests[name])));
        if (flow && distance) setMatrices({ flow, distance });
      }
      setScenarios(found);
    };
    load().catch((error) => setWrong(words(error)));
  }, []);
  if (wrong) return <><h1>These cannot be compared</h1><p class="lede">{wrong}</p><p><a class="link" href="/compare">Choose others</a></p></>;
  if (!scenarios) return <Bones />;
  if (new Set(scenarios.map(({ job }) => sizeWords(job))).size > 1) return <><h1>These are different problems</h1><p class="lede">Only jobs of one problem can be compared. <a class="link" href="/compare">Choose others</a></p></>;
  return <Shown scenarios={scenarios} matrices={matrices} />;
}

async function scenario(id: string): Promise<Scenario> {
  const [job, result, note] = await Promise.all([get<Job>(`/v1/jobs/${id}`), get<Result>(`/v1/jobs/${id}/result`), noteOf(id)]);
  const answer = result.permutation ?? (Array.isArray(result.assignment) ? result.assignment : null);
  return { job, result, note, name: "", answer };
}

/** Names that tell them apart: what each asked for. */
function named(found: Scenario[]): void {
  const seen = new Map<string, number>();
  for (const one of found) {
    const fixed = Object.keys((one.job.options.fixed as object) ?? {}).length;
    const parts = [fixed ? `${fixed} must stay` : "", one.job.input_digests.linear ? "moves counted" : "", one.job.time_limit_s ? `${one.job.time_limit_s} s` : ""].filter(Boolean);
    const text = parts.slice(0, -1).join(", ") || "All free";
    const name = one.job.solver === "qap" ? text.charAt(0).toUpperCase() + text.slice(1) : (one.note?.title ?? one.job.id.slice(0, 8));
    const count = (seen.get(name) ?? 0) + 1;
    seen.set(name, count);
    one.name = count > 1 ? `${name} (${count})` : name;
  }
}

function Shown({ scenarios, matrices }: { scenarios: Scenario[]; matrices: { flow: Matrix; distance: Matrix } | null }) {
  const note = scenarios.find((one) => one.note)?.note ?? null;
  const first = scenarios[0]!.job;
  const { factor, unit, measure } = measureOf(first, note);
  const today = note?.today ?? null;
  const base = today && matrices ? walked(matrices.flow.values, matrices.distance.values, today) : null;
  const own = (one: Scenario): number => (matrices && one.answer ? walked(matrices.flow.values, matrices.distance.values, one.answer) : one.result.objective ?? NaN);
  const max = maximises(first);
  const best = scenarios.reduce((a, b) => (max === own(a) > own(b) ? a : b));
  const from = base ?? (max ? Math.min : Math.max)(...scenarios.map(own));
  const moves = (one: Scenario): number => (today && one.answer ? one.answer.filter((place, i) => today[i] !== place).length : 0);
  const shape = useMemo(() => strips(scenarios.map((one) => ({ found: own(one) * factor, floor: one.job.input_digests.linear ? null : one.result.certificate.bound == null ? null : clipped(one.result.certificate.bound, own(one)) * factor })), base == null ? null : base * factor, 472), [scenarios, matrices]);
  const saved = Math.abs(from - own(best)) * factor;
  const text = base != null ? `${plural(moves(best), "move")} save${moves(best) === 1 ? "s" : ""} ${number(saved)} ${unit} ${measure.replace(/^walked /, "")}` : `${best.name} is best: ${number(own(best) * factor)} ${unit} ${measure}`;
  return (
    <>
      <p class="crumb"><span>{note?.title ?? sizeWords(first)}</span><span>{sizeWords(first)}</span><span>{plural(scenarios.length, "scenario")}{base != null ? " against today" : ""}</span></p>
      <div class="say">
        <div><h1>{text}</h1><p class="lede">“{best.name}” comes to {number(own(best) * factor)} {unit} {measure}. {doneWords(best.result)}</p></div>
        <div class="acts no-print"><a class="btn" href="/compare">Choose others</a><button class="btn" type="button" onClick={() => print()}>Print</button></div>
      </div>
      <table class="strips">
        <thead><tr><th scope="col">Scenario</th><th scope="col"><Axis low={shape.low} high={shape.high} /><span class="away">Floor, found and today on one line</span></th><th scope="col" class="right">{unit || measure}</th><th scope="col" class="right">{base != null ? "against today" : "against the worst"}</th>{today && <th scope="col" class="right">moves</th>}<th scope="col">proof</th></tr></thead>
        <tbody>
          {base != null && <tr><th scope="row"><b>Today</b><span class="sub">as it is</span></th><td class="g"><Strip shape={{ floor: null, found: shape.shapes[0]!.today!, today: shape.shapes[0]!.today }} ink /></td><td class="right">{number(base * factor)}</td><td class="opt" />{today && <td class="opt" />}<td class="p" /></tr>}
          {scenarios.map((one, at) => (
            <tr class={one === best ? "best" : ""}>
              <th scope="row"><a href={`/jobs/${one.job.id}`}><b>{one.name}</b></a><span class="sub">{new Date(one.job.created_at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}</span></th>
              <td class="g"><Strip shape={shape.shapes[at]!} /></td>
              <td class="right">{number(own(one) * factor)}</td>
              <td class="right strong">{signed((own(one) - from) * factor)}</td>
              {today && <td class="right opt">{moves(one)}</td>}
              <td class="p small">{doneWords(one.result)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="legend"><span><svg width="30" height="10" aria-hidden="true"><rect class="f-line" width="30" height="10" /></svg>below the floor: proved that nobody gets there</span><span><svg width="30" height="10" aria-hidden="true"><rect class="d-gap" width="30" height="10" /></svg>not known</span><span><svg width="10" height="10" aria-hidden="true"><circle class="f-accent" cx="5" cy="5" r="4" /></svg>found</span>{base != null && <span><svg width="30" height="10" aria-hidden="true"><path class="d-found" d="M0 5H30" /></svg>saved against today</span>}</p>
      {matrices && <Plans scenarios={scenarios} matrices={matrices} note={note} today={today} show={(raw) => `${number(raw * factor)} ${unit}`} />}
      {matrices && <WhoMoves scenarios={scenarios} matrices={matrices} note={note} today={today} factor={factor} unit={unit} />}
      {!matrices && <WhoChanges scenarios={scenarios} note={note} />}
    </>
  );
}

/** A floor far away is drawn at the edge: it would press everything else flat. */
const clipped = (bound: number, found: number): number => (found > 0 ? Math.max(bound, found * 0.5) : bound);
const signed = (value: number): string => (Math.abs(value) < 1e-9 ? "0" : value > 0 ? `+${number(value)}` : number(value));

function Axis({ low, high }: { low: number; high: number }) {
  const x = (value: number) => ((value - low) / (high - low)) * 472;
  return <svg class="wide" viewBox="0 0 472 14" width="472" aria-hidden="true">{ticks(low, high, 5).map((tick) => <text class={`tick ${x(tick) < 24 ? "" : x(tick) > 448 ? "te" : "tm"}`} x={x(tick)} y="11">{number(tick, 4)}</text>)}</svg>;
}

function Strip({ shape, ink = false }: { shape: StripShape; ink?: boolean }) {
  const { floor, found, today } = shape;
  return (
    <svg viewBox="0 0 472 36" width="472" aria-hidden="true">
      {today !== null && <path class="d-today" d={`M${today} 0V36`} />}
      {floor !== null && <><rect class="f-line" x="0" y="13" width={Math.max(0, floor)} height="10" /><rect class="d-gap" x={floor} y="13" width={Math.max(0, found - floor)} height="10" /><rect class="f-ink" x={floor - 0.75} y="9" width="1.5" height="18" /></>}
      {today !== null && !ink && <path class="d-found" d={`M${found} 18H${today}`} />}
      <circle class={ink ? "f-ink" : "f-accent"} cx={found} cy="18" r="5" />
    </svg>
  );
}

function Plans({ scenarios, matrices, note, today, show }: { scenarios: Scenario[]; matrices: { flow: Matrix; distance: Matrix }; note: Note | null; today: number[] | null; show: (raw: number) => string }) {
  const n = matrices.flow.shape[0]!;
  const positions = useMemo(() => note?.rooms ?? (n <= 200 ? tiles(fromDistances(matrices.distance.values, n)) : null), [matrices, note]);
  const trips = useMemo(() => flows(matrices.flow.values, n, 250), [matrices]);
  if (!positions) return null;
  const all: [string, number[], number[]][] = [...(today ? [["Today", today, []] as [string, number[], number[]]] : []), ...scenarios.filter((one) => one.answer).map((one): [string, number[], number[]] => [one.name, one.answer!, Object.keys((one.job.options.fixed as object) ?? {}).map(Number)])];
  return (
    <section class="gap8 part">
      <div class="head"><h2>Where people walk</h2><span class="note small wide">Line width: trips. The same scale in all: the less ink, the less way.</span></div>
      <div class="plans">{all.map(([name, permutation, fixed]) => (
        <figure><h3>{name}<span>{show(walked(matrices.flow.values, matrices.distance.values, permutation))}</span></h3>
          <FloorPlan mini positions={positions} permutation={permutation} flows={trips} facilityNames={note?.rows ?? null} placeNames={note?.columns ?? null} before={today} fixed={new Set(fixed)} label={`${name}: the places and the ways between them; the table below names them`} width={306} /></figure>
      ))}</div>
    </section>
  );
}

function WhoMoves({ scenarios, matrices, note, today, factor, unit }: { scenarios: Scenario[]; matrices: { flow: Matrix; distance: Matrix }; note: Note | null; today: number[] | null; factor: number; unit: string }) {
  const n = matrices.flow.shape[0]!;
  const name = (place: number) => note?.columns?.[place] ?? `${place + 1}`;
  const base = today ? shares(matrices.flow.values, matrices.distance.values, today) : null;
  const each = scenarios.map((one) => (one.answer ? shares(matrices.flow.values, matrices.distance.values, one.answer) : null));
  const rows: Table = Array.from({ length: n }, (_, i) => [
    note?.rows?.[i] ?? `${i + 1}`,
    ...(today ? [name(today[i]!)] : []),
    ...scenarios.flatMap((one, at) => [one.answer ? (today?.[i] === one.answer[i] ? "stays" : name(one.answer[i]!)) : "", each[at] ? Number(((each[at]![i]!.way - (base?.[i]!.way ?? 0)) * factor).toPrecision(4)) : ""]),
    base ? base[i]!.way : (each[0]?.[i]!.way ?? 0),
  ]).sort((a, b) => Number(b.at(-1)) - Number(a.at(-1))).map((row) => row.slice(0, -1));
  const head = ["Department", ...(today ? ["Today"] : []), ...scenarios.flatMap((one) => [one.name, `${unit || "way"}${base ? ", change" : ""}`])];
  return <section class="gap8 part"><div class="head"><h2>Who moves</h2><span class="note small wide">most walked first</span></div><Rows head={head} rows={rows} numeric={99} caption="Who moves" /></section>;
}

/** Rows that not all scenarios give the same. */
function WhoChanges({ scenarios, note }: { scenarios: Scenario[]; note: Note | null }) {
  const answers = scenarios.map((one) => one.answer);
  if (answers.some((one) => !one || Array.isArray(one[0]))) return null;
  const name = (j: number | undefined) => (j === undefined || j < 0 ? "none" : (note?.columns?.[j] ?? `${j + 1}`));
  const rows: Table = answers[0]!.map((_, i) => [note?.rows?.[i] ?? `${i + 1}`, ...answers.map((one) => name(one![i]))]).filter((row) => new Set(row.slice(1)).size > 1);
  return <section class="gap8 part"><div class="head"><h2>What differs</h2><span class="note small">{plural(rows.length, "row")}</span></div>{rows.length > 0 && <Rows head={["Row", ...scenarios.map((one) => one.name)]} rows={rows} numeric={99} caption="What differs" />}</section>;
}
