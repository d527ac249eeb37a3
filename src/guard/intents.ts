/** What is to be leased before a tool runs: its targets as intents, each once. */
import { basename, join, resolve } from "node:path";
import type { ShellPath } from "./shell-writes.ts";
import { isFolder, isOutside, type Outside, type Target, targetOf } from "./targets.ts";
import type { Action } from "./tools.ts";

const { existsSync } = process.getBuiltinModule("node:fs");

export interface Intent {
  readonly predicate: "MUTATES" | "DELETES" | "RENAMES";
  readonly resource: string;
  readonly to?: string;
}

export interface TargetFile {
  readonly target: Target;
  readonly isWhole: boolean;
}

export interface Plan {
  readonly intents: readonly Intent[];
  /** Single files among them, whose versions are followed. */
  readonly files: readonly TargetFile[];
  /** In no repository. */
  readonly outside: readonly string[];
  /** Nothing but this is written. */
  readonly isClear: boolean;
  /** Folders in which git writes what worktrees share. */
  readonly git: readonly string[];
}

/** The server takes 256 in one manifest (S4); more are leased as the folder that they have in common. */
const intentsMax = 200;

export interface Gathering {
  readonly intents: Map<string, Intent>;
  readonly files: Map<string, TargetFile>;
  readonly outside: Set<string>;
}

export function planWrites({ writes, renames }: Extract<Action, { kind: "write" }>, cwd: string): Plan {
  const found: Gathering = { intents: new Map(), files: new Map(), outside: new Set() };
  for (const { predicate, path, isWhole } of writes) {
    const isLink = predicate === "DELETES";
    const isTree = isLink && isFolder(resolve(cwd, path));
    addTarget(found, predicate, targetOf(path, cwd, { isLink, isTree }), isWhole);
  }
  for (const [from, to] of renames) {
    addRename(found, { path: resolve(cwd, from), isTree: false }, { path: resolve(cwd, to), isTree: false });
  }
  return finished(found, true);
}

export function addTarget(
  found: Gathering,
  predicate: "MUTATES" | "DELETES",
  target: Target | Outside,
  isWhole = false,
): void {
  if (isOutside(target)) return void found.outside.add(target.path);
  found.intents.set(`${predicate} ${target.resource}`, { predicate, resource: target.resource });
  addFile(found, target, isWhole);
}

function addFile({ files }: Gathering, target: Target, isWhole: boolean): void {
  if (!/[*?]/.test(target.resource)) files.set(target.path, { target, isWhole });
}

export function addRename(found: Gathering, from: ShellPath, to: ShellPath): void {
  const isTree = isFolder(from.path);
  const old = targetOf(from.path, "/", { isLink: true, isTree });
  const fresh = targetOf(endOf(from, to), "/", { isLink: true, isTree });
  if (isOutside(old) || isOutside(fresh) || old.resource === fresh.resource) {
    addTarget(found, "DELETES", old);
    addTarget(found, "MUTATES", fresh);
    return;
  }
  const key = `RENAMES ${old.resource} ${fresh.resource}`;
  found.intents.set(key, { predicate: "RENAMES", resource: old.resource, to: fresh.resource });
  for (const target of [old, fresh]) addFile(found, target, false);
}

/** Into a folder, a file keeps its name. */
export function endOf(from: ShellPath, to: ShellPath): string {
  return to.isTree || isFolder(to.path) ? join(to.path, basename(from.path)) : to.path;
}

export function finished({ intents, files, outside }: Gathering, isClear: boolean, git: readonly string[] = []): Plan {
  const all = [...intents.values()];
  return {
    intents: all.length > intentsMax ? [{ predicate: "MUTATES", resource: commonFolder(all) }] : all,
    files: [...files.values()],
    isClear,
    git,
    outside: [...outside].filter(
      (path) => !path.startsWith("/dev/") && (existsSync(path) || !path.startsWith("/proc/")),
    ),
  };
}

function commonFolder(intents: readonly Intent[]): string {
  const names = intents.flatMap(({ resource, to }) => [resource, ...(to === undefined ? [] : [to])]);
  const [first = [], ...rest] = names.map((name) => name.split("/"));
  let length = first.length - 1;
  for (const other of rest) {
    let same = 0;
    while (same < length && first[same] === other[same]) same++;
    length = same;
  }
  const kept = first.slice(0, length).filter((segment) => !/[*?]/.test(segment));
  return `${kept.length < 2 ? "FILE:" : kept.join("/")}/**`;
}
