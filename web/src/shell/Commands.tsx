import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { get, keyWanted } from "../api/http";
import { noteOf } from "../api/notes";
import type { Job } from "../api/types";
import { Icon } from "../parts/Icon";
import { SAMPLES, SLUGS } from "../samples";
import { PROBLEMS, sizeWords } from "../words";
import { type Command, matching } from "./commands";
import { commandsShown, helpShown, offered, PAGE_KEYS } from "./keys";
import { go } from "./router";
import { Dialog } from "./Shell";
import { type Theme, theme } from "./theme";

const to = (address: string) => (): void => (address.startsWith("/docs") ? location.assign(address) : go(address));

function always(): Command[] {
  const themes: [Theme, string][] = [
    ["light", "Light theme"],
    ["dark", "Dark theme"],
    ["auto", "Theme as the system has it"],
  ];
  return [
    ...offered().map(({ keys, what, run }): Command => ({ group: "Here", what: capital(what), keys, run })),
    ...PAGE_KEYS.map(([keys, what, address]): Command => ({ group: "Pages", what, keys, run: to(address) })),
    ...SAMPLES.map(({ name, title, kind, what }): Command => ({
      group: "Samples",
      what: title,
      under: `${PROBLEMS[kind]!.tab}: ${what}`,
      run: to(`/solve/${SLUGS[kind]}?sample=${name}`),
    })),
    ...themes.map(([value, what]): Command => ({ group: "Settings", what, run: () => (theme.value = value) })),
    { group: "Settings", what: "Type an API key", run: () => (keyWanted.value = true) },
    { group: "Settings", what: "Show the keys", keys: "?", run: () => (helpShown.value = true) },
  ];
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

async function jobs(): Promise<Command[]> {
  const found = await get<{ jobs: Job[] }>("/v1/jobs?limit=30").catch(() => ({ jobs: [] }));
  return Promise.all(
    found.jobs.map(async (job): Promise<Command> => {
      const title = (await noteOf(job.id, job.noted))?.title;
      const under = title ? `${sizeWords(job)}, ${job.id.slice(0, 8)}` : job.id.slice(0, 8);
      return { group: "Jobs", what: title || sizeWords(job), under, run: to(`/jobs/${job.id}`) };
    }),
  );
}

async function manual(): Promise<Command[]> {
  const found = await get<[string, string, string, string][]>("/docs/search.json").catch(() => []);
  return found.map(([address, page, what]) => ({
    group: "Manual",
    what,
    under: page === what ? "" : page,
    run: to(address),
  }));
}

/** Everything that can be done, by its name. */
export default function Commands() {
  const [typed, setTyped] = useState("");
  const [fetched, setFetched] = useState<Command[]>([]);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const fixed = useMemo(always, []);
  useEffect(() => {
    void Promise.all([jobs(), manual()]).then((both) => setFetched(both.flat()));
  }, []);
  const shown = matching([...fixed, ...fetched], typed);
  const chosen = Math.min(at, shown.length - 1);
  useEffect(
    () => list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" }),
    [chosen],
  );
  const close = () => (commandsShown.value = false);
  const run = (command: Command | undefined) => {
    if (!command) return;
    close();
    command.run();
  };
  const move = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) setAt((chosen + step + shown.length) % Math.max(1, shown.length));
    else if (event.key === "Enter") run(shown[chosen]);
    else return;
    event.preventDefault();
  };
  return (
    <Dialog label="Commands" close={close} class="commands">
      <div class="command-line">
        <Icon name="find" />
        <input
          placeholder="What would you like to do?"
          role="combobox"
          aria-label="Command"
          aria-expanded="true"
          aria-controls="commands"
          aria-activedescendant={shown.length ? `command-${chosen}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          spellcheck={false}
          value={typed}
          onInput={(event) => (setTyped(event.currentTarget.value), setAt(0))}
          onKeyDown={move}
        />
        <kbd aria-hidden="true">Esc</kbd>
      </div>
      <ul id="commands" role="listbox" aria-label="Commands" ref={list}>
        {shown.map((command, nth) => (
          <li
            key={`${command.group} ${command.what} ${command.under ?? ""}`}
            id={`command-${nth}`}
            role="option"
            aria-selected={nth === chosen}
            onPointerMove={() => setAt(nth)}
            onClick={() => run(command)}
          >
            {command.group !== shown[nth - 1]?.group && <span class="command-group">{command.group}</span>}
            <span class="command">
              <b>{command.what}</b>
              {command.under && <span class="note small">{command.under}</span>}
              {command.keys && (
                <span class="end" aria-hidden="true">
                  {command.keys.split(" ").map((one) => (
                    <kbd key={one}>{one}</kbd>
                  ))}
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
      {!shown.length && (
        <p class="note command-none" role="status">
          Nothing here is called “{typed}”.
        </p>
      )}
    </Dialog>
  );
}
