import { useEffect, useState } from "preact/hooks";
import { get, Refused, words } from "../api/http";
import { asNote } from "../api/notes";
import type { Matrix } from "../api/npy";
import type { Job, Result } from "../api/types";
import { Bones } from "../parts/forms";
import { Icon } from "../parts/Icon";
import { maximises, seconds } from "../words";
import { Answer } from "./job/Answer";
import { CertificateLines } from "./job/Certificate";
import { NOTHING } from "./job/history";
import type { Live } from "./job/live";
import { Picture } from "./job/Picture";
import { Proof } from "./job/Proof";
import { tell } from "./job/told";

interface Shown {
  job: Partial<Job>;
  result: Result;
  note: unknown;
  inputs: Record<string, unknown> | null;
  expires_at: string;
}

const none = (): void => undefined;

/** One answer, shown to whoever has its link. The link's secret stands behind the #, and goes as a header. */
export default function Shared() {
  const [live, setLive] = useState<Live | null>(null);
  const [until, setUntil] = useState("");
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    const load = async () => {
      setWrong("");
      setLive(null);
      try {
        const secret = location.hash.slice(1);
        if (!/^[\w-]{1,100}$/.test(secret)) throw new Refused(404, "A part of the link is missing.");
        const shown = await get<Shown>("/v1/shared", { headers: { "Allot-Share": secret } });
        setUntil(shown.expires_at);
        setLive(liveOf(shown));
      } catch (error) {
        setWrong(words(error));
      }
    };
    void load();
    addEventListener("hashchange", load);
    return () => removeEventListener("hashchange", load);
  }, []);
  if (wrong)
    return (
      <>
        <h1>This link shows nothing</h1>
        <p class="lede">{wrong} It may have expired, or been taken back. Ask whoever sent it for another.</p>
      </>
    );
  if (!live) return <Bones />;
  const told = tell(live);
  const job = live.job!;
  const total = Object.values(job.timings_ms).length ? (job.timings_ms.total ?? 0) / 1000 : 0;
  return (
    <>
      <p class="crumb">
        <span class="state">
          <Icon name="lock" />
          Shared with you
        </span>
        {live.note?.title && <span>{live.note.title}</span>}
        <span class="wide">until {new Date(until).toLocaleDateString("en-GB", { day: "numeric", month: "long" })}</span>
      </p>
      <div class="say">
        <div>
          <h1>{told.headline}</h1>
          <p class="lede">{told.lede}</p>
        </div>
        {total > 0 && (
          <p class="clock">
            <b>{seconds(total)}</b>
            in all
          </p>
        )}
      </div>
      <div class="side shared">
        <div class="gap32">
          <Picture
            live={live}
            fixed={new Set(Object.keys((job.options.fixed as object) ?? {}).map(Number))}
            toggle={none}
          />
          <Answer live={live} told={told} excluded={new Set()} exclude={none} />
        </div>
        <aside class="gap32">
          <Proof live={live} told={told} now={0} />
          <CertificateLines live={live} told={told} />
        </aside>
      </div>
    </>
  );
}

function liveOf({ job, result, note, inputs }: Shown): Live {
  const forbidden = maximises(job as Job) ? -Infinity : Infinity;
  const whole: Job = {
    ...(job as Job),
    attempt: 1,
    queue_position: null,
    progress: null,
    error: null,
    device: result.device,
    ran_on: null,
    input_digests: {},
  };
  return {
    job: whole,
    result,
    note: asNote(note),
    ...NOTHING,
    inputs: Object.fromEntries(Object.entries(inputs ?? {}).map(([name, value]) => [name, matrixOf(value, forbidden)])),
    sparse: null,
    lostUntil: null,
    wrong: "",
    expired: false,
    again: none,
    shared: true,
  };
}

/** Nested lists as the pages read arrays; null is a pair that is not allowed. */
function matrixOf(value: unknown, forbidden: number): Matrix | null {
  if (!Array.isArray(value)) return null;
  const shape: number[] = [];
  for (let at: unknown = value; Array.isArray(at); at = at[0]) shape.push(at.length);
  const flat = (value.flat(Infinity) as (number | null)[]).map((one) => one ?? forbidden);
  return { shape, values: Float64Array.from(flat), exact: null };
}
