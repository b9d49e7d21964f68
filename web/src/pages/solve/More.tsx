import { useEffect, useState } from "preact/hooks";
import { get } from "../../api/http";
import type { OptionSchema, Solver } from "../../api/types";
import { plural } from "../../words";
import { change } from "./Asks";
import { choice, problem } from "./state";

const ASKED = new Set([
  "maximize",
  "allow_unassigned",
  "fixed",
  "best_known",
  "metric_",
  "output",
  "top_k",
  "trace",
  "population",
  "threads_per_block",
  "launch",
  "tenure",
  "bounds",
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
  const kinds = [schema, ...(schema.anyOf ?? [])];
  const set = (value: unknown) => {
    const { [name]: _, ...rest } = choice.value.options;
    change({
      options: value === "" || value === undefined || value === schema.default ? rest : { ...rest, [name]: value },
    });
  };
  const value = choice.value.options[name] ?? schema.default ?? "";
  const label = name.replaceAll("_", " ");
  const choices = kinds.find((kind) => kind.enum)?.enum;
  const numeric = kinds.find((kind) => kind.type === "number" || kind.type === "integer");
  if (kinds.some((kind) => kind.type === "boolean"))
    return (
      <label>
        {label}
        <input
          class="switch"
          type="checkbox"
          role="switch"
          checked={value === true}
          onChange={(event) => set(event.currentTarget.checked)}
        />
        <span>{schema.description}</span>
      </label>
    );
  if (choices)
    return (
      <label>
        {label}
        <select class="field" value={String(value)} onChange={(event) => set(event.currentTarget.value)}>
          {choices.map((one) => (
            <option selected={one === value}>{one}</option>
          ))}
        </select>
        <span>{schema.description}</span>
      </label>
    );
  if (!numeric) return null;
  return (
    <label>
      {label}
      <input
        class="field"
        type="number"
        step={numeric.type === "integer" ? 1 : "any"}
        placeholder="decided for you"
        value={value as string}
        onChange={(event) => set(event.currentTarget.value === "" ? undefined : Number(event.currentTarget.value))}
      />
      <span>{schema.description}</span>
    </label>
  );
}
