/** The entries that each coding agent's configuration gets, and how they are put in and taken out. */
import { type GuardedTool, isRecord, type Moment, moments } from "../payload.ts";
import { CannotChange } from "./changes.ts";
import { type Json, withField } from "./json-text.ts";
import { isThereWords } from "./program.ts";

export const hookFiles: Readonly<Record<GuardedTool, string>> = {
  claude: ".claude/settings.json",
  codex: ".codex/hooks.json",
  cursor: ".cursor/hooks.json",
  gemini: ".gemini/settings.json",
};

/** More than a hook takes at the very most; a tool that gives up on its hook goes on without it. */
const timeoutSeconds = 45;
const writing = "(write|edit|create|move|delete|rename|replace).*";
const mcpWriters = `mcp__.*__${writing}`;
/** Leasehold's own: what they grant is the session's. */
const own = "(acquire_leases|await_request)";

/** The tools of each agent that a guard looks at: all of them before they run, those that write afterwards too. */
const matchers: Readonly<Record<GuardedTool, { readonly reads: string; readonly writes: string }>> = {
  claude: { reads: "Read", writes: `Edit|MultiEdit|Write|NotebookEdit|Bash|${mcpWriters}|mcp__leasehold__${own}` },
  codex: { reads: "", writes: `Bash|apply_patch|Edit|Write|${mcpWriters}|mcp__leasehold__${own}` },
  cursor: {
    reads: "Read",
    writes: `Write|StrReplace|Edit|EditNotebook|Delete|ApplyPatch|Shell|MCP:${writing}|MCP:${own}`,
  },
  gemini: {
    reads: "read_file|read_many_files",
    writes: `write_file|replace|edit|run_shell_command|mcp_.*_${writing}|mcp_leasehold_${own}`,
  },
};

/** `program` is how the command line is started in this tool's hooks. */
export function addHooks(tool: GuardedTool, config: Json, program: string): Json {
  let hooks = hooksIn(tool, config);
  for (const [event, moment] of Object.entries(moments[tool])) {
    const entries = entriesFor(tool, event, moment, program);
    const list = listIn(tool, hooks, event);
    const own = list.findIndex((one) => isOwn(tool, one));
    const others = list.filter((one) => !isOwn(tool, one));
    const before = own === -1 ? others.length : list.slice(0, own).filter((one) => !isOwn(tool, one)).length;
    hooks = withField(hooks, event, [...others.slice(0, before), ...entries, ...others.slice(before)]);
  }
  const { version } = config;
  const versioned = tool === "cursor" && version === undefined ? { version: 1, ...config } : config;
  return withField(versioned, "hooks", hooks);
}

export function removeHooks(tool: GuardedTool, config: Json): Json {
  const { hooks: found } = config;
  if (found === undefined) return config;
  let hooks = hooksIn(tool, config);
  for (const event of Object.keys(hooks)) {
    const value = hooks[event];
    if (!Array.isArray(value)) continue;
    const kept = listIn(tool, hooks, event).filter((one) => !isOwn(tool, one));
    if (kept.length < value.length) hooks = withField(hooks, event, kept.length === 0 ? undefined : kept);
  }
  if (hooks === found) return config;
  return withField(config, "hooks", Object.keys(hooks).length === 0 ? undefined : hooks);
}

/** The commands of ours that are there, by event: of several the one before a write. */
export function ownHooks(tool: GuardedTool, { hooks: found }: Json): Readonly<Record<string, string>> {
  const hooks = isRecord(found) ? found : {};
  return Object.fromEntries(
    Object.entries(hooks).flatMap(([event, list]) => {
      const own = Array.isArray(list) ? list.find((one) => isOwn(tool, one)) : undefined;
      return own === undefined ? [] : [[event, commandsIn(own)[0] ?? ""]];
    }),
  );
}

/**
 * People without Leasehold work on, and read one sentence when a session starts. Where it is there, a hook that cannot
 * answer has not allowed anything: before a write that is a no. A read is never blocked.
 */
export function hookCommand(tool: GuardedTool, event: string, program: string, isRead = false): string {
  const moment = moments[tool][event];
  const without = moment === "start" ? `{ echo '${missingAnswer(tool)}'; exit 0; }` : "exit 0";
  const command = `${isThereWords(program)} || ${without}; ${program} guard hook ${tool} ${event}`;
  if (moment !== "before") return command;
  return isRead ? `${command} || exit 0` : `${command} || exit 2`;
}

const missing =
  "This repository is guarded by Leasehold, which is not installed here: other agents are not kept from the files you change, nor you from theirs.";

function missingAnswer(tool: GuardedTool): string {
  return JSON.stringify(tool === "cursor" ? { user_message: missing } : { systemMessage: missing });
}

function entriesFor(tool: GuardedTool, event: string, moment: Moment, program: string): readonly Json[] {
  const { reads, writes } = matchers[tool];
  const write = entryOf(tool, moment, hookCommand(tool, event, program), matched(moment, writes));
  if (moment !== "before" || reads === "") return [write];
  return [write, entryOf(tool, "after", hookCommand(tool, event, program, true), { matcher: reads })];
}

function matched(moment: Moment, writes: string): Json {
  return moment === "before" || moment === "after" ? { matcher: writes } : {};
}

function entryOf(tool: GuardedTool, moment: Moment, command: string, matcher: Json): Json {
  switch (tool) {
    case "cursor":
      return { command, ...matcher, timeout: timeoutSeconds, ...(moment === "before" && { failClosed: true }) };
    case "gemini":
      return { ...matcher, hooks: [{ name: "leasehold", type: "command", command, timeout: timeoutSeconds * 1_000 }] };
    case "claude":
    case "codex":
      return { ...matcher, hooks: [{ type: "command", command, timeout: timeoutSeconds }] };
  }
}

function isOwn(tool: GuardedTool, entry: unknown): boolean {
  return commandsIn(entry).some((command) => command.includes(` guard hook ${tool} `));
}

function commandsIn(entry: unknown): readonly string[] {
  if (!isRecord(entry)) return [];
  const { command, hooks } = entry;
  if (typeof command === "string") return [command];
  return Array.isArray(hooks) ? hooks.flatMap(commandsIn) : [];
}

function hooksIn(tool: GuardedTool, { hooks }: Json): Json {
  if (hooks === undefined) return {};
  if (isRecord(hooks)) return hooks;
  throw new CannotChange(`"hooks" in ${hookFiles[tool]} is not an object; fix it first`);
}

function listIn(tool: GuardedTool, hooks: Json, event: string): readonly unknown[] {
  const list = hooks[event];
  if (list === undefined) return [];
  if (Array.isArray(list)) return list;
  throw new CannotChange(`"hooks.${event}" in ${hookFiles[tool]} is not a list; fix it first`);
}
