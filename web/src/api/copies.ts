/** The same job once more. */

import { post } from "./http";
import { keepNote, noteOf } from "./notes";
import type { Input, Job } from "./types";

const here = (input: Input): boolean =>
  ("csr" in input ? [input.csr.indptr, input.csr.indices, input.csr.values] : [input]).every((one) => "blob" in one);

/** Whether the service still has what the job was given. Small numbers in a request are forgotten, unless asked for. */
export const isKept = (job: Job): boolean => Object.values(job.input_digests).every(here);

export const NOT_KEPT = "Its numbers came in the request and were not kept, so it cannot be run again from here.";

/** Run it as it was asked for, under the names that it has. */
export async function copyJob(job: Job): Promise<Job> {
  const body = {
    solver: job.solver,
    inputs: job.input_digests,
    options: job.options,
    device: job.device,
    time_limit_s: job.time_limit_s,
    keep_inputs: true,
  };
  const made = await post<Job>("/v1/jobs", body);
  const note = await noteOf(job.id, job.noted);
  if (note) await keepNote(made.id, { ...note, saved: Date.now() });
  return made;
}
