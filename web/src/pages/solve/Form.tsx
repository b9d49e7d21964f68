import { useEffect, useState } from "preact/hooks";
import { keepNote } from "../../api/notes";
import { post } from "../../api/http";
import type { Estimates, Job } from "../../api/types";
import { Notice } from "../../parts/forms";
import { useKeys } from "../../shell/keys";
import { go } from "../../shell/router";
import { workers } from "../../shell/service";
import { bytes, PROBLEMS, seconds } from "../../words";
import { Programs } from "./Programs";
import { obstacle, refusal } from "./obstacle";
import { note, request, todayOf } from "./request";
import { choice, problem, reading, settled, sheets, typed } from "./state";
import { Asks } from "./Asks";
import { More } from "./More";

/** How to solve, in plain words; what it will take; and the button. */
export function Form() {
  const [estimates, setEstimates] = useState<Estimates | null>(null);
  const [refused, setRefused] = useState("");
  const [sending, setSending] = useState(false);
  const blocked = obstacle();
  useEffect(() => {
    setEstimates(null);
    setRefused("");
    if (blocked || reading.value) return;
    const later = setTimeout(
      () => void post<Estimates>("/v1/estimates", request()).then(setEstimates, (error) => setRefused(refusal(error))),
      250,
    );
    return () => clearTimeout(later);
  }, [problem.value, sheets.value, JSON.stringify(choice.value), blocked]);

  const submit = async () => {
    if (blocked || sending) return;
    setSending(true);
    setRefused("");
    try {
      if (!(await settled()) || obstacle()) return setSending(false); // what was typed last counts, if it could be read
      const job = await post<Job>("/v1/jobs", { ...request(), keep_inputs: true }); // its page shows them
      await keepNote(job.id, note());
      go(`/jobs/${job.id}`);
    } catch (error) {
      setRefused(refusal(error));
      setSending(false);
    }
  };
  useKeys(blocked ? {} : { "Ctrl Enter": () => void submit() }, [sending, blocked, sheets.value, choice.value]);
  const action = problem.value === "qap" && !todayOf() ? "Find the best layout" : PROBLEMS[problem.value]!.action;
  return (
    <form class="form" aria-label={action} onSubmit={(event) => (event.preventDefault(), void submit())}>
      <h2 class="flat">{action}</h2>
      <Asks />
      <More />
      <div class="gap8">
        {blocked && sheets.value.length > 0 && <Notice kind="bad">{blocked}</Notice>}
        {refused && <Notice kind="bad">{refused}</Notice>}
        {!blocked && !refused && <Cost estimates={estimates} />}
        <div class="pin">
          <button class="btn go full" disabled={!!blocked || sending || (reading.value && !typed.value)}>
            {sending ? "On its way…" : action}
            <kbd class="wide" aria-hidden="true">
              Ctrl ↵
            </kbd>
          </button>
        </div>
        {!blocked && <Programs />}
      </div>
    </form>
  );
}

function Cost({ estimates }: { estimates: Estimates | null }) {
  if (!estimates) return <p class="note cost-wait">Working out what this takes…</p>;
  if (!estimates.fits) return <Notice kind="bad">{estimates.reason}</Notice>;
  const device = estimates.device ?? "cpu";
  const needs = estimates.estimates[device] ?? Object.values(estimates.estimates)[0];
  if (!needs) return null;
  const there = (workers.value ?? []).filter((worker) => worker.device === device);
  const free = there.some((worker) => worker.state === "idle");
  const where = there.find((worker) => worker.gpu)?.gpu?.name ?? (device === "gpu" ? "a GPU" : "the processor");
  return (
    <div class="cost">
      <b>
        {problem.value === "qap"
          ? seconds(Math.min(needs.seconds, choice.value.limitS))
          : seconds(needs.seconds + needs.certify_seconds)}
      </b>
      <p class="small">
        <span class="strong">
          {free ? "Starts at once" : there.length ? "Waits for a free worker" : "Waits for a worker"}
        </span>
        <br />
        <span class="note">
          on {where}; needs {bytes(device === "gpu" ? needs.device_bytes : needs.host_bytes)}
        </span>
      </p>
    </div>
  );
}
