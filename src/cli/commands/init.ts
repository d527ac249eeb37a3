/** Sets a repository up: its name, guards for coding agents, and where they find the MCP server. */
import { readText } from "../../guard/install/changes.ts";
import { findTools } from "../../guard/install/detecting.ts";
import { diffText } from "../../guard/install/diff.ts";
import { gitHookFiles, gitPlace } from "../../guard/install/git-hooks.ts";
import { hookFiles, ownHooks } from "../../guard/install/hook-entries.ts";
import { forgetAll, install, type Part, planInstall, planRemoval, uninstall } from "../../guard/install/installing.ts";
import { parseConfig } from "../../guard/install/json-text.ts";
import { type McpEndpoint, mcpFiles } from "../../guard/install/mcp-entries.ts";
import { findProgram, isMachineOnly, mcpProgram } from "../../guard/install/program.ts";
import { stageConflict } from "../../guard/install/self-check.ts";
import { type GuardedTool, guardedTools, toolTitles } from "../../guard/payload.ts";
import { reachWords, tryServer } from "../../guard/reach.ts";
import { allowServer, readSettings } from "../../guard/settings.ts";
import { findRepository, type Repository } from "../../names/repository.ts";
import { joinAddresses } from "../../trust/addresses.ts";
import { isLoopback } from "../../trust/loopback.ts";
import type { Call, Command } from "../command.ts";
import { confirmAtTerminal } from "../confirming.ts";
import { plain } from "../plain-text.ts";
import { wrap } from "../wrapping.ts";
import { guardNames, namesGiven, noting, pathsOf, planned, repositoryHere } from "./guard.ts";

const initCommand: Command = {
  name: "init",
  summary: "sets this repository up: .leasehold.json, guards, MCP entries",
  usage: "[claude|codex|cursor|gemini|git]… [--diff] [--yes] [--undo]",
  words: [0, guardNames.length],
  about:
    "Finds the coding agents that are there, says in a few lines what it will do, and asks; without a terminal it takes " +
    "--yes. Then it stages a conflict between two sessions and shows what the second one reads. What is configured already " +
    "is kept, and --undo leaves what was there before. Guards and MCP can be left out with --no-guards and --no-mcp.",
  flags: {
    yes: { short: "y", words: "do it without asking" },
    diff: { words: "show every line that changes" },
    undo: { words: "take it all out again" },
    name: { sign: "NAME", words: "what the repository is called in names, if not as it is found" },
    "no-guards": { words: "leave the guards out" },
    "no-mcp": { words: "leave the MCP entries out" },
    "no-check": { words: "do not stage a conflict afterwards" },
    http: { words: "MCP over HTTP, and not by a program that the tool starts" },
    command: { sign: "TEXT", words: "how leasehold is started, if not as it is found" },
  },
  examples: [
    ["leasehold init", "say what it would change, and ask"],
    ["leasehold init --diff", "the same with every line"],
    ["leasehold init claude git --yes", "for these two, without asking"],
    ["leasehold init --undo", "as it was before"],
  ],
  run: async (call) => void (call.isSet("undo") ? await undo(call) : await setUp(call)),
};

async function setUp(call: Call): Promise<void> {
  const { out, environment } = call;
  const repository = repositoryToName(call);
  const settings = planned(() => readSettings(repository.root, environment));
  const found = findTools(repository.root, environment);
  const names =
    call.words.length > 0 ? namesGiven(call, "nothing to set up") : [...found.map(({ tool }) => tool), "git" as const];
  const tools = guardedTools.filter((tool) => names.includes(tool));
  const { LEASEHOLD_URL } = environment;
  const program = findProgram(repository.root, call.text("command"));
  const endpoint: McpEndpoint = call.isSet("http")
    ? { url: settings.url }
    : mcpProgram(repository.root, call.text("command"));
  const skipped: string[] = [];
  const changes = planned(() =>
    planInstall(
      repository,
      partsOf(call, tools, names.includes("git")),
      {
        program,
        endpoint,
        project: {
          repository: call.text("name") ?? repository.name,
          ...(LEASEHOLD_URL && { url: joinAddresses(settings.urls) }),
        },
      },
      noting(skipped),
    ),
  );
  const end = (changed: boolean, lines: readonly string[]): void =>
    out.show({ changed, paths: pathsOf(changes), skipped }, () => lines.map(plain).join("\n"));
  if (changes.length === 0) return end(false, ["All is set up already.", ...skipped.map((one) => `skipped: ${one}`)]);
  if (!out.isJson) {
    out.print(
      call.isSet("diff")
        ? diffText(changes)
        : `${summary(call, repository, tools, pathsOf(changes), skipped).map(plain).join("\n")}\n`,
    );
    if (isMachineOnly(program("claude")))
      out.note(
        "the hooks name leasehold by its path on this machine; --command leasehold suits a team that has it installed",
      );
  }
  if (!(await mayGoOn(call))) return end(false, ["Nothing was changed."]);
  await install(repository, changes, environment);
  // The person who writes an address into the file has chosen it.
  const elsewhere = settings.urls.filter((url) => !isLoopback(new URL(url).hostname));
  for (const url of LEASEHOLD_URL ? elsewhere : []) allowServer(url, environment);
  end(true, ["It is set up.", ...(await checkLines(call, repository, tools))]);
}

/** About eight lines. */
function summary(
  call: Call,
  { root, name }: Repository,
  tools: readonly GuardedTool[],
  paths: readonly string[],
  skipped: readonly string[],
): readonly string[] {
  const found = findTools(root, call.environment);
  const row = (title: string, text: string) => `  ${title.padEnd(10)}${text}`;
  const seen = found.map(({ tool, sign }) => `${toolTitles[tool]} (${sign})`).join(", ");
  const guards = tools.map((tool) => hookFiles[tool]).filter((path) => paths.includes(path));
  const mcp = tools.map((tool) => mcpFiles[tool]).filter((path) => paths.includes(path));
  const git = paths.filter((path) => /pre-commit|lefthook|hooksPath/.test(path));
  return [
    `Leasehold for ${name}: files are FILE:/${name}/…`,
    row("found", seen === "" ? "no coding agent; name one: leasehold init claude" : seen),
    ...(guards.length === 0 ? [] : [row("guards", `${guards.join(", ")}: what they write is leased first`)]),
    ...(mcp.length === 0 ? [] : [row("MCP", `${mcp.join(", ")}: lease tools for the model, as the same agent`)]),
    ...(git.length === 0
      ? []
      : [row("git", `${git.map((path) => path.replace(`${root}/`, "")).join(", ")}: no commit of what others hold`)]),
    ...skipped.map((problem) => row("skipped", problem)),
    row("team", "people without Leasehold work on as before, and read one sentence"),
    row("undo", "leasehold init --undo; every line: leasehold init --diff"),
  ];
}

async function checkLines(
  call: Call,
  repository: Repository,
  tools: readonly GuardedTool[],
): Promise<readonly string[]> {
  const settings = planned(() => readSettings(repository.root, call.environment));
  const reach = await tryServer(settings);
  const server = `server: ${reachWords(reach, settings.url)}`;
  const tool = tools.find((one) => Object.keys(hooksOf(repository, one)).length > 0);
  if (call.isSet("no-check") || call.isSet("no-guards") || tool === undefined) return [server];
  if (reach.kind !== "works") return ["not checked: that takes a server", server];
  const hooks = hooksOf(repository, tool);
  const result = await stageConflict(tool, repository.root, (event) => hooks[event] ?? "", call.environment);
  if (result.kind === "fails") return [`the check FAILED: ${result.why}`, server];
  return [
    "checked: two sessions wanted one file, and the second one read:",
    wrap("  ", result.words, 2),
    server,
    "next: open two coding agents here, and see what they hold with `leasehold top`",
  ];
}

function hooksOf({ root }: Repository, tool: GuardedTool): Readonly<Record<string, string>> {
  try {
    return ownHooks(tool, parseConfig(hookFiles[tool], readText(root, hookFiles[tool])));
  } catch {
    // It was skipped, and named.
    return {};
  }
}

async function undo(call: Call): Promise<void> {
  const { out, environment } = call;
  const repository = repositoryHere(call, false);
  const names = namesGiven(call, "nothing to set up");
  const tools = guardedTools.filter((tool) => names.includes(tool));
  const isWhole = call.words.length === 0 && !call.isSet("no-guards") && !call.isSet("no-mcp");
  const parts = [...partsOf(call, tools, names.includes("git")), ...(isWhole ? [{ kind: "worktrees" } as const] : [])];
  const skipped: string[] = [];
  const changes = planned(() => planRemoval(repository, parts, environment, noting(skipped)));
  const end = (changed: boolean, words: string): void => out.show({ changed, paths: pathsOf(changes) }, () => words);
  if (changes.length === 0) return end(false, "Leasehold is not set up here.");
  if (!out.isJson)
    out.print(
      call.isSet("diff")
        ? diffText(changes)
        : `${pathsOf(changes)
            .map((path) => `  ${plain(path)}`)
            .join("\n")}\n`,
    );
  if (!(await mayGoOn(call))) return end(false, "Nothing was changed.");
  await uninstall(repository, changes, environment);
  const place = gitPlace(repository);
  const isOut = place === null || gitHookFiles(place).length === 0;
  if (isWhole && isOut) forgetAll(repository, environment);
  for (const problem of skipped) out.note(`skipped: ${plain(problem)}`);
  end(true, skipped.length === 0 ? "It is as it was before." : "The rest is as it was before.");
}

/** A folder without git is named by --name. */
function repositoryToName(call: Call): Repository {
  const name = call.text("name");
  const found = planned(() => findRepository(call.cwd));
  if (found !== null || name === null) return repositoryHere(call);
  return { root: call.cwd, name, gitFolder: null };
}

function partsOf(call: Call, tools: readonly GuardedTool[], hasGit: boolean): readonly Part[] {
  return [
    { kind: "project" },
    ...(call.isSet("no-guards") ? [] : tools.map((tool): Part => ({ kind: "hooks", tool }))),
    ...(call.isSet("no-guards") || !hasGit ? [] : [{ kind: "git" } as const]),
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
