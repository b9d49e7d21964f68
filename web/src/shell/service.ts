/** What the head of every page shows: which workers there are, and how many jobs run. */

import { computed, signal } from "@preact/signals";
import { get, keyWanted } from "../api/http";
import type { Job, Worker } from "../api/types";
import { path } from "./router";

export const workers = signal<Worker[] | null>(null);
export const running = signal(0);
export const reachable = signal(true);

export const busyWords = computed(() => {
  const all = workers.value;
  if (all === null) return "";
  const gpus = all.filter((worker) => worker.device === "gpu");
  const shown = gpus.length ? gpus : all;
  const word = gpus.length ? "GPU" : "CPU worker";
  if (!shown.length) return "no worker yet";
  const open = shown.filter((worker) => worker.state);
  if (!open.length) return `${shown.length} ${word}${shown.length > 1 ? "s" : ""}`;
  const warming = shown.filter((worker) => !["idle", "busy"].includes(worker.state ?? "idle")).length;
  if (warming === shown.length) return `${word}${shown.length > 1 ? "s" : ""} warming up`;
  const busy = shown.filter((worker) => worker.state === "busy").length;
  if (shown.length === 1) return `${word} ${busy ? "busy" : "free"}`;
  return `${busy} of ${shown.length} ${word}s busy`;
});

let timer = 0;

export async function look(): Promise<void> {
  clearTimeout(timer);
  if (document.visibilityState === "visible" && !keyWanted.value && path.value !== "/shared") {
    try {
      const [devices, jobs] = await Promise.all([
        get<{ workers: Worker[] }>("/v1/devices"),
        get<{ jobs: Job[] }>("/v1/jobs?state=running&limit=100"),
      ]);
      workers.value = devices.workers;
      running.value = jobs.jobs.length;
      reachable.value = true;
    } catch {
      reachable.value = keyWanted.value;
    }
  }
  timer = window.setTimeout(() => void look(), 4000);
}

document.addEventListener("visibilitychange", () => void look());
