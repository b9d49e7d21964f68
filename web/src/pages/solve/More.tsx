import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/http";
import type { OptionSchema, Solver } from "../../api/types";
import { plural } from "../../words";
import { change } from "./Asks";
import { type Control, controlOf, shownOf, valueOf } from "./options";
import { choice, problem } from "./state";

/** These follow from an answer above, unless a person says them here. */
const DECIDED: Record<string, string[]> = { uot: ["reg", "reg_m"], gromov: ["metric"] };

const ASKED = new Set([
  "maximize",
  "allow_unassigned",
  "fixed",
  "best_known",
  "output",
  "top_k",
  "trace",
  "population",
  "threads_per_block",
  "launch",
]);

/** The solver's own options, by name, for those who know them. */
export function More() {
  const [solvers, setSolvers] = useState<Solver[] | null>(null);
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (open && !solvers)
      void get<{ solvers: Solver[] }>("/v1/solvers").then(
        (found) => setSolvers(found.solvers),
        () => undefined,
      );
  }, [open]);
  const properties = Object.entries(
    solvers?.find((one) => one.name === problem.value)?.options_schema.properties ?? {},
  ).filter(([name]) => !ASKED.has(name));
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{solvers ? plural(properties.length, "more option") : "More options"}</summary>
      {open && !solvers && <p class="note">Loading…</p>}
      <div class="options">
        {properties.map(([name, schema]) => (
          <Option key={`${problem.value}.${name}`} name={name} schema={schema} />
        ))}
      </div>
    </details>
  );
}

function Option({ name, schema }: { name: string; schema: OptionSchema }) {
  const found = controlOf(schema);
  const decided = DECIDED[problem.value]?.includes(name) ?? false;
  const control = decided && found.kind === "choice" ? { ...found, none: true } : found;
  const set = (value: unknown) => {
    const { [name]: _, ...rest } = choice.value.options;
    const same = value === undefined || (!decided && JSON.stringify(value) === JSON.stringify(schema.default));
    change({ options: same ? rest : { ...rest, [name]: value } });
  };
  const value = choice.value.options[name] ?? (decided ? undefined : schema.default);
  return (
    <label>
      {name.replaceAll("_", " ")}
      <Field control={control} value={value} set={set} placeholder={decided ? "decided above" : "decided for you"} />
      <span>
        {schema.description}
        {control.kind === "text" && control.under && ` (${control.under})`}
      </span>
    </label>
  );
}

function Field(props: { control: Control; value: unknown; set: (value: unknown) => void; placeholder: string }) {
  const { control, value, set, placeholder } = props;
  if (control.kind === "switch")
    return (
      <input
        class="switch"
        type="checkbox"
        role="switch"
        checked={value === true}
        onChange={(event) => set(event.currentTarget.checked)}
      />
    );
  if (control.kind === "choice")
    return (
      <select
        class="field"
        value={shownOf(value)}
        onChange={(event) => set(event.currentTarget.value === "" ? undefined : event.currentTarget.value)}
      >
        {control.none && <option value="">{placeholder}</option>}
        {control.choices.map((one) => (
          <option selected={one === value}>{one}</option>
        ))}
      </select>
    );
  if (control.kind === "number")
    return (
      <input
        class="field"
        type="number"
        step={control.whole ? 1 : "any"}
        min={control.min}
        max={control.max}
        placeholder={placeholder}
        value={shownOf(value)}
        onChange={(event) => set(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))}
      />
    );
  return (
    <input
      class="field"
      placeholder={placeholder}
      value={shownOf(value)}
      onChange={(event) => set(valueOf(event.currentTarget.value))}
    />
  );
}
