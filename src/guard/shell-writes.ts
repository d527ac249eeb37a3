/** What a shell command writes, deletes and renames, as far as its text shows, and which files it only reads. */
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { type GitWrites, gitWrites, sharedGitFolder } from "./git-writes.ts";
import { patchPaths } from "./patch.ts";
import { readFlags } from "./shell-flags.ts";
import { type CommandStep, readShell, type Word } from "./shell-words.ts";
import { asksVersion, isHarmless, writers } from "./shell-writers.ts";

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
  /** Git writes there what all worktrees of the repository share. */
  readonly shared: readonly string[];
  /** Every command in it is known to change nothing but what is listed here; else the tree is compared. */
  readonly isClear: boolean;
}

/** The same while it is filled. */
type Gathering = {
  -readonly [K in keyof ShellWrites]: ShellWrites[K] extends readonly (infer T)[] ? T[] : ShellWrites[K];
};

const scriptDepthMax = 4;
/** What runs another command that follows its own flags. With other flags, it is not known which command, or where. */
const wrappers: Readonly<Record<string, string>> = {
  sudo: "-nEH u: g:",
  doas: "-n u:",
  env: "-i u:",
  nohup: "",
  command: "-p",
  builtin: "",
  exec: "-cl a:",
  nice: "-0 n:",
  ionice: "c: n:",
  time: "-p",
  stdbuf: "i: o: e:",
  timeout: "-v k: s: --foreground --preserve-status --signal= --kill-after=",
  xargs: "-0rtx I: L: n: P: d: --no-run-if-empty --null",
  npx: "-y --yes --no-install",
};
/** Folders whose programs are what their names say. */
const systemFolder = /^\/(?:usr\/(?:local\/)?|opt\/homebrew\/)?s?bin\/[^/]+$/;

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
    shared: [],
    isClear: true,
  };
  gather(command, cwd, found, 0);
  return found;
}

/** Where a command runs, as far as that is known. */
interface Place {
  /** Null where it is not known. */
  readonly folder: string | null;
  /** False where a `cd` before it may have failed, or may not have run. */
  readonly isSure: boolean;
  readonly hasMoved: boolean;
}

function gather(command: string, cwd: string | null, found: Gathering, depth: number): void {
  const read = depth > scriptDepthMax ? null : readShell(command);
  if (read === null) {
    found.isClear = false;
    return;
  }
  if (!read.isClear) found.isClear = false;
  const places: Place[] = [];
  let place: Place = { folder: cwd, isSure: true, hasMoved: false };
  for (const step of read.steps) {
    if (step.kind === "enter") places.push(place);
    else if (step.kind === "leave") place = places.pop() ?? { ...place, isSure: false };
    else {
      // After `cd a && b; c` it is not known whether c runs in a.
      if (place.hasMoved && !/^(?:&&|\|&?|\(|)$/.test(step.before)) place = { ...place, isSure: false };
      const folder = readCommand(step, place, found, depth, command);
      if (folder !== undefined) {
        const isSure = place.isSure && step.after === "&&" && !/^\|&?$/.test(step.before) && !read.hasBranches;
        place = { folder, isSure, hasMoved: true };
      }
    }
  }
}

/** Gives the folder to which it moves, if it does; null where that is not known. */
function readCommand(
  { words: all, redirections }: CommandStep,
  place: Place,
  found: Gathering,
  depth: number,
  text: string,
): string | null | undefined {
  const { folder } = place;
  const unclear = (): undefined => {
    found.isClear = false;
  };
  const at = (word: Word, isTree = false): ShellPath | null => {
    if (!place.isSure && !word.text.startsWith("/")) unclear();
    return pathOf(word, folder, isTree);
  };
  const note = (list: ShellPath[], path: ShellPath | null): void => {
    if (path === null) found.isClear = false;
    else if (!/^\/dev\/(?:null|std(?:in|out|err)|tty|fd\/\d+)$/.test(path.path)) list.push(path);
  };
  for (const { sign, to } of redirections) {
    if (sign === "<" || sign === "<<<") found.named.push(...knownPath(to, folder));
    else if (!(sign.endsWith("&") && to.isKnown && /^(?:\d+-?|-)$/.test(to.text))) note(found.mutated, at(to));
    // In zsh, `>!` is a sign of its own.
    if (to.text === "!") unclear();
  }
  const length = all.findIndex(({ isAssignment }) => !isAssignment);
  const assigned = all.slice(0, length === -1 ? all.length : length);
  if (!assigned.every(({ text }) => isHarmless(/^\w+/.exec(text)?.[0] ?? ""))) unclear();
  const unwrapped = unwrap(all.slice(assigned.length));
  if (!unwrapped.isClear) unclear();
  const [program, ...rest] = unwrapped.words;
  if (program === undefined) return undefined;
  const name = program.text.split("/").at(-1) ?? "";
  if (!program.isKnown || program.isPattern) unclear();
  if (program.text.includes("/") && !systemFolder.test(program.text)) unclear();
  // What is claimed is named, and yet not looked at.
  if (name !== "leasehold") for (const word of rest) found.named.push(...knownPath(word, folder));

  if (name === "cd") {
    const { operands, areKnown } = readFlags(rest, "-LP");
    const [target] = operands;
    if (!areKnown || operands.length > 1 || rest.some(({ text }) => text === "-")) return unclear() ?? null;
    return target === undefined ? homedir() : (pathOf(target, folder, false)?.path ?? null);
  }
  if (name === "pushd" || name === "popd") return unclear() ?? null;
  if (asksVersion(name, rest)) return undefined;
  if (/^(?:ba|z|da|k)?sh$/.test(name) || name === "eval") {
    const script = name === "eval" ? rest.map(({ text }) => text).join(" ") : scriptOf(rest);
    // An `eval` reads its words twice; whatever is in them, it is not taken for clear.
    if (script === null || name === "eval" || rest.some(({ isKnown }) => !isKnown)) unclear();
    if (script !== null && rest.every(({ isKnown }) => isKnown)) gather(script, folder, found, depth + 1);
    if (!place.isSure) unclear();
    return undefined;
  }
  if (name === "git") {
    const shared = folder === null ? null : sharedGitFolder(rest, folder);
    if (shared !== null) found.shared.push(shared);
    const git = folder === null || !place.isSure ? null : gitWrites(rest, folder);
    if (git === null) return unclear();
    found.deleted.push(...git.deleted);
    found.renamed.push(...git.renamed);
    if (git.asks !== null) found.git.push(git);
    if (git.isCommit) found.commits.push(git.folder);
    return git.isClear ? undefined : unclear();
  }
  if (name === "apply_patch" || name === "applypatch") {
    // The patch stands in the text, as a here-document or a word.
    const { changed = [], deleted = [], renamed = [] } = patchPaths(text) ?? {};
    const path = (one: string): ShellPath | null => at({ ...program, text: one, isKnown: true });
    for (const one of changed) note(found.mutated, path(one));
    for (const one of deleted) note(found.deleted, path(one));
    for (const pair of renamed) {
      const [from, to] = [path(pair[0]), path(pair[1])];
      if (from !== null && to !== null) found.renamed.push([from, to]);
    }
    return unclear();
  }
  const writes = (Object.hasOwn(writers, name) ? writers[name] : undefined)?.(rest);
  if (writes === undefined) return unclear();
  for (const word of writes.mutated ?? []) note(found.mutated, at(word));
  for (const word of writes.mutatedTrees ?? []) note(found.mutated, at(word, true));
  for (const word of writes.claimed ?? []) note(found.claimed, at(word));
  for (const word of writes.deleted ?? []) note(found.deleted, at(word));
  for (const word of writes.deletedTrees ?? []) note(found.deleted, at(word, true));
  for (const list of ["renamed", "copied"] as const) {
    for (const [from, to] of writes[list] ?? []) {
      const [old, fresh] = [at(from), at(to)];
      if (old === null || fresh === null) unclear();
      else found[list].push([old, fresh]);
    }
  }
  return writes.isVague === true ? unclear() : undefined;
}

interface Unwrapped {
  readonly words: readonly Word[];
  readonly isClear: boolean;
}

/** Steps over `sudo -u x`, `env A=b`, `timeout 5`, as often as they stand before the command itself. */
function unwrap(words: readonly Word[]): Unwrapped {
  const name = words[0]?.text.split("/").at(-1) ?? "";
  const list = Object.hasOwn(wrappers, name) ? wrappers[name] : undefined;
  if (list === undefined) return { words, isClear: true };
  // `command -v x` only looks.
  if (name === "command" && /^-[vV]$/.test(words[1]?.text ?? "")) return { words: [], isClear: true };
  let end = 1;
  while (end < words.length && /^-./.test(words[end]?.text ?? "")) {
    const flags = readFlags(words.slice(end, end + 1), list);
    // A flag whose value is the next word.
    end += !flags.areKnown && readFlags(words.slice(end, end + 2), list).areKnown ? 2 : 1;
  }
  const { areKnown } = readFlags(words.slice(1, end), list);
  // What helps where no server answers must be clear: `npx leasehold serve`.
  const isOwn = words[end]?.text === "leasehold";
  let isClear = areKnown && name !== "xargs" && (name !== "npx" || isOwn);
  if (name === "timeout") end++;
  while (name === "env" && /^\w+=/.test(words[end]?.text ?? "")) {
    if (!isHarmless(words[end]?.text.split("=")[0] ?? "")) isClear = false;
    end++;
  }
  const rest = unwrap(words.slice(end));
  return { words: rest.words, isClear: isClear && rest.isClear };
}

/** The script of `bash -c`; null where it is in a file, or flags say how to read it. */
function scriptOf([flag, script, ...rest]: readonly Word[]): string | null {
  return /^-[eulx]*c$/.test(flag?.text ?? "") && rest.length === 0 ? (script?.text ?? null) : null;
}

function pathOf(word: Word, folder: string | null, isTree: boolean): ShellPath | null {
  if (!word.isKnown || word.text === "" || word.text.includes("\0")) return null;
  const { text } = word;
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
