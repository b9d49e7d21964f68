/** What the command bar offers, and which of it answers to what is typed. */

export type Group = "Here" | "Pages" | "Samples" | "Settings" | "Jobs" | "Manual";

export interface Command {
  group: Group;
  what: string;
  /** Said smaller, behind the words. */
  under?: string;
  keys?: string;
  run: () => void;
}

const ORDER: Group[] = ["Here", "Pages", "Samples", "Settings", "Jobs", "Manual"];
const MOST = 12,
  MOST_OF_A_GROUP = 6;

/** 0 where a word is missing; more where the words begin with what is typed. */
function score(command: Command, words: string[]): number {
  const what = command.what.toLowerCase(),
    all = `${what} ${command.under?.toLowerCase() ?? ""} ${command.group.toLowerCase()}`;
  if (!words.every((word) => all.includes(word))) return 0;
  return 1 + words.filter((word) => what.includes(word)).length + 4 * Number(what.startsWith(words[0] ?? "\0"));
}

/** The best answers, those of one group together. Nothing typed: what can be done here, and where else to go. */
export function matching(commands: Command[], typed: string): Command[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const open = words.length ? commands : commands.filter((one) => !["Manual", "Settings"].includes(one.group));
  const scored = open
    .map((command, at) => ({ command, at, points: score(command, words) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points || a.at - b.at);
  const best: typeof scored = [];
  for (const one of scored)
    if (best.filter(({ command }) => command.group === one.command.group).length < MOST_OF_A_GROUP) best.push(one);
  const kept = words.length ? best.slice(0, MOST) : best;
  const first = (group: Group) =>
    Math.max(0, ...kept.filter((one) => one.command.group === group).map((o) => o.points));
  const groups = words.length ? [...ORDER].sort((a, b) => first(b) - first(a)) : ORDER;
  return groups.flatMap((group) => kept.filter(({ command }) => command.group === group).map((one) => one.command));
}
