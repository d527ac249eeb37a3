/** Git's own hooks: ours goes first, and then the one that was there. */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import type { Repository } from "../../names/repository.ts";
import { readPrivate } from "../private-files.ts";
import { quoted } from "../words.ts";
import { CannotChange, type Change } from "./changes.ts";

const hookName = "pre-commit";
const chained = ".before-leasehold";
const marker = "# leasehold guard";
/** The hook that was there before, as the script finds it. */
const besideIt = `"$(dirname "$0")/${hookName}${chained}"`;
const setting = "core.hooksPath";
/** What git looks for; where a shared folder is passed on to, all of them are. */
const allHooks =
  "applypatch-msg pre-applypatch post-applypatch pre-commit pre-merge-commit prepare-commit-msg commit-msg post-commit pre-rebase post-checkout post-merge pre-push post-rewrite pre-auto-gc reference-transaction push-to-checkout sendemail-validate fsmonitor-watchman".split(
    " ",
  );

export interface GitPlace {
  readonly root: string;
  /** Where git looks for hooks now. */
  readonly folder: string;
  /** Within this repository; others may share one that is not. */
  readonly isOurs: boolean;
  readonly ownFolder: string;
  readonly localSetting: string | null;
}

export function gitPlace({ root, gitFolder }: Repository): GitPlace | null {
  if (gitFolder === null) return null;
  const path = git(root, "rev-parse", "--git-path", "hooks");
  if (path === null) return null;
  const folder = resolve(root, path);
  const common = resolve(root, git(root, "rev-parse", "--git-common-dir") ?? gitFolder);
  const ownFolder = join(common, "leasehold", "hooks");
  const isOurs = isWithin(folder, root) || isWithin(folder, common);
  return { root, folder, isOurs, ownFolder, localSetting: git(root, "config", "--local", "--get", setting) };
}

export function addGitHook(place: GitPlace, program: string): readonly Change[] {
  if (!place.isOurs) return addOwnFolder(place, program);
  const path = join(place.folder, hookName);
  const text = readPrivate(path);
  if (place.folder === place.ownFolder) {
    const previous = text === null ? null : previousIn(text);
    return written(path, text, hookScript(program, previous === null ? besideIt : quoted(previous)));
  }
  const fresh = hookScript(program, besideIt);
  if (text === null || text.includes(marker)) return written(path, text, fresh);
  if (existsSync(path + chained))
    throw new CannotChange(`${path}${chained} is there already; look what it is, and move it away`);
  return [{ kind: "move", from: path, to: path + chained }, ...written(path, null, fresh)];
}

export function removeGitHook(place: GitPlace): readonly Change[] {
  if (place.folder === place.ownFolder) return removeOwnFolder(place);
  const path = join(place.folder, hookName);
  const text = readPrivate(path);
  if (text === null || !text.includes(marker)) return [];
  const gone: Change = { kind: "write", path, before: text, after: null };
  return isThere(path + chained) ? [gone, { kind: "move", from: path + chained, to: path }] : [gone];
}

export function hasGitHook(place: GitPlace): boolean {
  return readPrivate(join(place.folder, hookName))?.includes(marker) === true;
}

/** The folder of core.hooksPath is not this repository's to change: another takes its place, and calls its hooks. */
function addOwnFolder({ folder, ownFolder, localSetting }: GitPlace, program: string): readonly Change[] {
  const scripts = allHooks.flatMap((name): readonly Change[] => {
    const previous = join(folder, name);
    const text =
      name === hookName
        ? hookScript(program, quoted(previous))
        : script("passes on to the hook of the folder that is in force elsewhere.", quoted(previous));
    return written(join(ownFolder, name), readPrivate(join(ownFolder, name)), text);
  });
  return [...scripts, { kind: "git-setting", name: setting, before: localSetting, after: ownFolder }];
}

function removeOwnFolder({ root, ownFolder, localSetting }: GitPlace): readonly Change[] {
  const scripts = allHooks.flatMap((name): readonly Change[] => {
    const path = join(ownFolder, name);
    const before = readPrivate(path);
    return before === null ? [] : [{ kind: "write", path, before, after: null }];
  });
  const before = previousIn(readPrivate(join(ownFolder, hookName)) ?? "");
  // A setting of the user's own is in force again as soon as the repository has none.
  const shared = before === null ? null : before.slice(0, -hookName.length - 1);
  const after = shared === git(root, "config", "--global", "--type=path", "--get", setting) ? null : shared;
  return [...scripts, { kind: "git-setting", name: setting, before: localSetting, after }];
}

/** What git prints; null if it fails. */
function git(cwd: string, ...args: readonly string[]): string | null {
  try {
    return execFileSync("git", args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  } catch {
    return null;
  }
}

function hookScript(program: string, previous: string): string {
  return script(
    "what other agents hold is not committed. `leasehold guard uninstall git` takes it out.\n" +
      `${program} guard hook git ${hookName} || exit 1`,
    previous,
  );
}

/** `previous` is a word of the shell: a path is quoted, so that nothing in a folder's name is run (L8). */
function script(text: string, previous: string): string {
  return `#!/bin/sh
${marker}: ${text}
previous=${previous}
[ ! -x "$previous" ] || exec "$previous" "$@"
`;
}

/** The path that `script` was given, if it was one. Those of earlier versions are in double quotes. */
function previousIn(script: string): string | null {
  const [, word = ""] = /^previous=(.+)$/m.exec(script) ?? [];
  const [, double] = /^"([^"$`\\]+)"$/.exec(word) ?? [];
  if (double !== undefined) return double;
  if (/^'(?:[^']|'\\'')*'$/.test(word)) return word.slice(1, -1).replaceAll("'\\''", "'");
  return /^[\w./:@+-]+$/.test(word) ? word : null;
}

function written(path: string, before: string | null, after: string): readonly Change[] {
  return before === after ? [] : [{ kind: "write", path, before, after, isProgram: true }];
}

/** Also a link whose end is not there. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isWithin(path: string, folder: string): boolean {
  const inside = relative(folder, path);
  return inside === "" || (!inside.startsWith("..") && !isAbsolute(inside));
}
