/** Numbers without rounding: every double is a whole number times a power of two. */

const view = new DataView(new ArrayBuffer(8));

/** [mantissa, exponent] of a finite double: value = mantissa * 2^exponent. */
export function parts(value: number): [bigint, number] {
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const raw = Number((bits >> 52n) & 0x7ffn);
  const fraction = bits & 0xfffffffffffffn;
  const mantissa = raw === 0 ? fraction : fraction | 0x10000000000000n;
  return [bits >> 63n ? -mantissa : mantissa, Math.max(raw, 1) - 1075];
}

/** The least exponent that all values need, so that each is a whole number of units of 2^exponent. */
export function unitOf(...lists: ArrayLike<number>[]): number {
  let least = 0;
  for (const list of lists) {
    for (let i = 0; i < list.length; i++) {
      const value = list[i]!;
      if (!Number.isFinite(value) || Number.isInteger(value)) continue;
      let [mantissa, exponent] = parts(value);
      while (mantissa !== 0n && !(mantissa & 1n)) [mantissa, exponent] = [mantissa >> 1n, exponent + 1];
      least = Math.min(least, exponent);
    }
  }
  return least;
}

/** A double in units of 2^exponent; exact, since the unit was chosen so. */
export function inUnits(value: number, exponent: number): bigint {
  if (Number.isInteger(value) && Math.abs(value) < 2 ** 53) return BigInt(value) << BigInt(-exponent);
  const [mantissa, own] = parts(value);
  const shift = own - exponent;
  return shift >= 0 ? mantissa << BigInt(shift) : mantissa >> BigInt(-shift);
}

/** Back to a number to show; only this rounds. */
export function toNumber(units: bigint, exponent: number): number {
  if (exponent === 0) return Number(units);
  const size = units < 0n ? -units : units;
  const spare = Math.max(0, size.toString(2).length - 60);
  return Number(units / (1n << BigInt(spare))) * 2 ** (exponent + spare);
}
