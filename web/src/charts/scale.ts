/** From values to places on paper. */

export type Scale = (value: number) => number;

export function linear(domain: [number, number], range: [number, number]): Scale {
  const span = domain[1] - domain[0] || 1;
  return (value) => range[0] + ((value - domain[0]) / span) * (range[1] - range[0]);
}

export function log(domain: [number, number], range: [number, number]): Scale {
  const inner = linear([Math.log10(domain[0]), Math.log10(domain[1])], range);
  return (value) => inner(Math.log10(Math.max(value, domain[0])));
}

/** Round values inside a range, about `count` of them. */
export function ticks(low: number, high: number, count = 4): number[] {
  if (!(high > low)) return [low];
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((one) => one * power).find((one) => one >= raw)!;
  const first = Math.ceil(low / step);
  if (!(Math.abs(first) < 1e12)) return [low]; // the range is thinner than a number can be: no step ever leaves it
  const found: number[] = [];
  for (let k = first; k * step <= high + 1e-12 * Math.abs(high); k++) found.push(Number((k * step).toPrecision(12)));
  return found;
}

/** Labels that tell neighbouring ticks apart, with no more digits than that takes. */
export function tickLabels(values: number[], factor: number): string[] {
  const step = values.length > 1 ? Math.abs(values[1]! - values[0]!) * factor : 0;
  const behind =
    step > 0
      ? Math.max(
          0,
          -Math.floor(Math.log10(step) + 1e-9) + (/^[25]?5/.test(step.toPrecision(2).replace(/[0.]/g, "")) ? 1 : 0),
        )
      : 2;
  if (values.some((value) => Math.abs(value * factor) >= 1e6)) {
    const short = new Intl.NumberFormat("en-GB", { notation: "compact", maximumSignificantDigits: 5 });
    return values.map((value) => short.format(value * factor).replace("-", "−"));
  }
  const format = new Intl.NumberFormat("en-GB", { maximumFractionDigits: Math.min(12, behind) });
  return values.map((value) => format.format(value * factor).replace("-", "−"));
}

/** 1 ms, 10 ms, ... up to the end. */
export function decades(low: number, high: number): number[] {
  const found: number[] = [];
  for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high * 1.0001; power++)
    found.push(Number((10 ** power).toPrecision(3)));
  return found;
}

/** Ticks whose labels have room: each so many pixels from the one before. */
export function apart(values: number[], x: Scale, least: number): number[] {
  const kept: number[] = [];
  for (const value of values) if (!kept.length || x(value) - x(kept.at(-1)!) >= least) kept.push(value);
  return kept;
}

export function timeTick(seconds: number): string {
  if (seconds === 0) return "0";
  if (seconds < 0.1) return `${Number((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 60) return `${Number(seconds.toPrecision(2))} s`;
  return `${Number((seconds / 60).toPrecision(2))} min`;
}
