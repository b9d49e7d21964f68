import type { ComponentChildren } from "preact";
import { Icon } from "./Icon";

export function Seg<T extends string>(props: {
  name: string;
  legend: string;
  value: T;
  options: [T, ComponentChildren][];
  change: (value: T) => void;
  full?: boolean;
  tiny?: boolean;
}) {
  return (
    <div
      class={`seg${props.full ? " full" : ""}${props.tiny ? " tiny" : ""}`}
      role="radiogroup"
      aria-label={props.legend}
    >
      {props.options.map(([value, label]) => (
        <label key={value}>
          <input
            type="radio"
            name={props.name}
            value={value}
            checked={props.value === value}
            onChange={() => props.change(value)}
          />
          {label}
        </label>
      ))}
    </div>
  );
}

/** A question with a few answers, and a sentence on what the answer means. */
export function Question<T extends string>(props: {
  name: string;
  asks: string;
  value: T;
  options: [T, string][];
  change: (value: T) => void;
  under?: string;
}) {
  return (
    <fieldset>
      <legend>{props.asks}</legend>
      <Seg
        name={props.name}
        legend={props.asks}
        full
        value={props.value}
        options={props.options}
        change={props.change}
      />
      {props.under && <p class="note">{props.under}</p>}
    </fieldset>
  );
}

export function Notice({
  kind = "warn",
  icon = "warn",
  children,
  action,
}: {
  kind?: "warn" | "bad" | "calm";
  icon?: string;
  children: ComponentChildren;
  action?: ComponentChildren;
}) {
  return (
    <div class={`notice ${kind}`} role={kind === "bad" ? "alert" : "status"}>
      <Icon name={icon} />
      <p>{children}</p>
      {action}
    </div>
  );
}

export function Bones() {
  return (
    <div class="bones" role="status">
      <span class="away">Loading</span>
      <i />
      <i />
      <i />
    </div>
  );
}

export function Switch({
  label,
  under,
  checked,
  change,
}: {
  label: string;
  under?: string;
  checked: boolean;
  change: (on: boolean) => void;
}) {
  const id = `switch-${label.replace(/\W+/g, "-")}`;
  return (
    <div>
      <div class="row between">
        <label class="strong" for={id}>
          {label}
        </label>
        <input
          id={id}
          class="switch"
          type="checkbox"
          role="switch"
          checked={checked}
          onChange={(event) => change(event.currentTarget.checked)}
        />
      </div>
      {under && <p class="note">{under}</p>}
    </div>
  );
}
