/** Every request goes through here: the key is a header, never a part of an address. */

import { signal } from "@preact/signals";

const KEY = "allot.key";

export const apiKey = signal(sessionStorage.getItem(KEY) ?? "");
/** True while the service has refused the key (or its absence) and a person has not yet typed another. */
export const keyWanted = signal(false);

let dismissed = false;

/** A person has closed the question for a key: it is not asked again by itself. */
export function dismissKey(): void {
  dismissed = true;
  keyWanted.value = false;
}

export function useKey(secret: string): void {
  apiKey.value = secret;
  if (secret) sessionStorage.setItem(KEY, secret);
  else sessionStorage.removeItem(KEY);
  dismissed = false;
  keyWanted.value = false;
}

/** An answer that says what is wrong: the service's own words. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly detail: string,
    readonly errors: { field: string; message: string }[] = [],
  ) {
    super(detail);
  }
}

/** No answer at all: the service is down or the line is. */
export class Unreachable extends Error {}

export async function send(path: string, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (apiKey.value) headers.set("Authorization", `Bearer ${apiKey.value}`);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, headers });
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Unreachable("The service does not answer.");
  }
  if (answer.status === 401 && !dismissed) keyWanted.value = true;
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function refusal(answer: Response): Promise<Refused> {
  try {
    const told = await answer.json();
    return new Refused(answer.status, told.detail ?? answer.statusText, told.errors ?? []);
  } catch {
    return new Refused(answer.status, answer.statusText || `The service answered ${answer.status}.`);
  }
}

/** What an answer holds. A line that breaks while it comes is as if there had been no answer. */
export async function whole<T>(answer: Response, read: (answer: Response) => Promise<T>): Promise<T> {
  try {
    return await read(answer);
  } catch (error) {
    if ((error as Error).name === "AbortError") throw error;
    throw new Unreachable("The answer broke off.");
  }
}

export async function get<T>(path: string, init: RequestInit = {}): Promise<T> {
  return whole(await send(path, init), (answer) => answer.json() as Promise<T>);
}

export async function post<T>(path: string, body: unknown, headers: Record<string, string> = {}): Promise<T> {
  const init = {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify(body),
  };
  return (await send(path, init)).json() as Promise<T>;
}

/** What to show a person of anything that was thrown. */
export function words(error: unknown): string {
  return error instanceof Refused || error instanceof Unreachable
    ? error.message.charAt(0).toUpperCase() + error.message.slice(1)
    : `Something broke here: ${String(error)}`;
}
