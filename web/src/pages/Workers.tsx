import { useEffect, useState } from "preact/hooks";
import { get, words } from "../api/http";
import { noteOf } from "../api/notes";
import type { Job, Worker } from "../api/types";
import { Bones, Notice } from "../parts/forms";
import { workers } from "../shell/service";
import { bytes, clock, plural, sizeWords } from "../words";

const STATES: Record<string, string> = { idle: "free", busy: "busy", warming: "warming up", starting: "warming up" };

function headline(all: Worker[]): string {
  const busy = all.filter((worker) => worker.state === "busy").length;
  if (!all.length) return "There is no worker";
  if (!all.some((worker) => worker.state))
    return `${plural(all.length, "worker")} ${all.length > 1 ? "are" : "is"} there`;
  if (busy) return `${busy} of ${plural(all.length, "worker")} ${busy === 1 ? "is" : "are"} busy`;
  if (all.some((worker) => worker.state !== "idle"))
    return `${plural(all.length, "worker")} ${all.length > 1 ? "are" : "is"} there`;
  return all.length === 1 ? "The worker is free" : all.length === 2 ? "Both workers are free" : "All workers are free";
}

/** What there is to solve on, and what runs there. */
export default function Workers() {
  const [open, setOpen] = useState<{ job: Job; title: string }[] | null>(null);
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const load = async () => {
      try {
        const lists = await Promise.all(
          ["running", "queued"].map((state) => get<{ jobs: Job[] }>(`/v1/jobs?state=${state}&limit=100`)),
        );
        setOpen(
          await Promise.all(
            lists
              .flatMap(({ jobs }) => jobs)
              .map(async (job) => ({ job, title: (await noteOf(job.id, job.noted))?.title ?? job.id.slice(0, 8) })),
          ),
        );
        setWrong("");
      } catch (error) {
        setWrong(words(error));
      }
    };
    void load();
    const timer = setInterval(() => document.visibilityState === "visible" && void load(), 2000);
    return () => clearInterval(timer);
  }, []);
  const all = workers.value;
  if (!all) return wrong ? <Notice kind="bad">{wrong}</Notice> : <Bones />;
  const queued = (open ?? []).filter(({ job }) => job.state === "queued");
  const running = (open ?? []).filter(({ job }) => job.state === "running");
  return (
    <>
      <h1>{headline(all)}</h1>
      <p class="lede">
        {all.length
          ? `${["gpu", "cpu"]
              .map((device) => [device, all.filter((one) => one.device === device).length] as const)
              .filter(([, count]) => count)
              .map(([device, count]) => plural(count, `${device.toUpperCase()} worker`))
              .join(
                ", ",
              )}; ${queued.length ? `${plural(queued.length, "job")} of yours wait${queued.length === 1 ? "s" : ""}` : "none of your jobs waits"}.`
          : "Jobs wait until one is started: allot worker."}
      </p>
      {wrong && <Notice kind="bad">{wrong}</Notice>}
      <ul class="gpus">
        {all.map((worker) => (
          <One key={worker.name} worker={worker} />
        ))}
      </ul>
      {running.length > 0 && (
        <section class="gap8 part">
          <h2>Your jobs that run</h2>
          <table class="data">
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col">Problem</th>
                <th scope="col">On</th>
                <th scope="col" class="right">
                  For
                </th>
              </tr>
            </thead>
            <tbody>
              {running.map(({ job, title }) => (
                <tr key={job.id}>
                  <th scope="row">
                    <a class="link" href={`/jobs/${job.id}`}>
                      {title}
                    </a>
                  </th>
                  <td>{sizeWords(job)}</td>
                  <td>{job.ran_on ?? ""}</td>
                  <td class="right">
                    {job.started_at ? clock((Date.now() - Date.parse(job.started_at)) / 1000) : ""}
                    {job.time_limit_s ? ` of ${clock(job.time_limit_s)}` : ""}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
      {queued.length > 0 && (
        <section class="gap8 part">
          <h2>Your queue</h2>
          <table class="data">
            <thead>
              <tr>
                <th scope="col">Job</th>
                <th scope="col">Problem</th>
                <th scope="col" class="right">
                  Ahead of it
                </th>
              </tr>
            </thead>
            <tbody>
              {queued.map(({ job, title }) => (
                <tr>
                  <th scope="row">
                    <a class="link" href={`/jobs/${job.id}`}>
                      {title}
                    </a>
                  </th>
                  <td>{sizeWords(job)}</td>
                  <td class="right">{job.queue_position ?? ""}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      )}
    </>
  );
}

function One({ worker }: { worker: Worker }) {
  const gpu = worker.gpu;
  const broken = Object.entries(worker.broken ?? {});
  return (
    <li>
      <div>
        <b>{gpu ? gpu.name : "Processor"}</b>
        <p class="note fine">{worker.name}</p>
      </div>
      <div class="gap8">
        {gpu ? (
          <Gpu gpu={gpu} />
        ) : (
          <p class="note small">{worker.host_bytes ? `${bytes(worker.host_bytes)} of memory` : ""}</p>
        )}
        {broken.map(([solver, why]) => (
          <p class="small">
            <span class="strong">{solver} does not run here:</span> {why}
          </p>
        ))}
      </div>
      <div class="small">
        <p class="row">
          {worker.state === "busy" && <i class="dot live" />}
          <span class={worker.state === "busy" ? "strong" : "soft"}>
            {worker.state ? (STATES[worker.state] ?? worker.state) : "Your key does not show what it does"}
          </span>
        </p>
        {(worker.heartbeat_age_s ?? 0) > 5 && (
          <p class="note">not heard of for {Math.round(worker.heartbeat_age_s!)} s</p>
        )}
      </div>
    </li>
  );
}

/** Memory as a bar, and the use of the last hour as one, a minute each. */
function Gpu({ gpu }: { gpu: NonNullable<Worker["gpu"]> }) {
  const used = gpu.bytes_used ?? (gpu.bytes_free === undefined ? undefined : gpu.bytes_total - gpu.bytes_free);
  const minutes = gpu.use_per_minute ?? [];
  if (used === undefined) return <p class="note fine">{bytes(gpu.bytes_total)} of memory</p>;
  return (
    <>
      <Bar
        label={`${Math.round((100 * used) / gpu.bytes_total)}% of the memory is taken`}
        share={used / gpu.bytes_total}
      />
      <p class="note fine">
        {bytes(used)} of {bytes(gpu.bytes_total)} taken
        {gpu.count && gpu.count > 1 ? ` on the first of ${gpu.count}` : ""}
      </p>
      {gpu.utilisation != null && (
        <>
          <svg
            viewBox="0 0 60 16"
            preserveAspectRatio="none"
            role="img"
            aria-label={`Use of the last ${plural(minutes.length, "minute")}, in percent: ${minutes.join(", ") || "none yet"}`}
          >
            <rect class="f-line" width="60" height="16" />
            {minutes.map((percent, at) => (
              <rect
                class="f-accent"
                x={60 - minutes.length + at}
                y={16 - 0.16 * percent}
                width="0.8"
                height={0.16 * percent}
              />
            ))}
          </svg>
          <p class="note fine">{Math.round(gpu.utilisation)}% in use now; above, the last hour</p>
        </>
      )}
    </>
  );
}

function Bar({ label, share }: { label: string; share: number }) {
  return (
    <svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label={label}>
      <rect class="f-line" width="100" height="8" />
      <rect class="f-accent" width={100 * share} height="8" />
    </svg>
  );
}
