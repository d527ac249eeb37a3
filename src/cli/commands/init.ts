/** Sets a repository up: its name, guards for coding agents, and where they find the MCP server. */
import { diffText } from "../../guard/install/diff.ts";
import { install, type Part, planInstall, planRemoval, uninstall } from "../../guard/install/installing.ts";
import { findProgram } from "../../guard/install/program.ts";
import { allowServer, readSettings } from "../../guard/settings.ts";
import type { Call, Command } from "../command.ts";
import { confirmAtTerminal } from "../confirming.ts";
import { guardNames, namesGiven, pathsOf, planned, repositoryHere } from "./guard.ts";

const initCommand: Command = {
  name: "init",
  summary: "sets this repository up: .leasehold.json, guards, MCP entries",
  usage: "[claude|codex|cursor|gemini|git]… [--yes] [--undo]",
  words: [0, guardNames.length],
  about:
    "Shows what would change first, and asks; without a terminal it takes --yes. What is configured already is kept, and " +
    "--undo leaves what was there before. `guard` and `mcp` can be left out with --no-guards and --no-mcp.",
  flags: {
    yes: { short: "y", words: "do it without asking" },
    undo: { words: "take it all out again" },
    name: { sign: "NAME", words: "what the repository is called in names, if not as it is found" },
    "no-guards": { words: "leave the guards out" },
    "no-mcp": { words: "leave the MCP entries out" },
    stdio: { words: "MCP by a program that the tool starts, and not over HTTP" },
    command: { sign: "TEXT", words: "how leasehold is started, if not as it is found" },
  },
  examples: [
    ["leasehold init", "show what it would change, and ask"],
    ["leasehold init claude git --yes", "for these two, without asking"],
    ["leasehold init --undo", "as it was before"],
  ],
  run: async (call) => {
    const { out, environment } = call;
    const isUndo = call.isSet("undo");
    const repository = repositoryHere(call, !isUndo);
    const parts = partsOf(call);
    const changes = planned(() => {
      if (isUndo) return planRemoval(repository, parts, environment);
      const { url } = readSettings(repository.root, environment);
      const { LEASEHOLD_URL } = environment;
      const program = findProgram(repository.root, call.text("command"));
      const name = call.text("name") ?? repository.name;
      return planInstall(repository, parts, {
        program,
        endpoint: call.isSet("stdio") ? { command: "leasehold", args: ["mcp"] } : { url },
        project: { repository: name, ...(LEASEHOLD_URL && { url }) },
      });
    });
    const end = (changed: boolean, words: string): undefined =>
      void out.show({ changed, paths: pathsOf(changes) }, () => words);
    if (changes.length === 0) return end(false, isUndo ? "Leasehold is not set up here." : "All is set up already.");
    if (!out.isJson) out.print(diffText(changes));
    if (!(await mayGoOn(call))) return end(false, "Nothing was changed.");
    await (isUndo ? uninstall : install)(repository, changes, environment);
    // The person who writes an address into the file has chosen it.
    const { LEASEHOLD_URL } = environment;
    if (!isUndo && LEASEHOLD_URL) allowServer(LEASEHOLD_URL, environment);
    end(true, isUndo ? "It is as it was before." : "It is set up; `leasehold guard status` shows how it stands.");
  },
};

function partsOf(call: Call): readonly Part[] {
  const names = namesGiven(call, "nothing to set up");
  const tools = names.filter((name) => name !== "git");
  return [
    { kind: "project" },
    ...(call.isSet("no-guards") ? [] : tools.map((tool): Part => ({ kind: "hooks", tool }))),
    ...(call.isSet("no-guards") || !names.includes("git") ? [] : [{ kind: "git" } as const]),
    ...(call.isSet("no-mcp") ? [] : tools.map((tool): Part => ({ kind: "mcp", tool }))),
  ];
}

async function mayGoOn(call: Call): Promise<boolean> {
  return (
    call.isSet("yes") ||
    (await confirmAtTerminal("Change this?", "nothing was changed: there is no terminal to ask at; give --yes"))
  );
}

export const commands: readonly Command[] = [initCommand];
