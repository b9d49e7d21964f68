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
}

/** Follow a stream until `done` says so. Returns how to stop, and how to try again at once. */
export function follow(path: string, listener: Listener, done: () => boolean): { stop(): void; now(): void } {
  const stopped = new AbortController();
  let last = "";
  let wake: (() => void) | null = null;

  async function once(): Promise<void> {
    const headers: Record<string, string> = { Accept: "text/event-stream" };
    if (last) headers["Last-Event-ID"] = last;
    const answer = await send(path, { headers, signal: stopped.signal });
    listener.back();
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    const cut = new EventReader();
    for (;;) {
      const { value, done: ended } = await reader.read();
      if (ended) return;
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
        if (error instanceof Refused && error.status < 500 && error.status !== 429) return;
      }
      listener.lost(waitS);
      await new Promise<void>((resolve) => {
        wake = resolve;
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
