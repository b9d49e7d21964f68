/** Server-sent events by fetch, since EventSource cannot send a header. Reconnects where it left off. */

import { Refused, send } from "./http";

export interface ServerEvent {
  id: string;
  kind: string;
  data: unknown;
}

/** Cuts text into events as it comes. */
export class EventReader {
  private rest = "";

  feed(text: string): ServerEvent[] {
    this.rest += text.replace(/\r\n?/g, "\n");
    const blocks = this.rest.split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.map(parse).filter((event): event is ServerEvent => event !== null);
  }
}

function parse(block: string): ServerEvent | null {
  const fields: Record<string, string> = {};
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith(":")) continue;
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "data") data.push(value);
    else fields[name] = value;
  }
  if (!data.length) return null;
  return { id: fields.id ?? "", kind: fields.event ?? "message", data: JSON.parse(data.join("\n")) };
}

export interface Listener {
  event(event: ServerEvent): void;
  /** The connection is lost; it is tried again after so many seconds. */
  lost(retryInS: number): void;
  back(): void;
  /** The service will tell nothing of this: it is gone, or it is another's. */
  refused?(error: unknown): void;
}

/** The service says something every 15 seconds; a line that is silent for so long is dead, though nobody has said so. */
const SILENT_MS = 40_000;

/** Follow a stream until `done` says so. Returns how to stop, and how to try again at once. */
export function follow(path: string, listener: Listener, done: () => boolean): { stop(): void; now(): void } {
  const stopped = new AbortController();
  let last = "";
  let wake: (() => void) | null = null;

  async function once(): Promise<void> {
    const cut = new AbortController();
    const end = () => cut.abort();
    let silent = setTimeout(end, SILENT_MS);
    stopped.signal.addEventListener("abort", end);
    addEventListener("offline", end);
    try {
      await listen(cut.signal, () => {
        clearTimeout(silent);
        silent = setTimeout(end, SILENT_MS);
      });
    } finally {
      clearTimeout(silent);
      stopped.signal.removeEventListener("abort", end);
      removeEventListener("offline", end);
    }
  }

  async function listen(signal: AbortSignal, heard: () => void): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (last) headers["Last-Event-ID"] = last;
    const answer = await send(path, { headers, signal });
    listener.back();
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const cut = new EventReader();
    for (;;) {
      const { value, done: ended } = await reader.read();
      if (ended) return;
      heard();
      for (const event of cut.feed(value)) {
        last = event.id || last;
        listener.event(event);
      }
    }
  }

  async function loop(): Promise<void> {
    let waitS = 1;
    while (!stopped.signal.aborted && !done()) {
      try {
        await once();
        waitS = 1;
        if (done()) return;
      } catch (error) {
        if (stopped.signal.aborted) return;
        if (error instanceof Refused && error.status < 500 && error.status !== 429) return listener.refused?.(error);
      }
      listener.lost(waitS);
      await new Promise<void>((resolve) => {
        wake = resolve;
        addEventListener("online", () => resolve(), { once: true });
        setTimeout(resolve, waitS * 1000);
      });
      waitS = Math.min(15, waitS * 2);
    }
  }

  void loop();
  return {
    stop: () => {
      stopped.abort();
      wake?.();
    },
    now: () => wake?.(),
  };
}
