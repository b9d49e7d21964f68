import { type ComponentType, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Bones, Notice } from "./parts/forms";
import { path } from "./shell/router";
import { Shell } from "./shell/Shell";
import "./shell/keys";
import "./styles/tokens.css";
import "./styles/shell.css";
import "./styles/parts.css";
import "./styles/pages.css";

type Page = ComponentType<{ id: string }>;
const PAGES: [RegExp, () => Promise<{ default: Page }>, string][] = [
  [/^\/(?:solve(?:\/([a-z]+))?)?$/, () => import("./pages/Solve"), "Solve"],
  [/^\/jobs$/, () => import("./pages/Jobs"), "Jobs"],
  [/^\/jobs\/([0-9a-f]+)$/, () => import("./pages/Job"), "Job"],
  [/^\/compare$/, () => import("./pages/Compare"), "Compare"],
  [/^\/shared$/, () => import("./pages/Shared"), "Shared"],
  [/^\/workers$/, () => import("./pages/Workers"), "Workers"],
];
const loaded = new Map<string, Page>();

function App() {
  const found = PAGES.find(([pattern]) => pattern.test(path.value));
  const name = found?.[2] ?? "";
  const [, drawn] = useState("");
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    document.title = `${name || "Nothing here"} · Allot`;
    if (!found || loaded.has(name)) return;
    found[1]().then(
      (module) => (loaded.set(name, module.default), drawn(name)),
      (error) => setWrong(String(error)),
    );
  }, [name]);
  const Shown = loaded.get(name);
  const id = found?.[0].exec(path.value)?.[1] ?? "";
  return (
    <Shell>
      {!found && (
        <>
          <h1>There is nothing here</h1>
          <p class="lede">
            The address may be mistyped.{" "}
            <a class="link" href="/solve">
              Begin with a problem
            </a>
            , or look at{" "}
            <a class="link" href="/jobs">
              your jobs
            </a>
            .
          </p>
        </>
      )}
      {wrong && <Notice kind="bad">This page could not be loaded: {wrong}</Notice>}
      {found && !wrong && (Shown ? <Shown key={name + (name === "Job" ? id : "")} id={id} /> : <Bones />)}
    </Shell>
  );
}

render(<App />, document.getElementById("app")!);
