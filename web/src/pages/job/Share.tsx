import { useEffect, useState } from "preact/hooks";
import { get, post, send, words } from "../../api/http";
import { Notice, Seg, Switch } from "../../parts/forms";
import { Dialog } from "../../shell/Shell";

interface Link {
  id: string;
  inputs: boolean;
  expires_at: string;
}

const DAY_S = 86_400;
const day = (text: string): string =>
  new Date(text).toLocaleDateString("en-GB", { day: "numeric", month: "long", year: "numeric" });

/** A link to this one answer, for people without a key; made on request, and taken back here. */
export function Share({ id }: { id: string }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button class="btn" type="button" onClick={() => setOpen(true)}>
        Share
      </button>
      {open && <Links id={id} close={() => setOpen(false)} />}
    </>
  );
}

function Links({ id, close }: { id: string; close: () => void }) {
  const [links, setLinks] = useState<Link[]>([]);
  const [days, setDays] = useState("7");
  const [inputs, setInputs] = useState(false);
  const [made, setMade] = useState("");
  const [said, setSaid] = useState("");
  const [wrong, setWrong] = useState("");
  const guard = (work: () => Promise<void>) => () => void work().catch((error) => setWrong(words(error)));
  const list = async () => setLinks((await get<{ shares: Link[] }>(`/v1/jobs/${id}/shares`)).shares);
  const make = guard(async () => {
    setWrong("");
    setSaid("");
    const asked = { expires_in_s: Number(days) * DAY_S, inputs };
    const link = await post<Link & { page: string }>(`/v1/jobs/${id}/shares`, asked);
    setMade(location.origin + link.page);
    await list();
  });
  const revoke = (link: Link) =>
    guard(async () => {
      await send(`/v1/jobs/${id}/shares/${link.id}`, { method: "DELETE" });
      setMade("");
      setSaid("The link shows nothing any more.");
      await list();
    });
  const copy = guard(async () => {
    await navigator.clipboard.writeText(made);
    setSaid("Copied.");
  });
  useEffect(guard(list), []);
  return (
    <Dialog label="Share this answer" close={close}>
      <form method="dialog">
        <h2>Share this answer</h2>
        <p class="soft">
          Whoever has the link sees this one answer, without a key. They see none of your other jobs and cannot change
          anything.
        </p>
        <Seg
          name="days"
          legend="How long is it good?"
          full
          value={days}
          options={[
            ["1", "1 day"],
            ["7", "1 week"],
            ["30", "30 days"],
          ]}
          change={setDays}
        />
        <Switch
          label="Show what was given"
          under="A floor plan is drawn from what was given."
          checked={inputs}
          change={setInputs}
        />
        <button class="btn go" type="button" onClick={make}>
          Make a link
        </button>
        {made && (
          <div class="row">
            <input
              class="field"
              readOnly
              value={made}
              aria-label="The link"
              onFocus={(event) => event.currentTarget.select()}
            />
            <button class="btn" type="button" onClick={copy}>
              Copy
            </button>
          </div>
        )}
        {wrong && <Notice kind="bad">{wrong}</Notice>}
        <p class="note small" role="status">
          {said}
        </p>
        {links.length > 0 && (
          <ul class="gap8" aria-label="Links">
            {links.map((link) => (
              <li class="row between small" key={link.id}>
                Good until {day(link.expires_at)}
                {link.inputs ? ", with what was given" : ""}
                <button class="btn small" type="button" onClick={revoke(link)}>
                  Revoke
                </button>
              </li>
            ))}
          </ul>
        )}
        <button class="btn">Close</button>
      </form>
    </Dialog>
  );
}
