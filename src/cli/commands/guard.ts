/** Guards: leases for what coding agents write, through their own hooks and git's. */

import { CannotChange, type Change, readText } from "../../guard/install/changes.ts";
import { diffText } from "../../guard/install/diff.ts";
import { gitHookFiles, gitPlace } from "../../guard/install/git-hooks.ts";
import { hookCommand, hookFiles, ownHooks } from "../../guard/install/hook-entries.ts";
import { install, type Part, planInstall, planRemoval, uninstall } from "../../guard/install/installing.ts";
import { parseConfig } from "../../guard/install/json-text.ts";
import { findProgram, isMachineOnly } from "../../guard/install/program.ts";
import { hasWorktreeHooks, worktreeFile } from "../../guard/install/worktree-entries.ts";
import { guardedTools, moments, toolTitles } from "../../guard/payload.ts";
import { checkoutFolder } from "../../guard/private-files.ts";
import { reachWords, tryServer } from "../../guard/reach.ts";
import { holdingSessions, ownSession, releaseSessions } from "../../guard/releasing.ts";
import { allowServer, readSettings, type Settings, SettingsProblem } from "../../guard/settings.ts";
import { readViolations, type Unseen, type Violation } from "../../guard/violations.ts";
import { NamingProblem } from "../../names/project-file.ts";
import { findRepository, type Repository } from "../../names/repository.ts";
import type { Call, Command } from "../command.ts";
import { confirmAtTerminal } from "../confirming.ts";
import { exitCodes } from "../exit-codes.ts";
import { plain } from "../plain-text.ts";
import { Failure, UsageProblem } from "../problem.ts";
import { shareCommand } from "./guard-share.ts";

export const guardNames = [...guardedTools, "git"] as const;
/** In the user's own settings, and only where it is asked for by name. */
const worktrees = "worktrees";
const usage = "[claude|codex|cursor|gemini|git|worktrees]…";
const dryFlag = { words: "show what would change, and change nothing" };
const programFlag = { sign: "TEXT", words: "how hooks start leasehold, if not as it is found" };

export const commands: readonly Command[] = [
  {
    name: "guard install",
    summary: "guards this repository: what coding agents write is leased first",
    usage: `${usage} [--dry-run]`,
    words: [0, guardNames.length + 1],
    about:
      "Adds hooks to the configuration of Claude Code, Codex, Cursor, Gemini CLI and git, or of those that are named, and " +
      "keeps what is configured there. To do it again changes nothing. `worktrees`, which has to be named, lets Claude Code make its " +
      "worktrees one at a time; it is in .claude/settings.local.json. docs/guards.md tells what they do.",
    flags: { "dry-run": dryFlag, command: programFlag },
    examples: [
      ["leasehold guard install", "for all of them"],
      ["leasehold guard install claude git", "for these two"],
      ["leasehold guard install worktrees", "for sessions that begin in worktrees at once"],
      ["leasehold guard install --dry-run", "what would change?"],
    ],
    run: async (call) => {
      const repository = repositoryHere(call);
      const program = findProgram(repository.root, call.text("command"));
      const { url } = readSettings(repository.root, call.environment);
      const wanted = { program, endpoint: { url }, project: {} };
      const skipped: string[] = [];
      const changes = planned(() => planInstall(repository, partsNamed(call), wanted, noting(skipped)));
      const apply = () => {
        if (isMachineOnly(program("claude"))) {
          call.out.note(
            "the hooks name leasehold by its path on this machine; --command leasehold suits a team that has it installed",
          );
        }
        return install(repository, changes, call.environment);
      };
      return await change(call, changes, "The guards are in.", "The guards are in already.", apply, skipped);
    },
  },
  {
    name: "guard uninstall",
    summary: "takes the guards out, and leaves what was there before",
    usage: `${usage} [--dry-run]`,
    words: [0, guardNames.length + 1],
    flags: { "dry-run": dryFlag },
    examples: [
      ["leasehold guard uninstall", "all of them"],
      ["leasehold guard uninstall git", "only git's hook"],
    ],
    run: async (call) => {
      const repository = repositoryHere(call, false);
      const skipped: string[] = [];
      const changes = planned(() => planRemoval(repository, partsNamed(call, true), call.environment, noting(skipped)));
      const apply = () => uninstall(repository, changes, call.environment);
      return await change(call, changes, "The guards are out.", "There are no guards here.", apply, skipped);
    },
  },
  {
    name: "guard status",
    summary: "shows which guards are in, whether they can work, and what slipped past",
    about:
      "The exit code is 7 where a guard is in and cannot work: an event without its hook, or no server that answers.",
    examples: [["leasehold guard status", "is this repository guarded?"]],
    run: async (call) => {
      const { out } = call;
      const repository = repositoryHere(call);
      const settings = readSettings(repository.root, call.environment);
      const guards = guardsIn(repository);
      const reach = await tryServer(settings);
      const isReached = reach.kind === "works";
      const violations = readViolations(checkoutFolder(repository, call.environment));
      const isGuarded = guards.some(({ state }) => state !== "not installed");
      const isWhole = guards.every(({ state }) => state === "installed" || state === "not installed");
      const ok = !isGuarded || (isReached && isWhole);
      const shown = {
        ok,
        repository: repository.name,
        url: settings.url,
        server_answers: reach.kind !== "silent",
        server_works: isReached,
        guards,
        violations: violations.slice(-20),
      };
      out.show(shown, () =>
        [
          ...guards.map(
            ({ name, state, detail }) => `${name.padEnd(12)}${state}${detail === "" ? "" : `: ${plain(detail)}`}`,
          ),
          `${"server".padEnd(12)}${plain(reachWords(reach, settings.url))}`,
          `${"names".padEnd(12)}FILE:/${repository.name}/…`,
          ...(violations.length === 0 ? [] : [`${violations.length} went past the guards; the last:`]),
          ...violations.slice(-5).map((one) => plain(`  ${one.at} ${one.agent_id} ${pastWords(one)}`)),
        ].join("\n"),
      );
      return ok ? exitCodes.done : exitCodes.notSo;
    },
  },
  shareCommand,
  {
    name: "guard claim",
    summary: "reserves files for the coding agent that runs this, before it works on them",
    usage: "PATH…",
    words: [1, 200],
    about:
      "For agents that are guarded: the guard leases the files when it lets this command run, and denies it where another " +
      "holds one of them. The command itself shows who holds them now; the exit code is 7 if nobody does, as where no guard is.",
    examples: [["leasehold guard claim src/auth.ts src/login/", "said by an agent, before it reads and thinks"]],
    run: async (call) => {
      const client = await call.connect();
      const found: { readonly resource: string; readonly holder: string | null }[] = [];
      for (const word of call.words) {
        const resource = call.resource(word);
        const { leases } = await client.call("list_leases", { resource, limit: 1 });
        found.push({ resource, holder: leases[0]?.agent_id ?? null });
      }
      const { out } = call;
      out.show({ claims: found }, () =>
        found
          .map(({ resource, holder }) =>
            plain(`${resource} ${holder === null ? "is held by nobody" : `is held by ${holder}`}`),
          )
          .join("\n"),
      );
      return found.every(({ holder }) => holder !== null) ? exitCodes.done : exitCodes.notSo;
    },
  },
  {
    name: "guard release",
    summary: "gives back what a coding agent's session holds, such as one that hangs",
    usage: "[SESSION]",
    words: [0, 1],
    about:
      "SESSION is its id, its agent, or how one of them begins. Without it, an agent that runs this releases its own, and a " +
      "person the only session of this machine that holds something; if there are several they are listed, with exit code 2.",
    examples: [
      ["leasehold guard release", "the only session that holds something"],
      ["leasehold guard release claude-4f1c", "the session that begins so"],
    ],
    run: async (call) => {
      const repository = repositoryHere(call);
      const settings = readSettings(repository.root, call.environment);
      const [named = null] = call.words;
      const own = named === null ? ownSession(settings) : null;
      const meant = named ?? own?.agentId ?? (await onlyHolding(settings));
      const released = await releaseSessions(
        settings,
        ({ id, agentId }) => id.startsWith(meant) || agentId.startsWith(meant),
      );
      call.out.show({ released }, () =>
        released === 0 ? `No session that begins with ${plain(meant)} holds anything.` : `${released} released.`,
      );
      return released === 0 ? exitCodes.notSo : exitCodes.done;
    },
  },
  {
    name: "guard allow",
    summary: "lets repositories name this server in .leasehold.json",
    usage: "URL",
    words: [1, 1],
    about:
      "A checked-in .leasehold.json may name any server, which then sees file names, users and hosts, and whose answers " +
      "coding agents read. One that is not on this machine is therefore used only once you have allowed it here, for your " +
      "user. It asks at the terminal, so that an agent cannot do it by mistake; programs set LEASEHOLD_URL instead.",
    examples: [["leasehold guard allow https://leases.example.com", "for all repositories of this user"]],
    run: async (call) => {
      const [url = ""] = call.words;
      const isSure = await confirmAtTerminal(
        `Let repositories send what agents do to ${plain(url)}?`,
        "nothing was changed: there is no terminal to ask at; set LEASEHOLD_URL to use this server",
      );
      if (!isSure) return void call.out.show({ allowed: null }, () => "Nothing was changed.");
      const allowed = planned(() => allowServer(url, call.environment));
      return void call.out.show({ allowed }, () => `${allowed} may be named by repositories.`);
    },
  },
  {
    name: "guard hook",
    summary: "what the installed hooks run; they answer to the tool, not to people",
    usage: "TOOL EVENT",
    about: "TOOL is claude, codex, cursor, gemini or git. What happens comes as JSON on standard input.",
    examples: [["leasehold guard hook claude PreToolUse < payload.json", "what would the guard say?"]],
    run: async ({ words, environment }) => {
      const { main } = await import("../../guard/hook-main.ts");
      return await main(words, { ...environment });
    },
  },
];

async function onlyHolding(settings: Settings): Promise<string> {
  const sessions = await holdingSessions(settings);
  const [only] = sessions;
  if (sessions.length === 1 && only !== undefined) return only.agentId;
  const list = sessions.map(({ agentId, resources }) => `${agentId} (${resources.slice(0, 3).join(", ")})`);
  throw new UsageProblem(
    sessions.length === 0 ? "no session of this machine holds anything" : `which one? ${plain(list.join("; "))}`,
  );
}

function pastWords(one: Violation | Unseen): string {
  if ("unseen" in one) return `ran ${one.tool} unseen: ${one.unseen}`;
  return `wrote ${one.resource}, held by ${one.holder}`;
}

interface Guard {
  readonly name: string;
  readonly state: "installed" | "incomplete" | "unreadable" | "not installed";
  readonly detail: string;
}

function guardsIn(repository: Repository): readonly Guard[] {
  const program = findProgram(repository.root, null);
  const tools = guardedTools.map((tool): Guard => {
    const name = toolTitles[tool];
    const text = readText(repository.root, hookFiles[tool]);
    let found: Readonly<Record<string, string>>;
    try {
      found = ownHooks(tool, parseConfig(hookFiles[tool], text));
    } catch (error) {
      if (!(error instanceof CannotChange)) throw error;
      return { name, state: "unreadable", detail: error.message };
    }
    const events = Object.keys(moments[tool]);
    const missing = events.filter((event) => found[event] === undefined);
    if (missing.length === events.length) return { name, state: "not installed", detail: "" };
    if (missing.length > 0)
      return { name, state: "incomplete", detail: `no hook for ${missing.join(", ")}; install it again` };
    const other = events.find((event) => found[event] !== hookCommand(tool, event, program(tool)));
    return {
      name,
      state: "installed",
      detail: other === undefined ? hookFiles[tool] : `${hookFiles[tool]}, as \`${found[other] ?? ""}\``,
    };
  });
  const place = gitPlace(repository);
  const files = place === null ? [] : gitHookFiles(place);
  const git: Guard =
    files.length > 0
      ? { name: "git", state: "installed", detail: files.join(", ") }
      : { name: "git", state: "not installed", detail: place === null ? "no git here" : "" };
  const own = readText(repository.root, worktreeFile);
  // Few want it, so it is only named where it is in.
  const hasWorktrees = own?.includes(" guard hook ") === true && hasWorktreeHooks(parseConfig(worktreeFile, own));
  const made: Guard = { name: worktrees, state: "installed", detail: worktreeFile };
  return [...tools, git, ...(hasWorktrees ? [made] : [])];
}

export function repositoryHere({ cwd, environment }: Call, usesSettings = true): Repository {
  const found = planned(() => findRepository(cwd));
  if (found === null)
    throw new UsageProblem(`${cwd} is not in a repository; make one with \`git init\`, or write .leasehold.json`);
  if (usesSettings) planned(() => readSettings(found.root, environment));
  return found;
}

/** A file that cannot be changed is named, and the others are changed. */
export function noting(skipped: string[]): (problem: CannotChange) => void {
  return ({ message }) => void skipped.push(message);
}

/** `all`: where none is named, what has to be named counts too. */
function partsNamed(call: Call, all = false): readonly Part[] {
  const words = call.words.filter((word) => word !== worktrees);
  const hasWorktrees = words.length < call.words.length || (all && call.words.length === 0);
  const names =
    words.length === 0 && call.words.length > 0 ? [] : namesGiven({ ...call, words }, "nothing that can be guarded");
  return [
    ...names.map((name): Part => (name === "git" ? { kind: "git" } : { kind: "hooks", tool: name })),
    ...(hasWorktrees ? [{ kind: "worktrees" } as const] : []),
  ];
}

/** All of them where none is named. */
export function namesGiven({ words }: Call, isWrong: string) {
  const wrong = words.find((word) => !guardNames.some((name) => name === word));
  if (wrong !== undefined) throw new UsageProblem(`"${wrong}" is ${isWrong}; give ${guardNames.join(", ")}`);
  return guardNames.filter((name) => words.length === 0 || words.includes(name));
}

/** A fault in a file of the repository is reported to the user. */
export function planned<T>(plan: () => T): T {
  try {
    return plan();
  } catch (error) {
    if (error instanceof CannotChange) throw new Failure(error.message);
    if (error instanceof SettingsProblem || error instanceof NamingProblem) throw new UsageProblem(error.message);
    throw error;
  }
}

async function change(
  call: Call,
  changes: readonly Change[],
  done: string,
  already: string,
  apply: () => Promise<void>,
  skipped: readonly string[] = [],
): Promise<number> {
  const { out } = call;
  const isDry = call.isSet("dry-run");
  if (!isDry && changes.length > 0) await apply();
  const paths = pathsOf(changes);
  if (changes.length === 0 && skipped.length > 0) throw new Failure(skipped.join("; "));
  for (const problem of skipped) out.note(`skipped: ${plain(problem)}`);
  out.show({ changed: !isDry && changes.length > 0, paths, skipped }, () => {
    if (changes.length === 0) return already;
    return isDry ? diffText(changes) : [...paths.map((path) => `  ${plain(path)}`), done].join("\n");
  });
  return exitCodes.done;
}

export function pathsOf(changes: readonly Change[]): readonly string[] {
  return changes.map((one) => (one.kind === "write" ? one.path : one.kind === "move" ? one.to : one.name));
}
