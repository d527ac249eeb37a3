/** Putting guards and entries into a repository, and taking them out so that it is as it was before. */
import { join } from "node:path";
import { projectFile } from "../../names/project-file.ts";
import type { Repository } from "../../names/repository.ts";
import { stateFolder } from "../../trust/owner-token.ts";
import { homeFile } from "../identity.ts";
import type { GuardedTool } from "../payload.ts";
import {
  checkoutFolder,
  filesIn,
  readPrivate,
  readPrivateJson,
  remove,
  removeEmpty,
  sessionsFolder,
  writePrivate,
} from "../private-files.ts";
import type { Environment } from "../settings.ts";
import { applyChanges, CannotChange, type Change, readText } from "./changes.ts";
import { addGitHook, type GitPlace, gitPlace, removeGitHook } from "./git-hooks.ts";
import { addHooks, hookFiles, removeHooks } from "./hook-entries.ts";
import { formatConfig, type Json, parseConfig, pruned } from "./json-text.ts";
import { addMcp, addTomlMcp, type McpEndpoint, mcpFiles, removeMcp, removeTomlMcp } from "./mcp-entries.ts";
import type { Program } from "./program.ts";
import { addWorktreeHooks, removeWorktreeHooks, worktreeFile } from "./worktree-entries.ts";

export type Part =
  | { readonly kind: "hooks"; readonly tool: GuardedTool }
  | { readonly kind: "mcp"; readonly tool: GuardedTool }
  | { readonly kind: "git" }
  | { readonly kind: "worktrees" }
  | { readonly kind: "project" };

export interface Wanted {
  readonly program: Program;
  readonly endpoint: McpEndpoint;
  /** What `.leasehold.json` is to say, where there is none. */
  readonly project: Json;
}

/** Takes note of a part that cannot be changed, and why; without it, nothing is changed at all. */
export type Skip = (problem: CannotChange) => void;

/** What files were before anything of ours came into them, so that they can be that again, to the byte. */
type Originals = Readonly<Record<string, string | null>>;

export function planInstall(
  repository: Repository,
  parts: readonly Part[],
  wanted: Wanted,
  skip?: Skip,
): readonly Change[] {
  const { program, endpoint, project } = wanted;
  return plan(repository, parts, skip, {
    hooks: (tool, config) => addHooks(tool, config, program(tool)),
    mcp: (tool, config) => addMcp(tool, config, endpoint),
    toml: (text) => addTomlMcp(text, endpoint),
    worktrees: (config) => addWorktreeHooks(config, program("claude")),
    project: (text) => text ?? formatConfig(project, null),
    git: (place) => addGitHook(place, program("git")),
  });
}

export function planRemoval(
  repository: Repository,
  parts: readonly Part[],
  environment: Environment,
  skip?: Skip,
): readonly Change[] {
  const originals = readOriginals(repository, environment);
  return plan(repository, parts, skip, {
    hooks: removeHooks,
    worktrees: removeWorktreeHooks,
    mcp: (_tool, config) => removeMcp(config),
    toml: (text) => (text === null ? null : removeTomlMcp(text)),
    project: (text) => (isAsWritten(text) && Object.hasOwn(originals, projectFile) ? null : text),
    git: removeGitHook,
    finish: (path, text) => asItWas(path, text, originals),
  });
}

/** How each part is changed: put in, or taken out. */
interface Edits {
  readonly hooks: (tool: GuardedTool, config: Json) => Json;
  readonly mcp: (tool: GuardedTool, config: Json) => Json;
  readonly worktrees: (config: Json) => Json;
  readonly toml: (text: string | null) => string | null;
  readonly project: (text: string | null) => string | null;
  readonly git: (place: GitPlace) => readonly Change[];
  readonly finish?: (path: string, text: string | null) => string | null;
}

function plan(repository: Repository, parts: readonly Part[], skip: Skip | undefined, edits: Edits): readonly Change[] {
  /** Several parts may change one file: each sees what the one before it made of it. */
  const texts = new Map<string, { readonly before: string | null; readonly after: string | null }>();
  const git: Change[] = [];
  const edit = (path: string, change: (text: string | null) => string | null): void => {
    const now = readText(repository.root, path);
    const { before, after } = texts.get(path) ?? { before: now, after: now };
    texts.set(path, { before, after: change(after) });
  };
  const editJson = (path: string, change: (config: Json) => Json): void =>
    edit(path, (text) => {
      const config = parseConfig(path, text);
      const edited = change(config);
      return JSON.stringify(edited) === JSON.stringify(config) ? text : formatConfig(edited, text);
    });
  const change = (part: Part): void => {
    switch (part.kind) {
      case "hooks":
        editJson(hookFiles[part.tool], (config) => edits.hooks(part.tool, config));
        break;
      case "mcp":
        if (part.tool === "codex") edit(mcpFiles.codex, edits.toml);
        else editJson(mcpFiles[part.tool], (config) => edits.mcp(part.tool, config));
        break;
      case "worktrees":
        editJson(worktreeFile, edits.worktrees);
        break;
      case "project":
        edit(projectFile, edits.project);
        break;
      case "git": {
        const place = gitPlace(repository);
        if (place !== null) git.push(...edits.git(place));
        break;
      }
    }
  };
  for (const part of parts) {
    try {
      change(part);
    } catch (error) {
      if (skip === undefined || !(error instanceof CannotChange)) throw error;
      skip(error);
    }
  }
  const written = [...texts].flatMap(([path, { before, after }]): readonly Change[] => {
    const text = after === before || edits.finish === undefined ? after : edits.finish(path, after);
    return text === before ? [] : [{ kind: "write", path, before, after: text }];
  });
  return [...written, ...git];
}

/** Does it, and remembers what was there before the first of them. */
export async function install(
  repository: Repository,
  changes: readonly Change[],
  environment: Environment,
): Promise<void> {
  const originals: Record<string, string | null> = { ...readOriginals(repository, environment) };
  for (const change of changes) {
    if (change.kind === "write" && !change.path.startsWith("/") && !Object.hasOwn(originals, change.path)) {
      originals[change.path] = change.before;
    }
  }
  writePrivate(originalsFile(repository, environment), JSON.stringify(originals));
  applyChanges(repository.root, changes);
}

export async function uninstall(
  repository: Repository,
  changes: readonly Change[],
  environment: Environment,
): Promise<void> {
  applyChanges(repository.root, changes);
  const left = Object.entries(readOriginals(repository, environment)).filter(
    ([path, before]) => readText(repository.root, path) !== before,
  );
  const file = originalsFile(repository, environment);
  if (left.length === 0) remove(file);
  else writePrivate(file, JSON.stringify(Object.fromEntries(left)));
}

/** What guards kept for themselves: of this repository's checkouts, and of sessions that were started in it. */
export function forgetAll(repository: Repository, environment: Environment): void {
  const { root, gitFolder } = repository;
  remove(checkoutFolder(repository, environment));
  if (gitFolder !== null) {
    const worktrees = join(gitFolder, "worktrees");
    for (const name of filesIn(worktrees)) remove(join(worktrees, name, "leasehold"));
  }
  const sessions = sessionsFolder(environment);
  for (const name of filesIn(sessions)) {
    const home = readPrivate(join(sessions, name, homeFile)) ?? "";
    if (home === root || home.startsWith(`${root}/`)) remove(join(sessions, name));
  }
  if (filesIn(sessions).length > 0) return;
  // Nothing else of this user is guarded: the helper ends with its socket.
  const state = stateFolder(environment);
  for (const name of ["sessions", "tools", "helper", "folders"]) remove(join(state, name));
  removeEmpty(state);
}

/** If all of ours is out of it and nothing else has changed, its own bytes. A file of which nothing is left goes. */
function asItWas(path: string, text: string | null, originals: Originals): string | null {
  if (text === null) return null;
  const isJson = path.endsWith(".json");
  const saying = (one: string | null): string => {
    if (!isJson) return (one ?? "").trim();
    const { version, ...rest } = parseConfig(path, one);
    return JSON.stringify([pruned(rest) ?? null, path.startsWith(".cursor/") ? null : (version ?? null)]);
  };
  if (Object.hasOwn(originals, path)) {
    const before = originals[path] ?? null;
    if (saying(before) === saying(text)) return before;
  }
  return saying(text) === saying(null) ? null : text;
}

/** With nothing but what `init` writes: more than that is the user's own, and stays. */
function isAsWritten(text: string | null): boolean {
  if (text === null) return true;
  return Object.keys(parseConfig(projectFile, text)).every((field) => field === "repository" || field === "url");
}

function readOriginals(repository: Repository, environment: Environment): Originals {
  return readPrivateJson<Originals>(originalsFile(repository, environment), {}) ?? {};
}

function originalsFile(repository: Repository, environment: Environment): string {
  return join(checkoutFolder(repository, environment), "originals.json");
}
