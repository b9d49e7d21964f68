import type { RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { SAMPLES, SLUGS } from "../../samples";
import { go } from "../../shell/router";
import { PROBLEMS } from "../../words";
import { addFiles, addText, loadSample, problem } from "./state";

const ACCEPT = ".csv,.tsv,.txt,.xlsx,.h5ad,.npy,.npz,.safetensors,.dat,.sln,.mtx,.gz,.zst";

/** The browser's own question for files; a button elsewhere opens it. The same file may be picked twice. */
export function Picker({
  picker,
  take,
}: {
  picker: RefObject<HTMLInputElement | null>;
  take: (files: File[]) => void;
}) {
  return (
    <input
      ref={picker}
      type="file"
      multiple
      accept={ACCEPT}
      hidden
      aria-label="Choose files"
      onChange={(event) => (take([...event.currentTarget.files!]), (event.currentTarget.value = ""))}
    />
  );
}

const SMALL: Record<string, string[]> = {
  lap: ["minutes\tJob 1\tJob 2\tJob 3\nAnn\t4\t1\t3\nBen\t2\t0\t5\nCy\t3\t2\t2"],
  auction: ["worth\tShift 1\tShift 2\tShift 3\nAnn\t7\t4\t\nBen\t\t6\t3\nCy\t5\t\t8"],
  uot: ["cost\tShop 1\tShop 2\tShop 3\nDepot 1\t0\t1\t4\nDepot 2\t1\t0\t1\nDepot 3\t4\t1\t0"],
  qap: [
    "trips a day\tStore\tOffice\tLab\tWorkshop\nStore\t0\t5\t2\t4\nOffice\t5\t0\t3\t0\nLab\t2\t3\t0\t1\nWorkshop\t4\t0\t1\t0",
    "metres\tR1\tR2\tR3\tR4\nR1\t0\t10\t20\t30\nR2\t10\t0\t10\t20\nR3\t20\t10\t0\t10\nR4\t30\t20\t10\t0",
  ],
  barycenter: ["share\t8 h\t9 h\t10 h\t11 h\t12 h\nMonday\t60\t30\t10\t0\t0\nFriday\t0\t0\t20\t30\t50"],
  gromov: [
    "metres\tGate\tWell\tMill\tOak\nGate\t0\t30\t50\t80\nWell\t30\t0\t40\t60\nMill\t50\t40\t0\t70\nOak\t80\t60\t70\t0",
    "metres\tI\tII\tIII\tIV\nI\t\t70\t42\t50\nII\t70\t\t58\t80\nIII\t42\t58\t\t31\nIV\t50\t80\t31\t",
  ],
};

const NAMES: Record<string, string[]> = { qap: ["Trips", "Distances"], gromov: ["Places", "Old map"] };

export function Start() {
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const load = (name: string, kind: string) => {
    problem.value = kind;
    go(`/solve/${SLUGS[kind]}`, true);
    void loadSample(name);
  };
  const type = async () => {
    const tables = SMALL[problem.value]!;
    const names = NAMES[problem.value] ?? ["Table"];
    for (const [at, text] of tables.entries()) await addText(text, names[at]!);
  };
  const ordered = [...SAMPLES].sort((a, b) => Number(b.kind === problem.value) - Number(a.kind === problem.value));
  return (
    <>
      <div
        class={over ? "drop over" : "drop"}
        onDragOver={(event) => (event.preventDefault(), setOver(true))}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          if (event.dataTransfer?.files.length) void addFiles([...event.dataTransfer.files], true);
        }}
      >
        <h2>Drop a spreadsheet</h2>
        <p class="note small">
          {WANTED[problem.value]} CSV, Excel, NumPy, safetensors, AnnData, QAPLIB, Matrix Market.{" "}
          <span class="wide">Or paste cells with Ctrl V.</span>
        </p>
        <div class="row">
          <button class="btn go" type="button" onClick={() => picker.current?.click()}>
            Choose a file
          </button>
          <button class="btn" type="button" onClick={() => void type()}>
            Type a small table
          </button>
        </div>
        <Picker picker={picker} take={(files) => void addFiles(files, true)} />
      </div>
      <ul class="samples" aria-label="Samples">
        {ordered.map(({ name, kind, title, what }) => (
          <li key={name}>
            <button class="link" type="button" onClick={() => load(name, kind)}>
              {title}
            </button>
            <span class="wide">{what}</span>
            <span class="note small">{PROBLEMS[kind]!.tab}</span>
          </li>
        ))}
      </ul>
    </>
  );
}

const WANTED: Record<string, string> = {
  lap: "A row for each person, a column for each job, what each pair costs.",
  auction: "What each pair is worth; an empty cell is a pair that is not allowed.",
  uot: "Two lists of points, or what moving costs from each row to each column.",
  qap: "Trips between departments, distances between rooms.",
  barycenter: "A row for each shape, a column for each place, how much is there.",
  gromov: "Two tables: the distances within each space, or its points.",
};

export function KindPicture({ kind }: { kind: string }) {
  const dots = (xs: number[], ys: number[]) =>
    xs.flatMap((x) => ys.map((y) => <circle class="k-fill" cx={x} cy={y} r="3" />));
  return (
    <svg width="40" height="28" viewBox="0 0 40 28" aria-hidden="true">
      {kind === "lap" && (
        <>
          <path class="k-line" d="M7 5 33 14M7 14 33 5M7 23H33" />
          {dots([7, 33], [5, 14, 23])}
        </>
      )}
      {kind === "auction" && (
        <>
          <path class="k-line" d="M7 5H33M7 14 33 23" />
          <path class="k-line" stroke-dasharray="2 3" d="M7 23 33 14M7 5 33 14" />
          {dots([7, 33], [5, 14, 23])}
        </>
      )}
      {kind === "uot" &&
        Array.from({ length: 24 }, (_, at) => (
          <rect
            class="k-fill"
            x={6 + (at % 6) * 5}
            y={3 + Math.floor(at / 6) * 6}
            width="4"
            height="5"
            opacity={
              [
                1, 0.6, 0.25, 0.1, 0.05, 0.05, 0.5, 1, 0.7, 0.25, 0.1, 0.05, 0.1, 0.35, 0.8, 1, 0.5, 0.15, 0.05, 0.1,
                0.2, 0.5, 0.9, 1,
              ][at]
            }
          />
        ))}
      {kind === "barycenter" && (
        <>
          <path class="k-line" stroke-dasharray="2 3" d="M3 24Q9 -4 15 24M25 24Q31 -4 37 24" />
          <path class="k-line" d="M13 24Q20 -10 27 24" />
        </>
      )}
      {kind === "gromov" && (
        <>
          <path class="k-line" d="M4 21 9 5 17 17ZM23 10 35 6 32 23Z" />
          <path class="k-line" stroke-dasharray="2 3" d="M9 5 35 6M17 17 23 10M4 21 32 23" />
        </>
      )}
      {kind === "qap" && <path class="k-line" d="M5 3H35V25H5ZM5 13H22M22 3V25M14 3V13M22 17H35" />}
    </svg>
  );
}
