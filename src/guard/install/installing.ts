/** Putting guards and entries into a repository, and taking them out so that it is as it was before. */
import { join } from "node:path";
import type { Repository } from "../../names/repository.ts";
import { projectFile } from "../../names/repository.ts";
import type { GuardedTool } from "../payload.ts";
import { checkoutFolder } from "../places.ts";
import { readPrivateJson, remove, writePrivate } from "../private-files.ts";
import type { Environment } from "../settings.ts";
import { applyChanges, type Change, readText } from "./changes.ts";
import { addGitHook, gitPlace, removeGitHook } from "./git-hooks.ts";
import { addHooks, hookFiles, removeHooks } from "./hook-entries.ts";
import { formatConfig, type Json, parseConfig, pruned } from "./json-text.ts";
import { addMcp, addTomlMcp, type McpEndpoint, mcpFiles, removeMcp, removeTomlMcp } from "./mcp-entries.ts";
import type { Program } from "./program.ts";

export type Part =
  | { readonly kind: "hooks"; readonly tool: GuardedTool }
  | { readonly kind: "mcp"; readonly tool: GuardedTool }
  | { readonly kind: "git" }
  | { readonly kind: "project" };

export interface Wanted {
  readonly program: Program;
  readonly endpoint: McpEndpoint;
  /** What `.leasehold.json` is to say, where there is none. */
  readonly project: Json;
}

/** What files were before anything of ours came into them, so that they can be that again, to the byte. */
type Originals = Readonly<Record<string, string | null>>;

export function planInstall(repository: Repository, parts: readonly Part[], wanted: Wanted): readonly Change[] {
  const { root } = repository;
  const texts = new Texts(root);
  const git: Change[] = [];
  for (const part of parts) {
    switch (part.kind) {
      case "hooks":
        texts.editJson(hookFiles[part.tool], (config) => addHooks(part.tool, config, wanted.program(part.tool)));
        break;
      case "mcp":
        if (part.tool === "codex") texts.edit(mcpFiles.codex, (text) => addTomlMcp(text, wanted.endpoint));
        else texts.editJson(mcpFiles[part.tool], (config) => addMcp(part.tool, config, wanted.endpoint));
        break;
      case "project":
        texts.edit(projectFile, (text) => text ?? formatConfig(wanted.project, null));
        break;
      case "git": {
        const place = gitPlace(repository);
        if (place !== null) git.push(...addGitHook(place, wanted.program("git")));
        break;
      }
    }
  }
  return [...texts.changes(), ...git];
}

export function planRemoval(
  repository: Repository,
  parts: readonly Part[],
  environment: Environment,
): readonly Change[] {
  const { root } = repository;
  const texts = new Texts(root);
  const originals = readOriginals(repository, environment);
  const git: Change[] = [];
  for (const part of parts) {
    switch (part.kind) {
      case "hooks":
        texts.editJson(hookFiles[part.tool], (config) => removeHooks(part.tool, config));
        break;
      case "mcp":
        if (part.tool === "codex") texts.edit(mcpFiles.codex, (text) => (text === null ? null : removeTomlMcp(text)));
        else texts.editJson(mcpFiles[part.tool], removeMcp);
        break;
      case "project":
        texts.edit(projectFile, (text) => (isAsWritten(text) && Object.hasOwn(originals, projectFile) ? null : text));
        break;
      case "git": {
        const place = gitPlace(repository);
        if (place !== null) git.push(...removeGitHook(place));
        break;
      }
    }
  }
  return [...texts.changes((path, text) => asItWas(path, text, originals)), ...git];
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
  await applyChanges(repository.root, changes);
}

export async function uninstall(
  repository: Repository,
  changes: readonly Change[],
  environment: Environment,
): Promise<void> {
  await applyChanges(repository.root, changes);
  const left = Object.entries(readOriginals(repository, environment)).filter(
    ([path, before]) => readText(repository.root, path) !== before,
  );
  const file = originalsFile(repository, environment);
  if (left.length === 0) remove(file);
  else writePrivate(file, JSON.stringify(Object.fromEntries(left)));
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

/** Several parts may change one file: each sees what the one before it made of it. */
class Texts {
  readonly #root: string;
  readonly #texts = new Map<string, { readonly before: string | null; after: string | null }>();

  constructor(root: string) {
    this.#root = root;
  }

  edit(path: string, edit: (text: string | null) => string | null): void {
    const known = this.#texts.get(path);
    const before = known === undefined ? readText(this.#root, path) : known.before;
    const after = edit(known === undefined ? before : known.after);
    this.#texts.set(path, { before, after });
  }

  editJson(path: string, edit: (config: Json) => Json): void {
    this.edit(path, (text) => {
      const config = parseConfig(path, text);
      const edited = edit(config);
      return JSON.stringify(edited) === JSON.stringify(config) ? text : formatConfig(edited, text);
    });
  }

  changes(finish: (path: string, text: string | null) => string | null = (_path, text) => text): readonly Change[] {
    return [...this.#texts].flatMap(([path, { before, after }]): readonly Change[] => {
      const text = after === before ? before : finish(path, after);
      return text === before ? [] : [{ kind: "write", path, before, after: text }];
    });
  }
}
