import { describe, expect, it } from "vitest";
import { type Command, matching } from "../src/shell/commands";

const command = (group: Command["group"], what: string, under = ""): Command => ({ group, what, under, run: () => {} });
const ALL = [
  command("Here", "Stop and keep the best"),
  command("Pages", "Solve"),
  command("Pages", "Compare"),
  command("Samples", "Taxi dispatch", "Assign: 48 riders, 56 taxis"),
  command("Settings", "Dark theme"),
  command("Jobs", "Taxis on Monday", "Assign, 48 × 56"),
  ...Array.from({ length: 30 }, (_, at) => command("Manual", `Heading ${at}`, "Solve")),
];

describe("the command bar", () => {
  it("offers what can be done here first, and no settings, while nothing is typed", () => {
    const shown = matching(ALL, " ");
    expect(shown[0]!.what).toBe("Stop and keep the best");
    expect(shown.map((one) => one.group)).not.toContain("Settings");
    expect(shown.map((one) => one.group)).not.toContain("Manual");
  });
  it("wants every word, wherever it stands", () => {
    expect(matching(ALL, "assign tax").map((one) => one.what)).toEqual(["Taxi dispatch", "Taxis on Monday"]);
    expect(matching(ALL, "taxi nowhere")).toEqual([]);
  });
  it("puts what begins with the words before what only has them", () => {
    expect(matching(ALL, "solve")[0]!.what).toBe("Solve");
    expect(matching(ALL, "dark").map((one) => one.what)).toEqual(["Dark theme"]);
  });
  it("lets no group push the others out", () => {
    expect(matching(ALL, "s").filter((one) => one.group === "Manual").length).toBeLessThanOrEqual(6);
  });
  it("keeps the lines of a group together", () => {
    const groups = matching(ALL, "s").map((one) => one.group);
    expect(groups.filter((group, at) => group !== groups[at - 1]).length).toBe(new Set(groups).size);
  });
});
