/** A job as it happens: its record, its events, its inputs and, in the end, its answer. */

import { useEffect, useState } from "preact/hooks";
import { follow } from "../../api/events";
import { get, Refused, words } from "../../api/http";
import { type Note, noteOf } from "../../api/notes";
import { fetchMatrix, fetchSparse, type Matrix, type Sparse } from "../../api/npy";
import type { Job, Progress, Reference, Result } from "../../api/types";
import type { Moment } from "../../charts/curve";

export interface Better {
  at: number;
  objective: number;
  permutation: number[] | null;
}

export interface Live {
  job: Job | null;
  note: Note | null;
  result: Result | null;
  moments: Moment[];
  betters: Better[];
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

const ended = (job: Job | null): boolean => job !== null && !["queued", "running"].includes(job.state);
const FETCHED_MOST = 4_000_000;

export function useLive(id: string): Live {
  const [job, setJob] = useState<Job | null>(null);
  const [note, setNote] = useState<Note | null>(null);
  const [result, setResult] = useState<Result | null>(null);
  const [moments, setMoments] = useState<Moment[]>([]);
  const [betters, setBetters] = useState<Better[]>([]);
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
    const look = async () => {
      known = await get<Job>(`/v1/jobs/${id}`);
      if (!over) setJob(known);
      return known;
    };
    const finish = async () => {
      const last = await look();
      if (last.state === "succeeded") {
        const answer = await get<Result>(`/v1/jobs/${id}/result`);
        await fill(answer);
        if (answer.duals) await fill(answer.duals);
        if (!over) setResult(answer);
      }
    };
    const taken: Progress[] = [];
    let scheduled = 0;
    const drawn = () => {
      scheduled = 0;
      const reports = taken.splice(0);
      const last = reports.at(-1);
      if (over || !last) return;
      setMoments((before) => [
        ...before,
        ...reports.map((one) => ({ at: one.elapsed_s, objective: one.objective, bound: one.bound })),
      ]);
      setBetters((before) => {
        const list = [...before];
        for (const one of reports)
          if (one.objective != null && list.at(-1)?.objective !== one.objective)
            list.push({ at: one.elapsed_s, objective: one.objective, permutation: one.permutation ?? null });
        return list;
      });
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
            scheduled ||= window.setTimeout(drawn, 60);
          }
        },
        lost: (retryInS) => !over && setLost(performance.now() + retryInS * 1000),
        back: () => !over && setLost(null),
      },
      () => closed || ended(known),
    );
    setAgain(() => stream.now);
    void look()
      .then((first) => {
        void noteOf(id, first.noted).then((found) => !over && setNote(found));
        return load(
          first,
          (some) => !over && setInputs(some),
          (csr) => !over && setSparse(csr),
        );
      })
      .catch(fail);
    return () => {
      over = true;
      clearTimeout(scheduled);
      stream.stop();
    };
  }, [id]);
  return { job, note, result, moments, betters, inputs, sparse, lostUntil, wrong, expired, again };
}

/** Arrays that the answer only refers to, as long as they are not too large to be shown here. */
async function fill(holder: object): Promise<void> {
  for (const [name, value] of Object.entries(holder)) {
    if (!value || typeof value !== "object" || !("blob" in value)) continue;
    const reference = value as Reference;
    if ((reference.shape ?? []).reduce((size, extent) => size * extent, 1) > FETCHED_MOST) continue;
    const found = await fetchMatrix(reference).catch(() => null);
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
  take: (inputs: Record<string, Matrix | null>) => void,
  takeSparse: (csr: Sparse | null) => void,
): Promise<void> {
  const found: Record<string, Matrix | null> = {};
  for (const [name, input] of Object.entries(job.input_digests)) {
    if ("csr" in input) takeSparse(await fetchSparse(input).catch(() => null));
    else if ((input.shape ?? []).reduce((size, extent) => size * extent, 1) <= FETCHED_MOST)
      found[name] = await fetchMatrix(input).catch(() => null);
  }
  take(found);
}
