import { useState } from "preact/hooks";
import { copyJob, isKept } from "../../api/copies";
import { post, send } from "../../api/http";
import { forgetNote } from "../../api/notes";
import type { Job } from "../../api/types";
import { Icon } from "../../parts/Icon";
import { plural, sizeWords } from "../../words";

/** Why these cannot be compared; "" when they can. */
export function comparable(jobs: Job[]): string {
  if (jobs.length < 2) return "choose two to compare";
  if (jobs.length > 6) return "at most six can be compared";
  if (jobs.some((job) => job.state !== "succeeded")) return "only finished jobs can be compared";
  return new Set(jobs.map(sizeWords)).size > 1 ? "only jobs of one problem can be compared" : "";
}

export function Dock({
  picked,
  compare,
  each,
  clear,
}: {
  picked: Job[];
  compare: () => void;
  each: (work: (job: Job) => Promise<unknown>) => Promise<void>;
  clear: () => void;
}) {
  const [sure, setSure] = useState(false);
  const why = comparable(picked);
  const kept = picked.every(isKept);
  const going = picked.filter((job) => ["queued", "running"].includes(job.state));
  const remove = async (job: Job) => {
    await send(`/v1/jobs/${job.id}`, { method: "DELETE" });
    await forgetNote(job.id);
  };
  return (
    <div class="dock" role="toolbar" aria-label="The chosen jobs">
      <p>
        <b class="strong">{plural(picked.length, "job")}</b> <span class="note">{why}</span>
      </p>
      <button class="btn go" type="button" disabled={!!why} onClick={compare}>
        Compare
        <kbd class="wide" aria-hidden="true">
          C
        </kbd>
      </button>
      <button
        class="btn"
        type="button"
        disabled={!kept}
        title={kept ? undefined : "What was given was not kept"}
        onClick={() => void each(copyJob)}
      >
        Copy
      </button>
      {going.length > 0 && (
        <button
          class="btn"
          type="button"
          onClick={() => void each(async (job) => going.includes(job) && post(`/v1/jobs/${job.id}/cancel`, {}))}
        >
          Stop
        </button>
      )}
      <button
        class="btn"
        type="button"
        onClick={() => (sure ? void each(remove) : setSure(true))}
        onBlur={() => setSure(false)}
      >
        {sure ? "Delete for good" : "Delete"}
      </button>
      <button class="btn plain" type="button" aria-label="Choose none" onClick={clear}>
        <Icon name="cross" />
      </button>
    </div>
  );
}
