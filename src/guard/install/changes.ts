/** What is about to be changed in a repository, as data: shown before it is done, and done in one go. */
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, isAbsolute, relative, resolve } from "node:path";

export type Change =
  | {
      readonly kind: "write";
      /** From the root, or absolute where it lies in git's folder. */
      readonly path: string;
      readonly before: string | null;
      /** Null: the file goes. */
      readonly after: string | null;
      readonly isProgram?: true;
    }
  | { readonly kind: "move"; readonly from: string; readonly to: string }
  | {
      readonly kind: "git-setting";
      readonly name: string;
      readonly before: string | null;
      readonly after: string | null;
    };

/** A file that cannot be changed without losing something in it; the message says what to do. */
export class CannotChange extends Error {
  override name = "CannotChange";
}

export function readText(root: string, path: string): string | null {
  const full = resolve(root, path);
  return existsSync(full) ? readFileSync(full, "utf8") : null;
}

export function applyChanges(root: string, changes: readonly Change[]): void {
  for (const change of changes) {
    switch (change.kind) {
      case "move": {
        const [from, to] = [resolve(root, change.from), resolve(root, change.to)];
        mkdirSync(dirname(to), { recursive: true });
        move(from, to);
        removeIfEmpty(dirname(from), root);
        break;
      }
      case "write":
        write(root, change.path, change.after, change.isProgram === true);
        break;
      case "git-setting":
        setGit(root, change.name, change.after);
        break;
    }
  }
}

/** A relative link leads to the same place from its new one. */
function move(from: string, to: string): void {
  const target = lstatSync(from).isSymbolicLink() ? readlinkSync(from) : null;
  if (target === null || isAbsolute(target) || dirname(from) === dirname(to)) return renameSync(from, to);
  symlinkSync(relative(dirname(to), resolve(dirname(from), target)), to);
  rmSync(from);
}

/** By a file beside it, which takes its place when it is whole. */
function write(root: string, path: string, text: string | null, isProgram: boolean): void {
  const full = resolve(root, path);
  if (text === null) {
    rmSync(full, { force: true });
    removeIfEmpty(dirname(full), root);
    return;
  }
  mkdirSync(dirname(full), { recursive: true });
  const temporary = `${full}.leasehold-${process.pid}`;
  const mode = statSync(full, { throwIfNoEntry: false })?.mode ?? (isProgram ? 0o755 : null);
  writeFileSync(temporary, text);
  if (mode !== null) chmodSync(temporary, mode & 0o7777);
  renameSync(temporary, full);
}

/** A folder that was made for the file goes with it. */
function removeIfEmpty(folder: string, root: string): void {
  if (folder === root) return;
  try {
    rmdirSync(folder);
  } catch {
    // There is something else in it.
  }
}

function setGit(root: string, name: string, value: string | null): void {
  const args = value === null ? ["--unset", name] : [name, value];
  execFileSync("git", ["config", "--local", ...args], { cwd: root, stdio: "ignore" });
}
