/**
 * What a checkout looks like, quickly: git's own index tells which tracked files are as they were, so only what differs
 * from it is looked at, and what is untracked. Two such pictures tell which files changed between them.
 */
import { join } from "node:path";

const { lstatSync } = process.getBuiltinModule("node:fs");

export interface TreePicture {
  readonly head: string;
  /** By path from the root: what a file that differs from the head looks like. */
  readonly files: Readonly<Record<string, string>>;
}

/** A tree with more than that (a build that is not ignored) is not compared. */
const filesMax = 20_000;
const gitMs = 3_000;
const outputBytesMax = 32 * 2 ** 20;

/** Null where there is no git, or it takes too long. */
export async function pictureTree(root: string): Promise<TreePicture | null> {
  const args = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--no-renames"];
  const output = await runGit(root, args);
  if (output === null) return null;
  let head = "";
  const files: Record<string, string> = {};
  let count = 0;
  for (const line of output.split("\0")) {
    if (line.startsWith("# branch.oid ")) head = line.slice(13);
    // "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path"
    const [, path] = /^(?:1 (?:\S+ ){7}|u (?:\S+ ){9}|\? )(.+)$/s.exec(line) ?? [];
    if (path === undefined) continue;
    if (++count > filesMax) return null;
    files[path] = lookOf(join(root, path));
  }
  return { head, files };
}

/** The paths that are not as they were; what was switched from one commit to another is asked of git. */
export async function changedPaths(root: string, before: TreePicture, after: TreePicture): Promise<readonly string[]> {
  const changed = new Set<string>();
  for (const path of new Set([...Object.keys(before.files), ...Object.keys(after.files)])) {
    const [was, is] = [before.files[path], after.files[path]];
    if (was !== is) changed.add(path);
  }
  if (before.head !== after.head) {
    const between = await runGit(root, ["diff", "--name-only", "--no-renames", "-z", before.head, after.head]);
    const committed = new Set((between ?? "").split("\0").filter((path) => path !== ""));
    for (const path of committed) changed.add(path);
    // A commit makes a changed file one that is like the head: it was not touched for that.
    for (const path of committed) if (before.files[path] === lookOf(join(root, path))) changed.delete(path);
  }
  for (const path of changed) {
    // Staging, and taking back what was staged, changes the list and not the file.
    if (before.files[path] !== undefined && before.files[path] === lookOf(join(root, path))) changed.delete(path);
  }
  return [...changed].sort();
}

/** A write leaves at least one of these different. */
function lookOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = lstatSync(path, { bigint: true });
    return `${mtimeNs}.${ctimeNs}.${size}.${ino}`;
  } catch {
    return "gone";
  }
}

/** What git prints; null if it fails or takes too long. It takes no locks that an agent's own git would meet. */
export function runGit(folder: string, args: readonly string[]): Promise<string | null> {
  const { execFile } = process.getBuiltinModule("node:child_process");
  return new Promise((resolve) => {
    const options = { cwd: folder, timeout: gitMs, maxBuffer: outputBytesMax, encoding: "utf8" } as const;
    execFile("git", ["--no-optional-locks", "-c", "core.quotePath=false", ...args], options, (error, stdout) => {
      resolve(error === null ? stdout : null);
    });
  });
}
