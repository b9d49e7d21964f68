import { useEffect, useMemo, useState } from "preact/hooks";
import { get } from "../../api/http";
import type { Heat } from "../../api/types";
import { heatOf } from "../../charts/heat";
import { HeatMap } from "../../parts/HeatMap";
import { Swatches } from "../../parts/PointsPicture";
import { number } from "../../words";
import type { Live } from "./live";
import { PICTURE } from "./picture-id";

type Part = { top: number; bottom: number; left: number; right: number } | null;

export function Transport({ live }: { live: Live }) {
  const [heat, setHeat] = useState<(Heat & { shape: [number, number] }) | null>(null);
  const [part, setPart] = useState<Part>(null);
  const id = live.job!.id;
  useEffect(() => {
    if (live.shared) return setHeat(heatOf(live.result!.plan as number[][], part));
    const asked = new URLSearchParams({
      array: "plan",
      most: "96",
      ...(part ? Object.fromEntries(Object.entries(part).map(([name, at]) => [name, String(at)])) : {}),
    });
    void get<Heat & { shape: [number, number] }>(`/v1/jobs/${id}/picture?${asked}`).then(setHeat, () => setHeat(null));
  }, [id, part]);
  const mapped = useMemo(() => recoloured(live), [live.result, live.note]);
  if (!heat) return <p class="note">Drawing the plan…</p>;
  const [m, n] = heat.shape;
  const coupled = live.job!.solver === "gromov";
  const shown = part ?? { top: 0, bottom: m, left: 0, right: n };
  const unknown = live.shared && !Object.keys(live.inputs).length; // amounts that are not shown are not uniform ones
  const given =
    part || unknown
      ? undefined
      : { rows: edge(live.inputs.a, m, heat.height, coupled), columns: edge(live.inputs.b, n, heat.width, coupled) };
  const area =
    (heat.height &&
      heat.width &&
      ((shown.bottom - shown.top) / heat.height) * ((shown.right - shown.left) / heat.width)) ||
    1;
  const scaled = { ...heat, values: heat.values.map((one) => (one === null ? null : one * area)) };
  const zoom = (event: MouseEvent) => {
    const box = (event.currentTarget as Element).querySelector("canvas")!.getBoundingClientRect();
    const scale = box.width / Number((event.currentTarget as Element).querySelector("canvas")!.dataset.width);
    const size = 560 / Math.max(heat.width, heat.height);
    const [j, i] = [
      (event.clientX - box.left) / scale / size / heat.width,
      (event.clientY - box.top) / scale / size / heat.height,
    ];
    if (i > 1 || j > 1) return;
    const [h, w] = [
      Math.max(8, Math.ceil((shown.bottom - shown.top) / 3)),
      Math.max(8, Math.ceil((shown.right - shown.left) / 3)),
    ];
    const top = Math.round(Math.min(Math.max(0, shown.top + i * (shown.bottom - shown.top) - h / 2), m - h));
    const left = Math.round(Math.min(Math.max(0, shown.left + j * (shown.right - shown.left) - w / 2), n - w));
    setPart({
      top: Math.max(0, top),
      bottom: Math.min(m, Math.max(0, top) + h),
      left: Math.max(0, left),
      right: Math.min(n, Math.max(0, left) + w),
    });
  };
  return (
    <figure class="gap16">
      {mapped && (
        <Swatches
          id={PICTURE}
          from={live.note!.from!}
          to={live.note!.to!}
          mapped={mapped}
          label="Colours before, after, and those they are taken from"
        />
      )}
      <div onClick={zoom}>
        <HeatMap
          id={mapped ? undefined : PICTURE}
          heat={scaled}
          size={560}
          counts
          sums
          given={given}
          label={`What goes ${coupled ? `together of ${m} rows and` : `from ${m} rows to`} ${n} columns, the row and column of each cell from the top left`}
        />
      </div>
      <figcaption class="legend">
        <span>
          <i class="swatch ink" />
          {coupled ? "put together" : "moved"}
        </span>
        {given?.rows && <span>the line: given</span>}
        <span>
          {part
            ? `Rows ${number(shown.top + 1)} to ${number(shown.bottom)}, columns ${number(shown.left + 1)} to ${number(shown.right)}`
            : "Click to look closer"}
        </span>
        {part && (
          <button class="link fine" type="button" onClick={() => setPart(null)}>
            Show all of it
          </button>
        )}
      </figcaption>
    </figure>
  );
}

/** Amounts that were given, added up over the blocks of the picture; every point has the same where none were. */
function edge(given: Live["inputs"][string] | undefined, count: number, blocks: number, shares = false): number[] {
  const sums = new Array<number>(blocks).fill(0);
  const step = Math.ceil(count / blocks);
  for (let i = 0; i < count; i++) {
    sums[Math.min(blocks - 1, Math.floor(i / step))]! += given ? given.values[i]! : 1 / count;
  }
  const all = shares ? sums.reduce((total, one) => total + one, 0) : 1;
  return sums.map((one) => one / all);
}

/** Each colour of the first picture, as the mean of those that its plan sends it to. */
function recoloured(live: Live): number[][] | null {
  const { note, result } = live;
  const plan = result?.plan;
  if (!note?.colours || !note.from || !note.to || !Array.isArray(plan)) return null;
  return note.from.map((own, i) => {
    const row = plan[i] ?? [];
    const sum = row.reduce((total, one) => total + one, 0);
    return sum > 0
      ? [0, 1, 2].map((d) => row.reduce((total, one, j) => total + one * (note.to![j]?.[d] ?? 0), 0) / sum)
      : own;
  });
}
