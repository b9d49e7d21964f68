import { useState } from "preact/hooks";
import { Icon } from "../../parts/Icon";
import { denseEntries, sparseEntries, type Claim, type Verdict, verifyAssignment } from "../../verify/assignment";
import { boundText, byRounding, gapPercent, maximises, number, percentUp, seconds } from "../../words";
import type { Live } from "./live";
import { tooFewWords } from "./table";
import type { Told } from "./told";

interface Line {
  text: string;
  value: string;
  under: string;
  holds: boolean;
}

/** What was proved, one sentence a line, and who proved it. */
export function CertificateLines({ live, told }: { live: Live; told: Told }) {
  const result = live.result!;
  const claim = claimOf(live);
  const [verdict, setVerdict] = useState<(Verdict & { tookS: number }) | null>(null);
  const [working, setWorking] = useState(false);
  const verify = () => {
    setWorking(true);
    setTimeout(() => {
      const begun = performance.now();
      const found = verifyAssignment(claim!());
      setVerdict({ ...found, tookS: (performance.now() - begun) / 1000 });
      setWorking(false);
    }, 30);
  };
  return (
    <section class="gap8">
      <h2>The certificate, line by line</h2>
      <ul class="lines">
        {explain(live, told).map((line) => (
          <li class={line.holds ? "" : "no"}>
            <Icon name={line.holds ? "check" : "warn"} />
            <b>{line.text}</b>
            <span class="v">{line.value}</span>
            <p>{line.under}</p>
          </li>
        ))}
      </ul>
      <details>
        <summary class="small soft">In the service’s own words</summary>
        <p class="small note">{result.certificate.proved}</p>
      </details>
      {claim && (
        <button class="btn small" type="button" disabled={working} onClick={verify}>
          {working ? "Adding up…" : "Verify in your browser"}
        </button>
      )}
      {verdict && (
        <div role="status">
          <p class="strong">
            {verdict.holds
              ? verdict.best
                ? "Verified here: the best possible."
                : "Verified here: all of it holds."
              : "This does not hold here."}{" "}
            <span class="note small">{seconds(verdict.tookS)}, without rounding</span>
          </p>
          <ul class="lines">
            {verdict.lines.map((line) => (
              <li class={line.holds ? "" : "no"}>
                <Icon name={line.holds ? "check" : "warn"} />
                <b>{line.text}</b>
                <span class="v">{shownSum(line.value)}</span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </section>
  );
}

const shownSum = (text: string | undefined): string =>
  text === undefined ? "" : Number.isFinite(Number(text)) ? number(Number(text), 12) : text;

function explain(live: Live, told: Told): Line[] {
  const { certificate, objective, solver, termination } = live.result!;
  const unit = told.unit ? ` ${told.unit}` : "";
  const lines: Line[] = [];
  if (termination === "infeasible") {
    return [
      {
        text: "No answer can exist",
        value: "",
        under: tooFewWords(live) || certificate.proved,
        holds: certificate.holds,
      },
    ];
  }
  const [once, under] = ONCE[solver] ?? ["The answer is one", "Every condition was checked."];
  lines.push({ text: once, value: "", under, holds: certificate.holds });
  if (objective != null)
    lines.push({
      text: "The sum, added up again",
      value: `${number(objective * told.factor)}${unit}`,
      under: "From your numbers and the answer alone, by other code than the one that solved it.",
      holds: true,
    });
  const max = maximises(live.job!);
  if (certificate.bound != null) {
    lines.push({
      text: max ? "Nobody can do better than" : "Nobody can get below",
      value: `${boundText(certificate.bound * told.factor, (objective ?? NaN) * told.factor, max)}${unit}`,
      under: BOUND[solver] ?? "",
      holds: true,
    });
    const percent = gapPercent(objective, certificate.bound);
    lines.push(
      percent === 0
        ? { text: "So this is the best possible", value: "gap 0", under: "Both numbers are the same.", holds: true }
        : termination === "optimal" && ((percent !== null && percent < 1e-7) || byRounding(live.result!))
          ? {
              text: "So this is the best possible",
              value: "",
              under: "Both numbers are the same up to the rounding of sums; the next line says how much.",
              holds: true,
            }
          : termination === "optimal"
            ? {
                text: "So this is the best possible",
                value: "",
                under: "Every other answer was ruled out by a search. The certificate does not repeat that search.",
                holds: true,
              }
            : {
                text:
                  percent === null
                    ? "What lies between them is not a share"
                    : `So it is within ${percentUp(percent)}% of the best possible`,
                value: "",
                under: LEFT[solver] ?? "Rounded up.",
                holds: true,
              },
    );
  } else
    lines.push({
      text: "No proof of how good this is",
      value: "",
      under: "No bound was found in the time there was.",
      holds: true,
    });
  if (certificate.max_violation)
    lines.push({
      text: "Largest violation found",
      value: number(certificate.max_violation, 3),
      under: "Of any condition, in the units of your numbers.",
      holds: true,
    });
  return lines;
}

const ONCE: Record<string, [string, string]> = {
  lap: ["Everyone is served once", "No column is used twice, and no forbidden pair is used."],
  auction: ["Nobody is served twice", "No column is used twice, and only allowed pairs are used."],
  uot: ["No amount is negative", "The plan was summed over its rows and columns again."],
  qap: ["Everybody has one room of their own", "Those who must stay have stayed."],
  gromov: ["Everything is put somewhere", "The plan was summed over its rows and columns again."],
  barycenter: ["Nothing is lost on the way", "Plans to each shape were made, and summed over rows and columns again."],
};
const BOUND: Record<string, string> = {
  lap: "A price on every row and column shows it; every pair was checked against both.",
  auction: "A price on every column shows it; every allowed pair was checked against it.",
  uot: "Prices on both sides show it, with every rounding taken against us.",
  qap: "Worked out from all flows and distances at once, without trying the layouts.",
  gromov: "It holds whatever goes with what, with every rounding taken against us.",
  barycenter: "Prices on every place show it, with every rounding taken against us.",
};

/** What a gap says that is left. */
const LEFT: Record<string, string> = {
  gromov: "Rounded up. Between spaces that are not alike the floor is seldom met, even by the best.",
};

const MOST_ENTRIES = 1_000_000;

/** What the browser needs to check an assignment; null where it cannot. */
export function claimOf(live: Live): (() => Claim) | null {
  const { result, inputs, sparse, job } = live;
  if (!result || !job || !["lap", "auction"].includes(job.solver) || result.termination === "infeasible") return null;
  const assignment = result.assignment;
  if (!Array.isArray(assignment) || Array.isArray(assignment[0])) return null;
  const prices = result.prices ?? result.duals?.v;
  const matrix = inputs.cost ?? inputs.benefit;
  if (!prices || (!matrix && !sparse)) return null;
  const maximize = maximises(job);
  const free = job.options.allow_unassigned === true;
  const rows = assignment.length;
  const reject = free ? (inputs.reject?.values ?? new Float64Array(rows)) : null;
  if (sparse) {
    const claim = {
      rows,
      columns: sparse.shape[1]!,
      values: sparse.values.values,
      assignment,
      prices,
      maximize,
      reject,
    };
    return () => ({
      ...claim,
      entries: sparseEntries(sparse.indptr.values, sparse.indices.values, sparse.values.values),
    });
  }
  if (!matrix || matrix.shape.length !== 2 || matrix.values.length > MOST_ENTRIES) return null;
  const columns = matrix.shape[1]!;
  const values = matrix.exact
    ? Float64Array.from(matrix.exact, (one) => (one === -(2n ** 63n) ? NaN : Number(one)))
    : matrix.values;
  if (rows > columns && !free) return turned(values, rows, columns, assignment, result.duals?.u, maximize);
  return () => ({
    rows,
    columns,
    values,
    assignment,
    prices,
    maximize,
    reject,
    entries: denseEntries(values, rows, columns),
  });
}

/** More rows than columns: the rows are those that may stay free, so both sides change places. */
function turned(
  values: Float64Array,
  rows: number,
  columns: number,
  assignment: number[],
  u: number[] | undefined,
  maximize: boolean,
): (() => Claim) | null {
  if (!u) return null;
  const back = new Array<number>(columns).fill(-1);
  assignment.forEach((j, i) => j >= 0 && (back[j] = i));
  const flipped = Float64Array.from(
    { length: values.length },
    (_, at) => values[(at % rows) * columns + Math.floor(at / rows)]!,
  );
  return () => ({
    rows: columns,
    columns: rows,
    values: flipped,
    assignment: back,
    prices: u,
    maximize,
    reject: null,
    entries: denseEntries(flipped, columns, rows),
  });
}
