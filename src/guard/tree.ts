/**
 * What a checkout looks like, quickly: git's own index tells which tracked files are as they were, so only what differs
 * from it is looked at, and what is untracked. Two such pictures tell which files changed between them.
 */
import { join } from "node:path";
import { type Checkout, runGit } from "./git-run.ts";

const { lstatSync } = process.getBuiltinModule("node:fs");

export interface TreePicture {
  readonly head: string;
  /** By path from the root: what a file that differs from the head looks like. */
  readonly files: Readonly<Record<string, string>>;
}

/** A tree with more than that (a build that is not ignored) is not compared as a whole. */
const filesMax = 20_000;
const timeoutMs = 5_000;
/** A submodule is a repository of its own, with a configuration of its own. */
const ignored = ["--ignore-submodules=all", "--no-renames"];

/** Null where there is no git, it takes too long, or there is too much. */
export async function pictureTree(
  checkout: Checkout,
  /** Only what is under these paths. */
  under: readonly string[] | null = null,
): Promise<TreePicture | null> {
  const { root } = checkout;
  const status = ["status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", ...ignored];
  const args = under === null ? status : ["--literal-pathspecs", ...status, "--", ...under];
  const output = await runGit(checkout, args, { timeoutMs });
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
export async function changedPaths(
  checkout: Checkout,
  before: TreePicture,
  after: TreePicture,
): Promise<readonly string[]> {
  const { root } = checkout;
  const changed = new Set<string>();
  for (const path of new Set([...Object.keys(before.files), ...Object.keys(after.files)])) {
    const [was, is] = [before.files[path], after.files[path]];
    if (was !== is) changed.add(path);
  }
  if (before.head !== after.head) {
    const between = await runGit(checkout, ["diff", "--name-only", ...ignored, "-z", before.head, after.head]);
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
export function lookOf(path: string): string {
  try {
    const { mtimeNs, ctimeNs, size, ino } = lstatSync(path, { bigint: true });
    return `${mtimeNs}.${ctimeNs}.${size}.${ino}`;
  } catch {
    return "gone";
  }
}
