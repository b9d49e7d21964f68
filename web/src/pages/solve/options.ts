/** How an option that nobody here has heard of is asked for: from its schema alone. */

import type { OptionSchema } from "../../api/types";

export type Control =
  | { kind: "switch" }
  | { kind: "choice"; choices: string[]; none: boolean }
  | { kind: "number"; whole: boolean; min?: number; max?: number }
  | { kind: "text"; under: string };

const flat = (schema: OptionSchema): OptionSchema[] =>
  schema.anyOf || schema.oneOf ? [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].flatMap(flat) : [schema];

export function controlOf(schema: OptionSchema): Control {
  const all = flat(schema);
  const kinds = all.filter((one) => one.type !== "null");
  const only = kinds.length === 1 ? kinds[0]! : null;
  const words = kinds.flatMap((one) => one.enum ?? (one.const === undefined ? [] : [one.const]));
  if (only?.type === "boolean") return { kind: "switch" };
  if (kinds.length && kinds.every((one) => one.enum || one.const !== undefined))
    return { kind: "choice", choices: words.map(String), none: all.length > kinds.length };
  const numeric = kinds.filter((one) => one.type === "number" || one.type === "integer");
  if (kinds.length && numeric.length === kinds.length)
    return {
      kind: "number",
      whole: numeric.every((one) => one.type === "integer"),
      min: numeric[0]!.minimum,
      max: numeric[0]!.maximum,
    };
  const forms = [
    ...(numeric.length ? ["a number"] : []),
    ...words.map(String),
    ...(kinds.some((one) => one.type === "array") ? ["a list, as 1, 2"] : []),
    ...(kinds.some((one) => one.type === "object") ? ['pairs, as {"0": 3}'] : []),
  ];
  return { kind: "text", under: forms.join(", or ") };
}

/** What a person has typed, as JSON would say it: a number, a list, an object, else the words themselves. */
export function valueOf(text: string): unknown {
  const plain = text.trim();
  if (!plain) return undefined;
  for (const form of [plain, `[${plain}]`])
    try {
      const value: unknown = JSON.parse(form);
      if (form === plain || (Array.isArray(value) && value.length > 1)) return value;
    } catch {
      // not in this form
    }
  return plain.includes(",") ? plain.split(",").map((part) => part.trim()) : plain;
}

export const shownOf = (value: unknown): string =>
  value === undefined || value === null
    ? ""
    : Array.isArray(value)
      ? value.join(", ")
      : typeof value === "object"
        ? JSON.stringify(value)
        : String(value);
