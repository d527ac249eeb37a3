/** What a shell command writes, deletes and renames, as far as its text shows, and which files it only reads. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type GitWrites, gitWrites } from "./git-writes.ts";
import { readShell, type Step, type Word } from "./shell-words.ts";
import { writers } from "./shell-writers.ts";

export interface ShellPath {
  /** From the root; it may hold `*` and `?`. */
  readonly path: string;
  readonly isTree: boolean;
}

export interface ShellWrites {
  readonly mutated: readonly ShellPath[];
  readonly deleted: readonly ShellPath[];
  readonly renamed: readonly (readonly [from: ShellPath, to: ShellPath])[];
  /** To be leased, and not written by this command. */
  readonly claimed: readonly ShellPath[];
  /** Only the second is written. */
  readonly copied: readonly (readonly [from: ShellPath, to: ShellPath])[];
  /** Words that may name files it reads. */
  readonly named: readonly string[];
  /** What git is about to do, in which folder: it alone can say to which files. */
  readonly git: readonly GitWrites[];
  /** A commit is made in these folders. */
  readonly commits: readonly string[];
  /** Every command in it is known to change nothing but what is listed here; else the tree is compared. */
  readonly isClear: boolean;
}

/** The same while it is filled. */
type Gathering = {
  -readonly [K in keyof ShellWrites]: ShellWrites[K] extends readonly (infer T)[] ? T[] : ShellWrites[K];
};

const scriptDepthMax = 4;
/** What runs another command that follows its own flags; those that take a value are named. */
const wrappers: Readonly<Record<string, RegExp>> = {
  sudo: /^-[ugCDhpRT]$/,
  doas: /^-[uC]$/,
  env: /^-[uCS]$/,
  nohup: /^$/,
  command: /^$/,
  builtin: /^$/,
  exec: /^-a$/,
  nice: /^-n$/,
  ionice: /^-[cnp]$/,
  time: /^-[of]$/,
  stdbuf: /^-[ioe]$/,
  timeout: /^-[ks]$/,
  xargs: /^-[IiLnPdEsa]$/,
  npx: /^-[pc]$/,
};

export function shellWrites(command: string, cwd: string): ShellWrites {
  const found: Gathering = {
    mutated: [],
    deleted: [],
    renamed: [],
    claimed: [],
    copied: [],
    named: [],
    git: [],
    commits: [],
    isClear: true,
  };
  gather(command, cwd, found, 0);
  return found;
}

function gather(command: string, cwd: string, found: Gathering, depth: number): void {
  const steps = depth > scriptDepthMax ? null : readShell(command);
  if (steps === null) {
    found.isClear = false;
    return;
  }
  const folders: string[] = [];
  let folder: string | null = cwd;
  for (const step of steps) {
    if (step.kind === "enter") folders.push(folder ?? "");
    else if (step.kind === "leave") folder = folders.pop() || null;
    else folder = readCommand(step, folder, found, depth);
  }
}

/** Gives the folder in which the next one runs; null where it is not known. */
function readCommand(
  { words: all, redirections }: Extract<Step, { kind: "command" }>,
  folder: string | null,
  found: Gathering,
  depth: number,
): string | null {
  const at = (word: Word, isTree = false): ShellPath | null => pathOf(word, folder, isTree);
  const note = (list: ShellPath[], path: ShellPath | null): void => {
    if (path === null) found.isClear = false;
    else if (!path.path.startsWith("/dev/")) list.push(path);
  };
  for (const { sign, to } of redirections) {
    if (sign === "<" || sign === "<<<") found.named.push(...knownPath(to, folder));
    else if (!(sign.endsWith("&") && /^(?:\d+|-)$/.test(to.text))) note(found.mutated, at(to));
  }
  // Its input cannot be read here.
  if (all.some(({ text }) => text.split("/").at(-1) === "xargs")) found.isClear = false;
  const words = unwrapped(all.slice(all.findIndex((word) => !/^\w+\+?=/.test(word.text))));
  const [program, ...rest] = words;
  if (program === undefined || all.every((word) => /^\w+\+?=/.test(word.text))) return folder;
  const name = program.text.split("/").at(-1) ?? "";
  // What is claimed is named, and yet not looked at.
  if (name !== "leasehold") for (const word of rest) found.named.push(...knownPath(word, folder));

  if (name === "cd" || name === "pushd") {
    const [target] = rest.filter(({ text }) => !text.startsWith("-"));
    return target === undefined ? homedir() : (at(target)?.path ?? null);
  }
  if (!program.isKnown || name === "popd") {
    found.isClear = false;
    return name === "popd" ? null : folder;
  }
  if (/^(?:ba|z|da|k)?sh$/.test(name) || name === "eval") {
    const script = name === "eval" ? rest.map(({ text }) => text).join(" ") : scriptOf(rest);
    if (script === null || rest.some(({ isKnown }) => !isKnown)) found.isClear = false;
    else gather(script, folder ?? "/", found, depth + 1);
    return folder;
  }
  if (name === "git") {
    const git = folder === null ? null : gitWrites(rest, folder);
    if (git === null) found.isClear = false;
    else {
      found.deleted.push(...git.deleted);
      found.renamed.push(...git.renamed);
      if (git.asks !== null) found.git.push(git);
      if (git.isCommit) found.commits.push(git.folder);
      if (!git.isClear) found.isClear = false;
    }
    return folder;
  }
  const writer = Object.hasOwn(writers, name) ? writers[name] : undefined;
  const writes = writer?.(rest);
  if (writes === undefined) {
    found.isClear = false;
    return folder;
  }
  for (const word of writes.mutated ?? []) note(found.mutated, at(word));
  for (const word of writes.mutatedTrees ?? []) note(found.mutated, at(word, true));
  for (const word of writes.claimed ?? []) note(found.claimed, at(word));
  for (const word of writes.deleted ?? []) note(found.deleted, at(word));
  for (const word of writes.deletedTrees ?? []) note(found.deleted, at(word, true));
  for (const list of ["renamed", "copied"] as const) {
    for (const [from, to] of writes[list] ?? []) {
      const [old, fresh] = [at(from), at(to)];
      if (old === null || fresh === null) found.isClear = false;
      else found[list].push([old, fresh]);
    }
  }
  if (writes.isVague === true) found.isClear = false;
  return folder;
}

/** Steps over `sudo -u x`, `env A=b`, `timeout 5`, as often as they stand before the command itself. */
function unwrapped(words: readonly Word[]): readonly Word[] {
  let rest = words;
  for (;;) {
    const name = rest[0]?.text.split("/").at(-1) ?? "";
    const valued = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined;
    if (valued === undefined) return rest;
    let at = 1;
    for (; at < rest.length; at++) {
      const { text = "" } = rest[at] ?? {};
      if (valued.test(text)) at++;
      else if (!text.startsWith("-") && !/^\w+=/.test(text)) break;
    }
    if (name === "timeout") at++;
    rest = rest.slice(at);
  }
}

function scriptOf(words: readonly Word[]): string | null {
  const flag = words.findIndex(({ text }) => /^-\w*c$/.test(text));
  return flag === -1 ? null : (words[flag + 1]?.text ?? null);
}

function pathOf(word: Word, folder: string | null, isTree: boolean): ShellPath | null {
  if (!word.isKnown || word.text === "" || word.text.includes("\0")) return null;
  const text = word.isPattern ? word.text.replaceAll(/\[[^\]]*\]/g, "?") : word.text;
  const home = /^~(?:\/|$)/.test(text) ? join(homedir(), text.slice(1)) : text;
  if (folder === null && !home.startsWith("/")) return null;
  return { path: resolve(folder ?? "/", home), isTree: isTree || text.endsWith("/") };
}

/** A flag's value may be a path as well: `--file=src/a.ts`. */
function knownPath(word: Word, folder: string | null): readonly string[] {
  if (word.isPattern) return [];
  const path = pathOf({ ...word, text: word.text.replace(/^-{1,2}[\w-]+=/, "") }, folder, false);
  return path === null ? [] : [path.path];
}
