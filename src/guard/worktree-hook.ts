/**
 * Claude Code's `WorktreeCreate` and `WorktreeRemove`: a hook there does git's part itself and prints the new folder. So that
 * sessions that begin at once do not meet in git's own files, `GIT:/<repository>` is leased meanwhile.
 */
import { isAbsolute, join, relative, resolve, sep } from "node:path";
import { findRepository } from "../names/repository.ts";
import { connect } from "./control-plane.ts";
import { leaseGit, releaseGit } from "./git-lease.ts";
import type { HookCall } from "./hook-call.ts";
import type { HookResult } from "./hook-main.ts";
import { isRecord, PayloadProblem, readPayload, type WorktreeEvent } from "./payload.ts";
import type { HelperCall } from "./resident/client.ts";
import { openSession } from "./session.ts";
import { readSettings } from "./settings.ts";

/** Where Claude Code itself puts them, below the repository. */
const folder = join(".claude", "worktrees");
/** Files that git ignores and a worktree needs, one pattern a line. */
const includeFile = ".worktreeinclude";
const gitMsMax = 120_000;
const outputBytesMax = 32 * 2 ** 20;

/** What git said when it failed. */
class GitFailed extends Error {}

export async function runWorktreeHook(event: WorktreeEvent, hook: HelperCall): Promise<HookResult> {
  try {
    const { environment, pid } = hook;
    const payload = readPayload(hook.input, "start", hook.cwd);
    const repository = findRepository(payload.home);
    if (repository === null || repository.gitFolder === null)
      throw new GitFailed(`${payload.home} is not in a git repository`);
    const settings = readSettings(repository.root, environment);
    const session = openSession("claude", payload.sessionId, payload.subagent, environment);
    const call: HookCall = { tool: "claude", payload, settings, session, environment, server: connect(settings), pid };
    const git = (...args: readonly string[]) => runGit(args, repository.root, environment);
    const denied = await leaseGit(call, [repository.root]);
    if (denied !== null) return failed(denied);
    try {
      const fields = fieldsOf(hook.input);
      const path =
        event === "WorktreeCreate"
          ? await create(repository.root, fields, git)
          : await take(repository.root, fields, git);
      return { code: 0, stdout: `${path}\n`, stderr: "" };
    } finally {
      await releaseGit(call);
    }
  } catch (error) {
    return failed(error instanceof Error ? error.message : String(error));
  }
}

type Fields = Readonly<Record<string, unknown>>;
type Git = (...args: readonly string[]) => Promise<string>;

async function create(root: string, fields: Fields, git: Git): Promise<string> {
  const given = textOf(fields, ["worktree_path"]);
  const name = textOf(fields, ["name", "worktree_name"]) ?? given?.split(sep).at(-1) ?? null;
  if (name === null || !/^\w[\w./+-]*$/.test(name) || name.includes("..")) {
    throw new PayloadProblem("it gives no name for a worktree that a folder can have (name)");
  }
  const path = given !== null && isAbsolute(given) ? given : join(root, folder, name);
  const branch = `worktree-${name}`;
  const base = textOf(fields, ["base_ref", "base_commit"]);
  if (base?.startsWith("-")) throw new PayloadProblem(`"${base}" is not a commit to begin from`);
  const isKnown = (await git("branch", "--list", branch)) !== "";
  await git("worktree", "add", ...(isKnown ? [path, branch] : ["-b", branch, path, base ?? "HEAD"]));
  await copyIncluded(root, path, git);
  return path;
}

/** Only what lies where worktrees of this repository are made, and is one. */
async function take(root: string, fields: Fields, git: Git): Promise<string> {
  const path = resolve(root, textOf(fields, ["worktree_path", "path"]) ?? "");
  const known = (await git("worktree", "list", "--porcelain"))
    .split("\n")
    .map((line) => line.replace(/^worktree /, ""));
  if (path === root || !known.includes(path)) throw new PayloadProblem(`${path} is not a worktree of this repository`);
  await git("worktree", "remove", "--force", path);
  return path;
}

async function copyIncluded(root: string, path: string, git: Git): Promise<void> {
  const { copyFileSync, existsSync, mkdirSync } = process.getBuiltinModule("node:fs");
  const patterns = join(root, includeFile);
  if (!existsSync(patterns)) return;
  const listed = await git("ls-files", "-z", "--others", "--ignored", `--exclude-from=${patterns}`);
  for (const name of listed.split("\0").filter((one) => one !== "")) {
    const target = join(path, name);
    // Worktrees of others lie in the repository too.
    if (!relative(join(root, folder), join(root, name)).startsWith("..") || existsSync(target)) continue;
    mkdirSync(join(target, ".."), { recursive: true });
    copyFileSync(join(root, name), target);
  }
}

/** As Claude Code would run it: the user asked for the worktree, so the repository's own hooks and filters belong to it. */
function runGit(args: readonly string[], cwd: string, environment: HelperCall["environment"]): Promise<string> {
  const { execFile } = process.getBuiltinModule("node:child_process");
  const options = { cwd, env: environment, timeout: gitMsMax, maxBuffer: outputBytesMax, encoding: "utf8" } as const;
  return new Promise((done, fail) => {
    execFile("git", args, options, (error, stdout, stderr) => {
      if (error === null) done(stdout);
      else fail(new GitFailed(`git ${args[0]} failed: ${stderr.trim() || error.message}`));
    });
  });
}

function fieldsOf(input: string): Fields {
  const read: unknown = JSON.parse(input);
  return isRecord(read) ? read : {};
}

function textOf(fields: Fields, names: readonly string[]): string | null {
  const found = names.map((name) => fields[name]).find((value) => typeof value === "string" && value !== "");
  return typeof found === "string" ? found : null;
}

function failed(words: string): HookResult {
  return { code: 1, stdout: "", stderr: `leasehold: ${words}\n` };
}
