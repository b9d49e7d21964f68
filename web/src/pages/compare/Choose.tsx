import { useEffect, useState } from "preact/hooks";
import { get, words } from "../../api/http";
import { type Note, noteOf } from "../../api/notes";
import type { Job } from "../../api/types";
import { Bones, Notice } from "../../parts/forms";
import { go } from "../../shell/router";
import { plural, sizeWords } from "../../words";

export function Choose({ chosen }: { chosen: string[] }) {
  const [jobs, setJobs] = useState<{ job: Job; note: Note | null }[] | null>(null);
  const [picked, setPicked] = useState(new Set(chosen));
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const load = async () => {
      const { jobs: found } = await get<{ jobs: Job[] }>("/v1/jobs?limit=100&state=succeeded");
      setJobs(await Promise.all(found.map(async (job) => ({ job, note: await noteOf(job.id, job.noted) }))));
    };
    load().catch((error) => setWrong(words(error)));
  }, []);
  const groups = new Map<string, { job: Job; note: Note | null }[]>();
  for (const one of jobs ?? []) groups.set(sizeWords(one.job), [...(groups.get(sizeWords(one.job)) ?? []), one]);
  const several = [...groups].filter(([, list]) => list.length > 1);
  const first = jobs?.find(({ job }) => picked.has(job.id));
  return (
    <>
      <h1>Compare</h1>
      <p class="lede">Choose two to six finished jobs of one problem.</p>
      {wrong && <Notice kind="bad">{wrong}</Notice>}
      {!jobs && !wrong && <Bones />}
      {jobs && !several.length && (
        <div class="drop">
          <h2>Nothing to compare yet</h2>
          <p class="note">Solve one problem twice: with other departments that must stay, or with moves counted.</p>
          <div class="row">
            <a class="btn go" href="/solve">
              Solve something
            </a>
          </div>
        </div>
      )}
      {several.map(([size, list]) => (
        <fieldset class="gap8 choices" key={size}>
          <legend class="strong">{size}</legend>
          <ul>
            {list.map(({ job, note }) => (
              <li>
                <label class="row pickable">
                  <input
                    class="check"
                    type="checkbox"
                    checked={picked.has(job.id)}
                    disabled={!!first && sizeWords(first.job) !== size}
                    onChange={() =>
                      setPicked(
                        new Set(picked.has(job.id) ? [...picked].filter((id) => id !== job.id) : [...picked, job.id]),
                      )
                    }
                  />
                  {note?.title || job.id.slice(0, 8)}{" "}
                  <span class="note small">
                    {new Date(job.created_at).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}
                  </span>
                </label>
              </li>
            ))}
          </ul>
        </fieldset>
      ))}
      {several.length > 0 && (
        <p>
          <button
            class="btn go"
            type="button"
            disabled={picked.size < 2 || picked.size > 6}
            onClick={() => go(`/compare?jobs=${[...picked].join(",")}`)}
          >
            Compare {picked.size > 1 ? plural(picked.size, "job") : ""}
          </button>
        </p>
      )}
    </>
  );
}
