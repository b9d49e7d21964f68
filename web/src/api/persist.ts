/** Requests that outlast a broken line: they are made again until there is an answer. */

import { Refused, Unreachable } from "./http";

/** A service that is away for a moment, or has too much to do, says so with these. */
const PASSING = new Set([429, 502, 503, 504]);

export const passes = (error: unknown): boolean =>
  error instanceof Unreachable ||
  (error as Error)?.name === "AbortError" ||
  (error instanceof Refused && PASSING.has(error.status));

export class Persistent {
  private readonly wakers = new Set<() => void>();
  private stopped = false;

  constructor(private readonly told: { lost(retryInS: number): void; back(): void }) {}

  /** Ask; after a failure that may pass, ask again. Throws what will not pass, and anything once it was stopped. */
  async ask<T>(one: (signal: AbortSignal) => Promise<T>): Promise<T> {
    for (let waitS = 1; ; waitS = Math.min(15, 2 * waitS)) {
      const cut = new AbortController();
      const end = () => cut.abort();
      addEventListener("offline", end);
      try {
        const answer = await one(cut.signal);
        if (waitS > 1) this.told.back();
        return answer;
      } catch (error) {
        if (this.stopped || !passes(error)) throw error;
      } finally {
        removeEventListener("offline", end);
      }
      this.told.lost(waitS);
      await this.pause(waitS);
    }
  }

  /** Do not wait any longer. */
  now(): void {
    for (const wake of this.wakers) wake();
  }

  stop(): void {
    this.stopped = true;
    this.now();
  }

  private pause(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        this.wakers.delete(wake);
        removeEventListener("online", wake);
        resolve();
      };
      const timer = setTimeout(wake, 1000 * seconds);
      this.wakers.add(wake);
      addEventListener("online", wake);
    });
  }
}
