import type { Sheet } from "../../api/types";
import { HeatMap } from "../../parts/HeatMap";
import { Scatter } from "../../parts/PointsPicture";
import { Notice } from "../../parts/forms";
import { SLUGS } from "../../samples";
import { number, plural, PROBLEMS } from "../../words";
import { canMeasure, measured } from "./measured";
import { measure, misplaced, todayOf } from "./request";
import {
  active,
  addText,
  kept,
  missing,
  missingWords,
  overrides,
  problem,
  sheetFor,
  sheets,
  tell,
  uses,
} from "./state";
import type { Doubtful } from "./state";
import { likeliest, SLOTS } from "./uses";
import { Icon } from "../../parts/Icon";

/** What the service read, before anything runs. */
export function Seen() {
  const pictured = sheets.value
    .map((sheet, at) => ({ sheet, at }))
    .filter(({ sheet }) =>
      ["matrix", "sparse", "points", "list", "stack", "order", "pairs", "text"].includes(sheet.role),
    );
  const large = pictured.filter(({ sheet }) => sheet.heat && sheet.role !== "list");
  const plain = pictured.filter((one) => !large.includes(one));
  return (
    <section aria-labelledby="seen">
      <h2 id="seen">What I understood</h2>
      <Suggestion />
      <Measure />
      <div class="seen">
        {large.map(({ sheet, at }) => (
          <Matrix key={at} sheet={sheet} index={at} />
        ))}
        {plain.map(({ sheet, at }) => (
          <Plain key={at} sheet={sheet} index={at} />
        ))}
      </div>
      <Today />
      {misplaced().map(([{ name, shape }, expected]) => (
        <p class="row soft small">
          <Icon name="warn" />
          <span>
            <b class="strong">{name}</b> has {plural(shape![0]!, "position")}, and the table {expected}, so I leave it
            out.
          </span>
        </p>
      ))}
      <Rounded />
      <Doubt />
      <Faults />
    </section>
  );
}

const LOOKS: Record<string, string> = {
  qap: "This looks like a layout: trips between departments, and distances between rooms.",
  uot: "This looks like transport: two lists of points, and no costs of pairs.",
  auction:
    "Most cells are empty here, so that only some pairs are allowed. If the numbers say what a pair is worth, match them.",
};

/** Another problem that the sheets look like; one press away, and never more than that. */
function Suggestion() {
  const likely = likeliest(sheets.value);
  if (!likely || likely === problem.value || !LOOKS[likely]) return null;
  if (likely === "uot" && problem.value === "gromov") return null; // two lists of points are that as well
  return (
    <Notice
      kind="calm"
      icon="solve"
      action={
        <a class="btn small" href={`/solve/${SLUGS[likely]}`}>
          {PROBLEMS[likely]!.tab}
        </a>
      }
    >
      {LOOKS[likely]}
    </Notice>
  );
}

/** Rooms with positions, and no distances: these follow from those, if a person says so. */
function Measure() {
  const [flow, rooms] = [sheetFor("flow"), sheetFor("rooms")];
  if (problem.value !== "qap" || sheetFor("distance") || !canMeasure(flow, rooms)) return null;
  return (
    <Notice
      kind="calm"
      icon="solve"
      action={
        <button class="btn small" type="button" onClick={() => void addText(measured(rooms), "Distances")}>
          Measure them
        </button>
      }
    >
      There are no distances between rooms. They can be measured from the positions in {rooms.name}: from middle to
      middle, along the walls.
    </Notice>
  );
}

function UsePicker({ sheet, index }: { sheet: Sheet; index: number }) {
  const slots = (SLOTS[problem.value] ?? []).filter((slot) => slot.roles.includes(sheet.role));
  return (
    <select
      class="field"
      aria-label={`What ${sheet.name} is`}
      value={uses.value[index] ?? ""}
      onChange={(event) => (overrides.value = { ...overrides.value, [index]: event.currentTarget.value })}
    >
      {slots.map((slot) => (
        <option value={slot.name} selected={uses.value[index] === slot.name}>
          {slot.label}
        </option>
      ))}
      <option value="" selected={!uses.value[index]}>
        Not used
      </option>
    </select>
  );
}

function Matrix({ sheet, index }: { sheet: Sheet; index: number }) {
  const facts = sheet.facts!;
  const counts = (facts.min ?? 0) >= 0 && facts.zero_share > 0.3;
  return (
    <div class="seen-one">
      <div class="head">
        <h3>{sheet.name}</h3>
        {sheet.corner && <span class="note fine">{sheet.corner}</span>}
        <span class="end">
          <UsePicker sheet={sheet} index={index} />
        </span>
      </div>
      <HeatMap
        heat={sheet.heat!}
        counts={counts}
        sums={counts}
        size={counts ? 160 : 180}
        label={`${sheet.name}, ${sheet.shape!.join(" by ")}, from low to high`}
      />
      <ul class="facts">
        {factsOf(sheet, counts).map(([what, under]) => (
          <li>
            <b>{what}</b> <span>{under}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

function factsOf(sheet: Sheet, counts: boolean): [string, string][] {
  const facts = sheet.facts!;
  const lines: [string, string][] = [
    [
      sheet.shape!.map((one) => number(one)).join(" × "),
      sheet.listed
        ? `from a list of ${plural(sheet.listed, "pair")}`
        : sheet.row_names && sheet.column_names
          ? "rows and columns, named"
          : sheet.row_names
            ? "named rows, columns without names"
            : sheet.column_names
              ? "named columns, rows without names"
              : "rows and columns, not named",
    ],
  ];
  const range =
    facts.min != null && facts.max != null ? `${number(facts.min)} to ${number(facts.max)}` : "no number at all";
  if (counts && facts.sum != null) lines.push([`${number(facts.sum)} in all`, `${range} a pair`]);
  else lines.push([range, facts.whole_numbers ? "whole numbers" : "numbers"]);
  if (facts.stored != null) lines.push([`${number(facts.stored)} pairs`, "all others are not allowed"]);
  else if (counts) lines.push([`${Math.round(100 * facts.zero_share)}% are zero`, "drawn blank"]);
  if (facts.symmetric != null)
    lines.push(facts.symmetric ? ["Symmetric", "the same both ways"] : ["Not symmetric", "both ways count"]);
  if (sheet.missing)
    lines.push([
      sheet.listed ? `${plural(sheet.missing, "pair")} without a number` : plural(sheet.missing, "empty cell"),
      `read as ${missingWords.value}`,
    ]);
  if (sheet.fault_count) lines.push([plural(sheet.fault_count, "cell"), "with text where a number should be"]);
  else if (!sheet.missing && (facts.symmetric == null || !counts)) lines.push(["No gaps", "every cell is a number"]);
  return lines;
}

function Plain({ sheet, index }: { sheet: Sheet; index: number }) {
  const count = sheet.pairs?.length ?? sheet.shape?.[0] ?? sheet.cells_shape[0];
  const what = {
    points: "positions",
    list: "numbers",
    pairs: "names in pairs",
    order: "a layout",
    text: "text only",
    stack: "a stack of tables",
    matrix: "",
    sparse: "",
  }[sheet.role];
  const coloured = /^(r|red)$/i.test(sheet.column_names?.[0]?.trim() ?? "");
  const drawn = sheet.role === "points" && sheet.points && !["rooms"].includes(uses.value[index] ?? "");
  return (
    <div class="seen-one">
      <div class="head">
        <h3>{sheet.name}</h3>
        <span class="note fine">
          {plural(count, "row")}, {coloured ? "colours" : what}
        </span>
        <span class="end">
          <UsePicker sheet={sheet} index={index} />
        </span>
      </div>
      {drawn && (
        <Scatter points={sheet.points!} colours={coloured} label={`${sheet.name}: ${plural(count, "point")}`} />
      )}
      {drawn && (
        <ul class="facts">
          {pointFacts(sheet).map(([text, under]) => (
            <li>
              <b>{text}</b> <span>{under}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

function pointFacts(sheet: Sheet): [string, string][] {
  const names = sheet.column_names ?? [];
  const lines: [string, string][] = [[number(sheet.points!.length), sheet.row_names ? "named" : "not named"]];
  names.slice(0, 4).forEach((name, at) => {
    const values = sheet.points!.map((row) => row[at] ?? 0);
    lines.push([
      name,
      `${number(values.reduce((a, b) => Math.min(a, b)))} to ${number(values.reduce((a, b) => Math.max(a, b)))}`,
    ]);
  });
  return lines;
}

/** What today's layout costs is worth knowing before a better one is looked for. */
function Today() {
  if (problem.value !== "qap") return null;
  const today = todayOf();
  const [sheet, rooms] = [sheetFor("today"), sheetFor("rooms")];
  if (!today && !rooms) return null;
  const walked = today && cost(today);
  const { factor, unit, measure: what } = measure();
  return (
    <p class="row soft small">
      <Icon name={sheet?.pairs && !today ? "warn" : "check"} />
      <span>
        {today && walked != null && (
          <>
            <b class="strong">{sheet!.name}</b> puts all {today.length} departments into rooms:{" "}
            <b class="strong">
              {number(walked * factor)} {unit}
            </b>{" "}
            {what}.{" "}
          </>
        )}
        {sheet?.pairs && !today && <>{sheet.name} does not name every department and room once, so I leave it out. </>}
        {rooms && (
          <>
            <b class="strong">{rooms.name}</b> has positions, so I can draw the floor.
          </>
        )}
      </span>
    </p>
  );
}

function cost(today: number[]): number | null {
  const [flow, distance] = [sheetFor("flow"), sheetFor("distance")];
  if (!flow?.cells_whole || !distance?.cells_whole || flow.listed || distance.listed) return null;
  const at = (sheet: Sheet, i: number, j: number) =>
    Number(sheet.cells[i + sheet.first[0]]?.[j + sheet.first[1]] ?? 0) || 0;
  let sum = 0;
  today.forEach((room, i) => today.forEach((other, j) => (sum += at(flow, i, j) * at(distance, room, other))));
  return sum;
}

/** A whole number with more digits than fit: what is counted with is another one. */
function Rounded() {
  return (
    <>
      {sheets.value.map(
        ({ name, rounded }) =>
          rounded && (
            <p class="row soft small">
              <Icon name="warn" />
              <span>
                <b class="strong">
                  {name}, cell {rounded.cell}
                </b>
                : I read {rounded.found} as {rounded.read}, since 64 bits hold no more digits.
                {rounded.count > 1 && ` ${plural(rounded.count - 1, "cell")} more.`}
              </span>
            </p>
          ),
      )}
    </>
  );
}

/** Numbers that may be names: only who wrote the table knows. */
function Doubt() {
  const sheet = sheets.value.find((one, at) => one.doubt && uses.value[at] && !kept.value.has(`${one.name}!doubt`));
  if (!sheet) return null;
  const named = !!sheet.row_names && !!sheet.column_names;
  const [now, other] = named ? ["names", "numbers"] : ["numbers", "names"];
  return (
    <Notice
      action={
        <span class="row">
          <button class="btn small" type="button" onClick={() => void tell(sheet, other as Doubtful)}>
            They are {other}
          </button>
          <button
            class="btn small"
            type="button"
            onClick={() => (kept.value = new Set([...kept.value, `${sheet.name}!doubt`]))}
          >
            Keep {now}
          </button>
        </span>
      }
    >
      <b class="strong">{sheet.name}</b>: {sheet.doubt}. I read them as {now}.
    </Notice>
  );
}

/** One bad cell at a time, with what was made of it. */
function Faults() {
  const all = sheets.value.flatMap((sheet, at) =>
    uses.value[at] ? sheet.faults.map((fault) => ({ sheet, at, fault })) : [],
  );
  const open = all.filter(({ sheet, fault }) => !kept.value.has(`${sheet.name}!${fault.cell}`));
  const first = open[0];
  if (!first) return null;
  const { sheet, at, fault } = first;
  const rest = open.length - 1;
  const show = () => {
    active.value = at;
    setTimeout(() => {
      const row = Number(/\d+$/.exec(fault.cell)![0]);
      const cell = document.querySelector<HTMLElement>(`.grid tbody tr:nth-child(${row}) td.wrong`);
      cell?.scrollIntoView({ block: "nearest" });
      cell?.click();
    });
  };
  return (
    <Notice
      action={
        <span class="row">
          <button class="btn small" type="button" onClick={show}>
            Type a number
          </button>
          <button
            class="btn small"
            type="button"
            onClick={() => (kept.value = new Set([...kept.value, `${sheet.name}!${fault.cell}`]))}
          >
            Keep {missing.value === "zero" ? "0" : "it out"}
          </button>
        </span>
      }
    >
      <b class="strong">
        {sheet.name}, cell {fault.cell} is text: “{fault.found}”
      </b>
      {fault.names[0] && ` (${fault.names.filter(Boolean).join(" to ")})`}. I read it as {missingWords.value}.
      {rest > 0 && ` ${plural(rest, "cell")} more.`}
    </Notice>
  );
}
