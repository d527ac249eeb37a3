/** Git's own hooks: ours goes first, and then the one that was there. */
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import type { Repository } from "../../names/repository.ts";
import { CannotChange, type Change } from "./changes.ts";

const hookName = "pre-commit";
const chained = ".before-leasehold";
const marker = "# leasehold guard";
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
  const git = (...args: readonly string[]): string | null => {
    try {
      return execFileSync("git", [...args], {
        cwd: root,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      }).trim();
    } catch {
      return null;
    }
  };
  const path = git("rev-parse", "--git-path", "hooks");
  if (path === null) return null;
  const folder = resolve(root, path);
  const common = resolve(root, git("rev-parse", "--git-common-dir") ?? gitFolder);
  const ownFolder = join(common, "leasehold", "hooks");
  const isOurs = isWithin(folder, root) || isWithin(folder, common);
  return { root, folder, isOurs, ownFolder, localSetting: git("config", "--local", "--get", setting) };
}

export function addGitHook(place: GitPlace, program: string): readonly Change[] {
  if (!place.isOurs) return addOwnFolder(place, program);
  const path = join(place.folder, hookName);
  const text = readHook(path);
  if (place.folder === place.ownFolder) {
    const previous = text === null ? null : previousIn(text);
    return written(path, text, hookScript(program, previous ?? `$(dirname "$0")/${hookName}${chained}`));
  }
  const script = hookScript(program, `$(dirname "$0")/${hookName}${chained}`);
  if (text === null || text.includes(marker)) return written(path, text, script);
  if (existsSync(path + chained))
    throw new CannotChange(`${path}${chained} is there already; look what it is, and move it away`);
  return [{ kind: "move", from: path, to: path + chained }, ...written(path, null, script)];
}

export function removeGitHook(place: GitPlace): readonly Change[] {
  if (place.folder === place.ownFolder) return removeOwnFolder(place);
  const path = join(place.folder, hookName);
  const text = readHook(path);
  if (text === null || !text.includes(marker)) return [];
  const gone: Change = { kind: "write", path, before: text, after: null };
  return isThere(path + chained) ? [gone, { kind: "move", from: path + chained, to: path }] : [gone];
}

export function hasGitHook(place: GitPlace): boolean {
  return readHook(join(place.folder, hookName))?.includes(marker) === true;
}

/** The folder of core.hooksPath is not this repository's to change: another takes its place, and calls its hooks. */
function addOwnFolder({ folder, ownFolder, localSetting }: GitPlace, program: string): readonly Change[] {
  const scripts = allHooks.flatMap((name): readonly Change[] => {
    const previous = join(folder, name);
    const text = name === hookName ? hookScript(program, previous) : passScript(previous);
    return written(join(ownFolder, name), readHook(join(ownFolder, name)), text);
  });
  return [...scripts, { kind: "git-setting", name: setting, before: localSetting, after: ownFolder }];
}

function removeOwnFolder({ ownFolder, localSetting }: GitPlace): readonly Change[] {
  const scripts = allHooks.flatMap((name): readonly Change[] => {
    const path = join(ownFolder, name);
    const before = readHook(path);
    return before === null ? [] : [{ kind: "write", path, before, after: null }];
  });
  const before = previousIn(readHook(join(ownFolder, hookName)) ?? "");
  // A setting of the user's own is in force again as soon as the repository has none.
  const shared = before === null ? null : before.slice(0, -hookName.length - 1);
  const after = shared !== null && shared === globalHooks() ? null : shared;
  return [...scripts, { kind: "git-setting", name: setting, before: localSetting, after }];
}

function globalHooks(): string | null {
  try {
    const text = execFileSync("git", ["config", "--global", "--type=path", "--get", setting], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    });
    return text.trim();
  } catch {
    return null;
  }
}

function hookScript(program: string, previous: string): string {
  return `#!/bin/sh
${marker}: what other agents hold is not committed. \`leasehold guard uninstall git\` takes it out.
${program} guard hook git ${hookName} || exit 1
previous="${previous}"
[ ! -x "$previous" ] || exec "$previous" "$@"
`;
}

function passScript(previous: string): string {
  return `#!/bin/sh
${marker}: passes on to the hook of the folder that is in force elsewhere.
previous="${previous}"
[ ! -x "$previous" ] || exec "$previous" "$@"
`;
}

function previousIn(script: string): string | null {
  return /^previous="([^"$]+)"$/m.exec(script)?.[1] ?? null;
}

function written(path: string, before: string | null, after: string): readonly Change[] {
  return before === after ? [] : [{ kind: "write", path, before, after, isProgram: true }];
}

function readHook(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

/** Also a link whose end is not there. */
function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}

function isWithin(path: string, folder: string): boolean {
  const inside = relative(folder, path);
  return inside === "" || (!inside.startsWith("..") && !isAbsolute(inside));
}
