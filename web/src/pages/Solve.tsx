import { useEffect, useRef, useState } from "preact/hooks";
import { Bones, Notice } from "../parts/forms";
import { Icon } from "../parts/Icon";
import { KINDS, SLUGS, titleOf } from "../samples";
import { go, path, query } from "../shell/router";
import { bytes, plural, PROBLEMS, seconds } from "../words";
import { Form } from "./solve/Form";
import { Grid } from "./solve/Grid";
import { Seen } from "./solve/Seen";
import { KindPicture, Picker, Start } from "./solve/Start";
import {
  addFiles,
  addText,
  empty,
  loadSample,
  problem,
  readAgain,
  reading,
  sheets,
  sources,
  wrong,
} from "./solve/state";
import { outlast } from "./solve/stored";
import { likeliest } from "./solve/uses";

export default function Solve({ id }: { id: string }) {
  const asked = KINDS.find((kind) => SLUGS[kind] === id) ?? problem.value;
  useEffect(() => {
    if (asked === problem.value) return;
    problem.value = asked;
    if (sources.value.length || reading.value) void readAgain();
  }, [asked]);
  const likely = likeliest(sheets.value);
  useEffect(() => {
    // nobody has said which problem it is: the sheets may
    if (!id && likely && likely !== problem.value) go(`/solve/${SLUGS[likely]}`, true);
  }, [id, likely]);
  const sample = query.value.get("sample") ?? "";
  useEffect(() => {
    if (!sample) return void outlast(!!id);
    go(path.value, true); // said once: what is changed later is no sample any more
    void loadSample(sample);
  }, [sample]);
  useEffect(() => {
    const paste = (event: ClipboardEvent) => {
      const target = event.target as HTMLElement;
      if (["INPUT", "TEXTAREA"].includes(target.tagName)) return;
      const files = event.clipboardData?.files;
      const text = event.clipboardData?.getData("text/plain");
      if (files?.length) void addFiles(files, false);
      else if (text?.trim()) void addText(text, sources.value.length ? `Pasted ${sources.value.length + 1}` : "Pasted");
    };
    addEventListener("paste", paste);
    return () => removeEventListener("paste", paste);
  }, []);
  return (
    <>
      <h1 class="away">Solve</h1>
      <nav class="kinds" aria-label="Problem">
        {KINDS.map((kind) => (
          <a href={`/solve/${SLUGS[kind]}`} aria-current={problem.value === kind ? "page" : undefined}>
            <KindPicture kind={kind} />
            <b>{PROBLEMS[kind]!.tab}</b>
            <span>{PROBLEMS[kind]!.under}</span>
          </a>
        ))}
      </nav>
      {wrong.value && (
        <div class="gap16">
          <Notice kind="bad">{wrong.value}</Notice>
          <div />
        </div>
      )}
      {sources.value.length ? <Bench /> : reading.value ? <Bones /> : <Start />}
    </>
  );
}

function Bench() {
  return (
    <DropAnywhere>
      <div class="side">
        <div>
          <FileLine />
          <Seen />
          <Grid />
        </div>
        <Form />
      </div>
    </DropAnywhere>
  );
}

function FileLine() {
  const picker = useRef<HTMLInputElement>(null);
  const [replace, setReplace] = useState(false);
  const size = sources.value.reduce((sum, source) => sum + source.bytes, 0);
  const took = sources.value.reduce((sum, source) => sum + source.tookS, 0);
  const names = sources.value.map((source) => (source.sample ? titleOf(source.sample) : source.filename));
  const pick = (instead: boolean) => {
    setReplace(instead);
    picker.current?.click();
  };
  return (
    <div class="file">
      <Icon name="file" />
      <b class="strong">{names.join(", ")}</b>
      <span class="note small" role="status">
        {reading.value
          ? "Reading…"
          : `${plural(sheets.value.length, "sheet")}${size ? `, ${bytes(size)}` : ", a sample"}, read in ${seconds(took)}. Nothing has been solved yet.`}
      </span>
      <span class="end">
        <button class="link" type="button" onClick={() => pick(true)}>
          Replace
        </button>
        <button class="link" type="button" onClick={() => pick(false)}>
          Add a file
        </button>
        <button class="link" type="button" onClick={empty}>
          Clear
        </button>
      </span>
      <Picker picker={picker} take={(files) => void addFiles(files, replace)} />
    </div>
  );
}

function DropAnywhere({ children }: { children: preact.ComponentChildren }) {
  return (
    <div
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        if (event.dataTransfer?.files.length) void addFiles([...event.dataTransfer.files], false);
      }}
    >
      {children}
    </div>
  );
}
