/** Sixteen colours from low to high, between nine that were chosen by eye to keep equal steps of lightness. */

const STOPS: [number, number, number][] = [
  [0.962, 0.045, 105],
  [0.895, 0.125, 110],
  [0.815, 0.15, 128],
  [0.735, 0.14, 150],
  [0.65, 0.11, 175],
  [0.565, 0.09, 212],
  [0.475, 0.095, 250],
  [0.385, 0.115, 280],
  [0.285, 0.115, 302],
];

export function ramp(dark: boolean, count = 16): string[] {
  const colours = Array.from({ length: count }, (_, at) => {
    const place = (at / (count - 1)) * (STOPS.length - 1);
    const [one, other] = [STOPS[Math.floor(place)]!, STOPS[Math.ceil(place)]!];
    const part = place - Math.floor(place);
    const [l, c, h] = one.map((from, i) => from + (other[i]! - from) * part);
    return `oklch(${l!.toFixed(3)} ${c!.toFixed(3)} ${h!.toFixed(1)})`;
  });
  return dark ? colours.reverse() : colours;
}
