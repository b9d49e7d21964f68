import { useMemo, useState } from "preact/hooks";
import { words } from "../../api/http";
import { csv, xlsx } from "../../files/cells";
import { png, save, saveFrom, svgText } from "../../files/save";
import { Notice } from "../../parts/forms";
import { Icon } from "../../parts/Icon";
import { Rows } from "../../parts/Rows";
import { plural } from "../../words";
import type { Live } from "./live";
import { canExclude } from "./again";
import { PICTURE } from "./picture-id";
import { tableOf } from "./table";
import type { Told } from "./told";

interface Props {
  live: Live;
  told: Told;
  excluded: Set<string>;
  exclude: (pairs: Set<string>) => void;
}

export function Answer({ live, told, excluded, exclude }: Props) {
  const table = useMemo(() => tableOf(live), [live.result, live.inputs, live.note, live.sparse]);
  const today = live.note?.today;
  const may = table?.pairs && !live.shared && canExclude(live);
  const toggle = (row: number) => {
    const [i, j] = table!.pairs![row] ?? [0, -1];
    const key = `${i},${j}`;
    if (j < 0) return null;
    const out = excluded.has(key);
    const next = new Set(excluded);
    if (!next.delete(key)) next.add(key);
    return (
      <button
        class="link fine"
        type="button"
        aria-label={`${out ? "allow it" : "not this"}: ${table!.rows[row]!.slice(0, 2).join(" and ")}`}
        onClick={() => exclude(next)}
      >
        <span class="wide">{out ? "allow it" : "not this"}</span>
        <span class="narrow">
          <Icon name={out ? "plus" : "cross"} />
        </span>
      </button>
    );
  };
  return (
    <section class="gap8">
      <div class="head">
        <h2>Result</h2>
        {table && (
          <span class="note small">
            {table.caption}; {plural(table.rows.length, "row")}
          </span>
        )}
      </div>
      <Downloads live={live} told={told} />
      {table ? (
        <Rows
          head={table.head}
          rows={table.rows}
          numeric={table.numeric}
          caption={table.caption}
          action={may ? toggle : undefined}
          mark={today ? (row) => table.rows[row]![2] !== "stays" : undefined}
        />
      ) : (
        <p class="note">This answer is too large for a table here. The files hold all of it.</p>
      )}
    </section>
  );
}

/** A file that this answer has not. */
class Unfit extends Error {}

function Downloads({ live, told }: { live: Live; told: Told }) {
  const [wrong, setWrong] = useState("");
  const id = live.job!.id;
  const name = live.note?.title || `allot-${id.slice(0, 8)}`;
  const table = () => {
    const found = tableOf(live);
    return found ? [found.head, ...found.rows] : null;
  };
  const about = (): [string, string | number | null][] => [
    ["Job", name],
    ["Answer", told.headline],
    ["Proof", told.lede],
    ["Objective", told.objective],
    ["Bound", told.bound],
    ["Id", id],
  ];
  const guard = (work: () => Promise<void> | void) => async () => {
    setWrong("");
    try {
      await work();
    } catch (error) {
      setWrong(error instanceof Unfit ? error.message : words(error));
    }
  };
  const drawn = live.result!.termination !== "infeasible";
  const picture = (): SVGSVGElement | HTMLCanvasElement => {
    const found = document.getElementById(PICTURE) as unknown as SVGSVGElement | HTMLCanvasElement | null;
    if (!found) throw new Unfit("There is no picture of this answer.");
    return found;
  };
  const drawing = (): SVGSVGElement => {
    const found = picture();
    if (found instanceof HTMLCanvasElement) throw new Unfit("There are too many lines here for an SVG; take the PNG.");
    return found;
  };
  const files: [string, () => Promise<void> | void, boolean][] = [
    ["CSV", () => save(`\ufeff${csv(table()!)}`, `${name}.csv`, "text/csv"), table() !== null],
    [
      "XLSX",
      () =>
        save(
          xlsx([
            ["Result", table()!],
            ["About", about()],
          ]),
          `${name}.xlsx`,
          "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
      table() !== null,
    ],
    ["npz", () => saveFrom(`/v1/jobs/${id}/result`, "application/x-npz", `${name}.npz`), !live.shared],
    [
      "JSON",
      () =>
        live.shared
          ? save(JSON.stringify(live.result), `${name}.json`, "application/json")
          : saveFrom(`/v1/jobs/${id}/result`, "application/json", `${name}.json`),
      true,
    ],
    [
      "SVG",
      () => save(svgText(drawing()), `${name}.svg`, "image/svg+xml"),
      drawn && (!["uot", "gromov"].includes(live.job!.solver) || !!live.note?.colours),
    ],
    ["PNG", async () => save(await png(picture()), `${name}.png`, "image/png"), drawn],
  ];
  return (
    <>
      <div class="down no-print">
        {files
          .filter(([, , there]) => there)
          .map(([label, work]) => (
            <button class="btn small" type="button" key={label} onClick={guard(work)}>
              <Icon name="down" />
              {label}
            </button>
          ))}
        <button class="btn small" type="button" onClick={() => print()}>
          Print
        </button>
      </div>
      {wrong && <Notice kind="bad">{wrong}</Notice>}
    </>
  );
}
