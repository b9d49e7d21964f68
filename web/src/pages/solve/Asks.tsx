import { Question, Switch } from "../../parts/forms";
import { Icon } from "../../parts/Icon";
import { measure, todayOf } from "./request";
import { type Choice, choice, problem, readAgain, sheetFor } from "./state";

/** A question with a few answers: the words, what is chosen now, and what an answer changes. */
interface Asked {
  name: string;
  asks: string;
  options: [string, string][];
  chosen: () => unknown;
  choose: (value: string) => void;
  under?: () => string;
  /** Whether it is a question here; left out: always. */
  when?: () => boolean;
}

const LIMIT: Asked = {
  name: "limit",
  asks: "How long may it look?",
  options: [
    ["10", "10 s"],
    ["60", "1 min"],
    ["600", "10 min"],
    ["3600", "1 hour"],
  ],
  chosen: () => choice.value.limitS,
  choose: (value) => change({ limitS: Number(value) }),
  under: () =>
    problem.value === "qap"
      ? "A good layout is usually there within a second. The rest of the time proves how good it is, and it ends early once that is proved."
      : "It ends as soon as the best is proved, most often within a second.",
};

const BEST: Asked = {
  name: "maximize",
  asks: "Which is best?",
  options: [
    ["false", "Smallest sum"],
    ["true", "Largest sum"],
  ],
  chosen: () => choice.value.maximize,
  choose: (value) => (change({ maximize: value === "true" }), void readAgain()),
};

const SPREAD: Asked = {
  name: "spread",
  asks: "How sharp is the plan?",
  options: [
    ["0.01", "Sharp"],
    ["0.05", "Medium"],
    ["0.3", "Soft"],
  ],
  chosen: () => choice.value.spread,
  choose: (value) => change({ spread: Number(value) }),
  under: () => "Sharp sends each amount to few places and takes longer; soft spreads it out.",
};

const LOSS: Asked = {
  name: "loss",
  asks: "May amounts appear or vanish?",
  options: [
    ["null", "No"],
    ["1", "A little"],
    ["0.1", "Freely"],
  ],
  chosen: () => choice.value.loss,
  choose: (value) => change({ loss: value === "null" ? null : Number(value) }),
  under: () =>
    choice.value.loss === null
      ? "Both sides must then add up to the same."
      : "Where moving costs more than losing, an amount is lost.",
};

const METRIC: Asked = {
  name: "metric",
  asks: "How far apart are two points?",
  options: [
    ["euclidean", "Straight line"],
    ["cityblock", "Along the axes"],
    ["sqeuclidean", "Squared"],
  ],
  chosen: () => choice.value.metric,
  choose: (value) => change({ metric: value }),
  under: () => "Within each space; nothing is measured between the two.",
  when: () => !!(sheetFor("x") || sheetFor("y")),
};

const ASKED: Record<string, Asked[]> = {
  lap: [LIMIT, BEST],
  auction: [LIMIT],
  uot: [LIMIT, SPREAD, LOSS],
  qap: [LIMIT],
  barycenter: [LIMIT],
  gromov: [{ ...LIMIT, under: () => "It ends as soon as no step makes it better, most often within seconds." }, METRIC],
};

/** Everything that is asked about a problem, in plain words, each with an answer to begin with. */
export function Asks() {
  const today = problem.value === "qap" ? todayOf() : null;
  return (
    <>
      {ASKED[problem.value]!.filter(({ when }) => when?.() ?? true).map((one) => (
        <Question
          key={one.name}
          name={one.name}
          asks={one.asks}
          value={String(one.chosen())}
          options={one.options}
          change={one.choose}
          under={one.under?.()}
        />
      ))}
      {problem.value === "auction" && <Free />}
      {today && <Layout today={today} />}
    </>
  );
}

function Free() {
  const reject = sheetFor("reject");
  return reject ? (
    <p class="soft small">
      A row stays free where that is worth more: <b class="strong">{reject.name}</b> says how much.
    </p>
  ) : (
    <Switch
      label="Rows may stay free"
      under="Else every row must get a column, and there may be no such answer."
      checked={choice.value.mayStayFree}
      change={(on) => change({ mayStayFree: on })}
    />
  );
}

function Layout({ today }: { today: number[] }) {
  const names = sheetFor("flow")?.row_names ?? today.map((_, at) => `${at + 1}`);
  const rooms = sheetFor("distance")?.row_names ?? today.map((_, at) => `${at + 1}`);
  const { stay, beginToday, moveCost } = choice.value;
  const { unit, measure: what } = measure();
  return (
    <>
      <fieldset>
        <legend>Which departments must stay?</legend>
        <div class="chips">
          {stay.map((at) => (
            <span class="chip" key={at}>
              <Icon name="lock" />
              {names[at]}, {rooms[today[at]!]}
              <button
                type="button"
                aria-label={`Let ${names[at]} move`}
                onClick={() => change({ stay: stay.filter((one) => one !== at) })}
              >
                <Icon name="cross" />
              </button>
            </span>
          ))}
          <select
            class="chip add"
            aria-label="Add a department that must stay"
            value=""
            onChange={(event) => (
              change({ stay: [...stay, Number(event.currentTarget.value)] }),
              (event.currentTarget.value = "")
            )}
          >
            <option value="">+ Add</option>
            {names.map((name, at) =>
              stay.includes(at) ? null : (
                <option value={at}>
                  {name}, {rooms[today[at]!]}
                </option>
              ),
            )}
          </select>
        </div>
      </fieldset>
      <Switch
        label="Begin with today’s layout"
        under="Then nothing can come out worse than today."
        checked={beginToday}
        change={(on) => change({ beginToday: on })}
      />
      <div class="gap8">
        <Switch
          label="Count the trouble of a move"
          under="A department moves only if that saves enough."
          checked={moveCost !== null}
          change={(on) => change({ moveCost: on ? 1 : null })}
        />
        {moveCost !== null && (
          <label class="row small">
            A move must save at least{" "}
            <input
              class="field"
              type="number"
              min="0"
              step="any"
              size={6}
              value={moveCost}
              onInput={(event) => change({ moveCost: Math.max(0, Number(event.currentTarget.value) || 0) })}
            />{" "}
            {unit || what}
          </label>
        )}
      </div>
    </>
  );
}

export const change = (part: Partial<Choice>): void => void (choice.value = { ...choice.value, ...part });
