import { useEffect, useState } from "preact/hooks";
import { keepNote } from "../../api/notes";
import { get, post, words } from "../../api/http";
import type { Estimates, Job, OptionSchema, Solver } from "../../api/types";
import { Notice, Seg, Switch } from "../../parts/forms";
import { Icon } from "../../parts/Icon";
import { useKeys } from "../../shell/keys";
import { go } from "../../shell/router";
import { workers } from "../../shell/service";
import { bytes, plural, PROBLEMS, seconds } from "../../words";
import { Programs } from "./Programs";
import { measure, note, obstacle, request, todayOf } from "./request";
import { type Choice, choice, problem, readAgain, reading, sheetFor, sheets } from "./state";

const change = (part: Partial<Choice>): void => void (choice.value = { ...choice.value, ...part });

/** How to solve, in plain words; what it will take; and the button. */
export function Form() {
  const [estimates, setEstimates] = useState<Estimates | null>(null);
  const [refused, setRefused] = useState("");
  const [sending, setSending] = useState(false);
  const blocked = obstacle();
  useEffect(() => {
    setEstimates(null);
    setRefused("");
    if (blocked || reading.value) return;
    const later = setTimeout(() => void post<Estimates>("/v1/estimates", request()).then(setEstimates, (error) => setRefused(words(error))), 250);
    return () => clearTimeout(later);
  }, [problem.value, sheets.value, JSON.stringify(choice.value), blocked]);

  const submit = async () => {
    if (blocked || sending) return;
    setSending(true);
    try {
      const job = await post<Job>("/v1/jobs", request());
      await keepNote(job.id, note());
      go(`/jobs/${job.id}`);
    } catch (error) {
      setRefused(words(error));
      setSending(false);
    }
  };
  useKeys({ "Ctrl Enter": () => void submit() }, [sending, blocked, sheets.value, choice.value]);
  const action = problem.value === "qap" && !todayOf() ? "Find the best layout" : PROBLEMS[problem.value]!.action;
  return (
    <form class="form" aria-label={action} onSubmit={(event) => (event.preventDefault(), void submit())}>
      <h2 class="flat">{action}</h2>
      <fieldset class="flat">
        <legend>How long may it look?</legend>
        <Seg name="limit" legend="How long may it look?" full value={String(choice.value.limitS)} options={[["10", "10 s"], ["60", "1 min"], ["600", "10 min"], ["3600", "1 hour"]]} change={(value) => change({ limitS: Number(value) })} />
        <p class="note">{problem.value === "qap" ? "A good layout is usually there within a second. The rest of the time proves how good it is, and it ends early once that is proved." : "It ends as soon as the best is proved, most often within a second."}</p>
      </fieldset>
      {ASKS[problem.value]!()}
      <More />
      <div class="gap8">
        {blocked && sheets.value.length > 0 && <Notice kind="bad">{blocked}</Notice>}
        {refused && <Notice kind="bad">{refused}</Notice>}
        {!blocked && !refused && <Cost estimates={estimates} />}
        <div class="pin">
          <button class="btn go full" disabled={!!blocked || sending || reading.value}>{sending ? "On its way…" : action}<kbd class="wide" aria-hidden="true">Ctrl ↵</kbd></button>
        </div>
        {!blocked && <Programs />}
      </div>
    </form>
  );
}

function Cost({ estimates }: { estimates: Estimates | null }) {
  if (!estimates) return <p class="note">Working out what this takes…</p>;
  if (!estimates.fits) return <Notice kind="bad">{estimates.reason}</Notice>;
  const device = estimates.device ?? "cpu";
  const needs = estimates.estimates[device] ?? Object.values(estimates.estimates)[0];
  if (!needs) return null;
  const there = (workers.value ?? []).filter((worker) => worker.device === device);
  const free = there.some((worker) => worker.state === "idle");
  const where = there.find((worker) => worker.gpu)?.gpu?.name ?? (device === "gpu" ? "a GPU" : "the processor");
  return (
    <div class="cost">
      <b>{problem.value === "qap" ? seconds(Math.min(needs.seconds, choice.value.limitS)) : seconds(needs.seconds + needs.certify_seconds)}</b>
      <p class="small"><span class="strong">{free ? "Starts at once" : there.length ? "Waits for a free worker" : "Waits for a worker"}</span><br /><span class="note">on {where}; needs {bytes(device === "gpu" ? needs.device_bytes : needs.host_bytes)}</span></p>
    </div>
  );
}

const ASKS: Record<string, () => preact.JSX.Element | null> = {
  lap: () => (
    <fieldset>
      <legend>Which is best?</legend>
      <Seg name="maximize" legend="Which is best?" full value={String(choice.value.maximize)} options={[["false", "Smallest sum"], ["true", "Largest sum"]]} change={(value) => (change({ maximize: value === "true" }), void readAgain())} />
    </fieldset>
  ),
  auction: () => {
    const reject = sheetFor("reject");
    return reject ? <p class="soft small">A row stays free where that is worth more: <b class="strong">{reject.name}</b> says how much.</p> : <Switch label="Rows may stay free" under="Else every row must get a column, and there may be no such answer." checked={choice.value.mayStayFree} change={(on) => change({ mayStayFree: on })} />;
  },
  uot: () => (
    <>
      <fieldset>
        <legend>How sharp is the plan?</legend>
        <Seg name="spread" legend="How sharp is the plan?" full value={String(choice.value.spread)} options={[["0.01", "Sharp"], ["0.05", "Medium"], ["0.3", "Soft"]]} change={(value) => change({ spread: Number(value) })} />
        <p class="note">Sharp sends each amount to few places and takes longer; soft spreads it out.</p>
      </fieldset>
      <fieldset>
        <legend>May amounts appear or vanish?</legend>
        <Seg name="loss" legend="May amounts appear or vanish?" full value={String(choice.value.loss)} options={[["null", "No"], ["1", "A little"], ["0.1", "Freely"]]} change={(value) => change({ loss: value === "null" ? null : Number(value) })} />
        <p class="note">{choice.value.loss === null ? "Both sides must then add up to the same." : "Where moving costs more than losing, an amount is lost."}</p>
      </fieldset>
    </>
  ),
  qap: () => (todayOf() ? <Layout today={todayOf()!} /> : null),
};

function Layout({ today }: { today: number[] }) {
  const names = sheetFor("flow")?.row_names ?? today.map((_, at) => `${at + 1}`);
  const rooms = sheetFor("distance")?.row_names ?? today.map((_, at) => `${at + 1}`);
  const { stay, beginToday, moveCost } = choice.value;
  const { unit, measure: what } = measure();
  return (
    <>
      <fieldset>
        <legend>Which departments must stay?</legend>
        <div class="chips">
          {stay.map((at) => (
            <span class="chip" key={at}><Icon name="lock" />{names[at]}, {rooms[today[at]!]}<button type="button" aria-label={`Let ${names[at]} move`} onClick={() => change({ stay: stay.filter((one) => one !== at) })}><Icon name="cross" /></button></span>
          ))}
          <select class="chip add" aria-label="Add a department that must stay" value="" onChange={(event) => (change({ stay: [...stay, Number(event.currentTarget.value)] }), (event.currentTarget.value = ""))}>
            <option value="">+ Add</option>
            {names.map((name, at) => (stay.includes(at) ? null : <option value={at}>{name}, {rooms[today[at]!]}</option>))}
          </select>
        </div>
      </fieldset>
      <Switch label="Begin with today’s layout" under="Then nothing can come out worse than today." checked={beginToday} change={(on) => change({ beginToday: on })} />
      <div class="gap8">
        <Switch label="Count the trouble of a move" under="A department moves only if that saves enough." checked={moveCost !== null} change={(on) => change({ moveCost: on ? 1 : null })} />
        {moveCost !== null && (
          <label class="row small">A move must save at least <input class="field" type="number" min="0" step="any" size={6} value={moveCost} onInput={(event) => change({ moveCost: Math.max(0, Number(event.currentTarget.value) || 0) })} /> {unit || what}</label>
        )}
      </div>
    </>
  );
}

const ASKED = new Set(["maximize", "allow_unassigned", "fixed", "best_known", "metric_", "output", "top_k", "trace", "population", "threads_per_block", "launch", "tenure", "bounds"]);

/** The solver's own options, by name, for those who know them. */
function More() {
  const [solvers, setSolvers] = useState<Solver[] | null>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (open && !solvers) void get<{ solvers: Solver[] }>("/v1/solvers").then((found) => setSolvers(found.solvers), () => undefined);
  }, [open]);
  const properties = Object.entries(solvers?.find((one) => one.name === problem.value)?.options_schema.properties ?? {}).filter(([name]) => !ASKED.has(name));
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{solvers ? plural(properties.length, "more option") : "More options"}</summary>
      {open && !solvers && <p class="note">Loading…</p>}
      <div class="options">{properties.map(([name, schema]) => <Option key={`${problem.value}.${name}`} name={name} schema={schema} />)}</div>
    </details>
  );
}

function Option({ name, schema }: { name: string; schema: OptionSchema }) {
  const kinds = [schema, ...(schema.anyOf ?? [])];
  const set = (value: unknown) => {
    const { [name]: _, ...rest } = choice.value.options;
    change({ options: value === "" || value === undefined || value === schema.default ? rest : { ...rest, [name]: value } });
  };
  const value = choice.value.options[name] ?? schema.default ?? "";
  const label = name.replaceAll("_", " ");
  const choices = kinds.find((kind) => kind.enum)?.enum;
  const numeric = kinds.find((kind) => kind.type === "number" || kind.type === "integer");
  if (kinds.some((kind) => kind.type === "boolean")) return <label>{label}<input class="switch" type="checkbox" role="switch" checked={value === true} onChange={(event) => set(event.currentTarget.checked)} /><span>{schema.description}</span></label>;
  if (choices) return <label>{label}<select class="field" value={String(value)} onChange={(event) => set(event.currentTarget.value)}>{choices.map((one) => <option selected={one === value}>{one}</option>)}</select><span>{schema.description}</span></label>;
  if (!numeric) return null;
  return <label>{label}<input class="field" type="number" step={numeric.type === "integer" ? 1 : "any"} placeholder="decided for you" value={value as string} onChange={(event) => set(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))} /><span>{schema.description}</span></label>;
}

