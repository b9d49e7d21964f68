/** A job as it happens: its record, its events, its inputs and, in the end, its answer. */

import { useEffect, useState } from "preact/hooks";
import { follow } from "../../api/events";
import { get, Refused, words } from "../../api/http";
import { Persistent } from "../../api/persist";
import { type Note, noteOf } from "../../api/notes";
import { fetchMatrix, fetchSparse, type Matrix, type Sparse } from "../../api/npy";
import type { Job, Progress, Reference, Result } from "../../api/types";
import { DRAWN_EVERY_MS, extended, type History, NOTHING } from "./history";

export interface Live extends History {
  job: Job | null;
  note: Note | null;
  result: Result | null;
  inputs: Record<string, Matrix | null>;
  sparse: Sparse | null;
  /** Until when the next try waits, by performance.now(); null while connected. */
  lostUntil: number | null;
  wrong: string;
  expired: boolean;
  again: () => void;
  /** Shown through a link: what would ask the service for more is left out. */
  shared?: boolean;
}

const FETCHED_MOST = 4_000_000;

export function useLive(id: string): Live {
  const [job, setJob] = useState<Job | null>(null);
  const [note, setNote] = useState<Note | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [history, setHistory] = useState<History>(NOTHING);
  const [inputs, setInputs] = useState<Record<string, Matrix | null>>({});
  const [sparse, setSparse] = useState<Sparse | null>(null);
  const [lostUntil, setLost] = useState<number | null>(null);
  const [wrong, setWrong] = useState("");
  const [expired, setExpired] = useState(false);
  const [again, setAgain] = useState<() => void>(() => () => undefined);

  useEffect(() => {
    let over = false;
    let known: Job | null = null;
    let closed = false;
    const fail = (error: unknown) => {
      if (over) return;
      if (error instanceof Refused && error.status === 410) setExpired(true);
      else setWrong(words(error));
    };
    const line = {
      lost: (retryInS: number) => !over && setLost(performance.now() + retryInS * 1000),
      back: () => !over && setLost(null),
    };
    const asked = new Persistent(line);
    const look = async () => {
      known = await asked.ask((signal) => get<Job>(`/v1/jobs/${id}`, { signal }));
      if (!over) setJob(known);
      return known;
    };
    const finish = async () => {
      const last = await look();
      if (last.state === "succeeded") {
        const answer = await asked.ask((signal) => get<Result>(`/v1/jobs/${id}/result`, { signal }));
        await fill(answer, asked);
        if (answer.duals) await fill(answer.duals, asked);
        if (!over) setResult(answer);
      }
    };
    const taken: Progress[] = [];
    let scheduled = 0;
    let drawnAt = -Infinity;
    const drawn = () => {
      scheduled = 0;
      drawnAt = performance.now();
      const reports = taken.splice(0);
      const last = reports.at(-1);
      if (over || !last) return;
      setHistory((before) => extended(before, reports));
      setJob(
        (before) =>
          before && { ...before, progress: last, state: before.state === "queued" ? "running" : before.state },
      );
    };
    const stream = follow(
      `/v1/jobs/${id}/events`,
      {
        event(event) {
          if (event.kind === "state") {
            const state = (event.data as { state: Job["state"] }).state;
            if (known) known = { ...known, state };
            closed = ["succeeded", "failed", "cancelled"].includes(state);
            if (closed) void finish().catch(fail);
            else void look().catch(fail);
          } else {
            taken.push(event.data as Progress);
            scheduled ||= window.setTimeout(drawn, Math.max(60, drawnAt + DRAWN_EVERY_MS - performance.now()));
          }
        },
        ...line,
        refused: fail,
      },
      () => closed, // not before the stream itself has said so: what it says then fetches the answer
    );
    setAgain(() => () => (stream.now(), asked.now()));
    void look()
      .then((first) => {
        void noteOf(id, first.noted).then((found) => !over && setNote(found));
        return load(
          first,
          asked,
          (some) => !over && setInputs(some),
          (csr) => !over && setSparse(csr),
        );
      })
      .catch(fail);
    return () => {
      over = true;
      clearTimeout(scheduled);
      stream.stop();
      asked.stop();
    };
  }, [id]);
  return { job, note, result, ...history, inputs, sparse, lostUntil, wrong, expired, again };
}

/** Arrays that the answer only refers to, as long as they are not too large to be shown here. */
async function fill(holder: object, asked: Persistent): Promise<void> {
  for (const [name, value] of Object.entries(holder)) {
    if (!value || typeof value !== "object" || !("blob" in value)) continue;
    const reference = value as Reference;
    if ((reference.shape ?? []).reduce((size, extent) => size * extent, 1) > FETCHED_MOST) continue;
    const found = await asked.ask((signal) => fetchMatrix(reference, signal)).catch(() => null);
    if (found) Object.assign(holder, { [name]: nested(found) });
  }
}

function nested({ values, shape }: Matrix): number[] | number[][] {
  const list = Array.from(values);
  if (shape.length !== 2) return list;
  const width = shape[1]!;
  return Array.from({ length: shape[0]! }, (_, i) => list.slice(i * width, (i + 1) * width));
}

/** What a picture or a check needs of the problem, if it is not too large to be sent here. */
async function load(
  job: Job,
  asked: Persistent,
  take: (inputs: Record<string, Matrix | null>) => void,
  takeSparse: (csr: Sparse | null) => void,
): Promise<void> {
  const found: Record<string, Matrix | null> = {};
  for (const [name, input] of Object.entries(job.input_digests)) {
    if ("csr" in input) takeSparse(await asked.ask((signal) => fetchSparse(input, signal)).catch(() => null));
    else if ((input.shape ?? []).reduce((size, extent) => size * extent, 1) > FETCHED_MOST) found[name] = null;
    else found[name] = await asked.ask((signal) => fetchMatrix(input, signal)).catch(() => null);
  }
  take(found);
}
