import type { ComponentChildren, ComponentType } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { apiKey, dismissKey, keyWanted, useKey } from "../api/http";
import { Notice, Seg } from "../parts/forms";
import { Icon, Mark } from "../parts/Icon";
import { commandsShown, helpShown, KEYS } from "./keys";
import { address, go, path } from "./router";
import { busyWords, look, reachable, running, workers } from "./service";
import { type Theme, theme } from "./theme";

const PAGES = [
  ["/solve", "Solve", "solve"],
  ["/jobs", "Jobs", "jobs"],
  ["/compare", "Compare", "compare"],
  ["/workers", "Workers", "workers"],
  ["/docs", "Docs", "docs"],
] as const;
const here = (to: string): boolean => path.value.startsWith(to) || (to === "/solve" && path.value === "/");

export function Shell({ children }: { children: ComponentChildren }) {
  const guest = path.value === "/shared";
  useEffect(() => void (guest || look()), [apiKey.value, guest]);
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <header class="top">
        <div class="top-in">
          <a class="brand" href="/">
            <Mark />
            Allot
          </a>
          <nav class="pages" aria-label="Pages" hidden={guest}>
            {PAGES.map(([to, name]) => (
              <a href={to} aria-current={here(to) ? "page" : undefined}>
                {name}
                {name === "Jobs" && running.value > 0 && (
                  <span class="count">
                    <span class="away">, running: </span>
                    {running.value}
                  </span>
                )}
              </a>
            ))}
          </nav>
          <div class="top-end">
            {!guest && <Find />}
            {!guest && <Busy />}
            <Menu />
          </div>
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        {!reachable.value && (
          <Notice
            icon="line"
            action={
              <button class="btn small" type="button" onClick={() => void look()}>
                Try now
              </button>
            }
          >
            <b class="strong">The service does not answer.</b> This page tries again by itself.
          </Notice>
        )}
        {children}
      </main>
      <nav class="bar5" aria-label="Pages, below" hidden={guest}>
        {PAGES.map(([to, name, icon]) => (
          <a href={to} aria-current={here(to) ? "page" : undefined}>
            <Icon name={icon} />
            {name}
          </a>
        ))}
      </nav>
      {keyWanted.value && <KeyDialog />}
      {helpShown.value && <Help />}
      {commandsShown.value && <CommandBar />}
    </>
  );
}

function Find() {
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const text = (event.currentTarget as HTMLFormElement).querySelector("input")!.value.trim();
    go(/^[0-9a-f]{32}$/.test(text) ? `/jobs/${text}` : `/jobs?find=${encodeURIComponent(text)}`);
  };
  return (
    <form class="find" role="search" onSubmit={find}>
      <Icon name="find" />
      <input id="find" placeholder="Find a job" aria-label="Find a job by its name" />
      <kbd aria-hidden="true">/</kbd>
    </form>
  );
}

function Busy() {
  const all = workers.value ?? [];
  const gpus = all.filter((worker) => worker.device === "gpu");
  const shown = (gpus.length ? gpus : all).slice(0, 8);
  return (
    <a class="busy" href="/workers">
      <svg width={shown.length * 11} height="12" aria-hidden="true">
        {shown.map((worker, at) => (
          <rect class={worker.state === "busy" ? "on" : ""} x={at * 11} width="9" height="12" rx="1.5" />
        ))}
      </svg>
      {busyWords.value}
    </a>
  );
}

function Menu() {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const away = (event: Event) => {
      if (event instanceof KeyboardEvent ? event.key === "Escape" : !box.current?.contains(event.target as Node))
        setOpen(false);
    };
    addEventListener("pointerdown", away);
    addEventListener("keydown", away);
    return () => {
      removeEventListener("pointerdown", away);
      removeEventListener("keydown", away);
    };
  }, [open]);
  useEffect(() => setOpen(false), [address.value]);
  const options: [Theme, string][] = [
    ["auto", "As the system"],
    ["light", "Light"],
    ["dark", "Dark"],
  ];
  return (
    <div class="menu" ref={box}>
      <button
        class="btn plain"
        type="button"
        aria-label="Theme and key"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        <Icon name="sun" />
      </button>
      {open && (
        <div class="menu-box">
          <Seg
            name="theme"
            legend="Theme"
            value={theme.value}
            options={options}
            change={(value) => (theme.value = value)}
            full
            tiny
          />
          <button class="btn small" type="button" onClick={() => (keyWanted.value = true)}>
            {apiKey.value ? "Change the API key" : "Type an API key"}
          </button>
          {apiKey.value && (
            <button class="btn small" type="button" onClick={() => useKey("")}>
              Forget the key
            </button>
          )}
          <button class="btn small" type="button" onClick={() => (commandsShown.value = true)}>
            Commands
          </button>
          <button class="btn small" type="button" onClick={() => (helpShown.value = true)}>
            Keys
          </button>
        </div>
      )}
    </div>
  );
}

export function Dialog(props: { label: string; close: () => void; children: ComponentChildren; class?: string }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} class={props.class} aria-label={props.label} onClose={props.close}>
      {props.children}
    </dialog>
  );
}

function KeyDialog() {
  const take = (event: SubmitEvent) => {
    event.preventDefault();
    useKey((event.currentTarget as HTMLFormElement).querySelector("input")!.value.trim());
    location.reload();
  };
  return (
    <Dialog label="API key" close={dismissKey}>
      <form onSubmit={take}>
        <h2>An API key, please</h2>
        <p class="soft">
          This service asks who you are. The key stays in this tab until you close it, and is sent as a header only.
        </p>
        <label class="strong" for="api-key">
          API key
        </label>
        <input id="api-key" class="field" type="password" autocomplete="off" required />
        <button class="btn go">Use this key</button>
      </form>
    </Dialog>
  );
}

/** Fetched when it is first asked for. */
function CommandBar() {
  const [Bar, setBar] = useState<ComponentType | null>(null);
  useEffect(() => void import("./Commands").then((module) => setBar(() => module.default)), []);
  return Bar && <Bar />;
}

function Help() {
  return (
    <Dialog label="Keys" close={() => (helpShown.value = false)}>
      <form method="dialog">
        <h2>Keys</h2>
        <dl class="keys">
          {KEYS.map(([keys, what]) => (
            <>
              <dt>
                {keys.split(" ").map((one) => (
                  <kbd>{one}</kbd>
                ))}
              </dt>
              <dd>{what}</dd>
            </>
          ))}
        </dl>
        <button class="btn">Close</button>
      </form>
    </Dialog>
  );
}
