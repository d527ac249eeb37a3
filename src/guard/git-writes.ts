/** What a git command does to the files of a checkout. Where only git can tell which, the question is prepared. */
import { resolve } from "node:path";
import type { Word } from "./shell-words.ts";
import type { ShellPath } from "./shell-writes.ts";

export interface GitWrites {
  readonly folder: string;
  readonly deleted: readonly ShellPath[];
  readonly renamed: readonly (readonly [ShellPath, ShellPath])[];
  /** Arguments of git commands that print, with NUL between, the paths that will change. */
  readonly asks: readonly (readonly string[])[] | null;
  readonly isCommit: boolean;
  /** Nothing else changes; what a commit's own hooks do (a formatter) is not known. */
  readonly isClear: boolean;
}

const reading = new Set(
  "status log diff show branch rev-parse ls-files ls-tree ls-remote blame remote fetch config describe tag reflog grep cat-file shortlog add commit push notes name-rev merge-base rev-list for-each-ref symbolic-ref help version worktree archive bundle count-objects fsck gc prune".split(
    " ",
  ),
);
const changedHere = ["diff", "--name-only", "--no-renames", "-z", "HEAD"] as const;
const untracked = ["ls-files", "--others", "--exclude-standard", "-z"] as const;

/** Null for a command that cannot be understood. */
export function gitWrites(words: readonly Word[], cwd: string): GitWrites | null {
  let folder = cwd;
  let at = 0;
  for (; at < words.length; at++) {
    const { text = "", isKnown = false } = words[at] ?? {};
    if (!isKnown) return null;
    if (text === "-C") folder = resolve(folder, words[++at]?.text ?? ".");
    else if (text === "-c") at++;
    else if (!text.startsWith("-")) break;
  }
  const verb = words[at]?.text ?? "";
  const rest = words.slice(at + 1);
  const unchanged: GitWrites = {
    folder,
    deleted: [],
    renamed: [],
    asks: null,
    isCommit: verb === "commit",
    isClear: verb !== "commit",
  };
  if (rest.some(({ isKnown }) => !isKnown)) return reading.has(verb) ? unchanged : null;
  const texts = rest.map(({ text }) => text);
  const here = (text: string, isTree = false): ShellPath => ({ path: resolve(folder, text), isTree });
  const dashes = texts.indexOf("--");
  const behind = dashes === -1 ? [] : texts.slice(dashes + 1);
  const plain = texts.slice(0, dashes === -1 ? texts.length : dashes).filter((text) => !text.startsWith("-"));
  const has = (flag: RegExp) => texts.some((text) => flag.test(text));
  const asking = (...asks: readonly (readonly string[])[]): GitWrites => ({ ...unchanged, asks, isClear: false });
  const changing = (paths: readonly string[]): GitWrites => ({
    ...unchanged,
    asks: paths.map((path) => ["ls-files", "-z", "--", path]),
  });
  const against = (ref: string) => ["diff", "--name-only", "--no-renames", "-z", "HEAD", ref];

  switch (verb) {
    case "checkout":
      if (dashes !== -1) return changing(behind);
      if (has(/^(?:-b|-B|--orphan)$/)) return asking(...(plain[1] === undefined ? [] : [against(plain[1])]));
      // A word may be a branch or a path; as a path it is in the index.
      return plain[0] === undefined ? unchanged : asking(against(plain[0]), ["ls-files", "-z", "--", ...plain]);
    case "switch":
      if (has(/^(?:-c|-C|--create|--orphan)$/)) return asking(...(plain[1] === undefined ? [] : [against(plain[1])]));
      return plain[0] === undefined ? null : asking(against(plain[0]));
    case "restore":
      if (has(/^(?:-S|--staged)$/) && !has(/^(?:-W|--worktree)$/)) return unchanged;
      return changing([...plain, ...behind]);
    case "reset":
      if (!has(/^--(?:hard|merge|keep)$/)) return unchanged;
      return asking(changedHere, ...(plain[0] === undefined ? [] : [against(plain[0])]));
    case "stash":
      if (plain[0] === "list" || plain[0] === "show" || plain[0] === "drop") return unchanged;
      if (plain[0] === "pop" || plain[0] === "apply")
        return asking(["stash", "show", "--name-only", "-z", ...plain.slice(1)]);
      return asking(changedHere, ...(has(/^(?:-u|-a|--include-untracked|--all)$/) ? [untracked] : []));
    case "apply":
      if (has(/^--(?:check|stat|numstat|summary)$/) || has(/^--cached$/)) return unchanged;
      return plain[0] === undefined ? null : asking(["apply", "--numstat", "-z", ...plain]);
    case "clean":
      return has(/^-\w*f|^--force$/) ? asking(untracked) : unchanged;
    case "merge":
    case "rebase":
    case "cherry-pick":
    case "revert":
      return plain[0] === undefined ? null : asking(against(plain[0]));
    case "pull":
      return asking(against("@{upstream}"));
    case "rm":
      if (has(/^--cached$/)) return unchanged;
      return { ...unchanged, deleted: [...plain, ...behind].map((text) => here(text, has(/^-\w*r/))) };
    case "mv": {
      const names = [...plain, ...behind];
      const to = names.at(-1);
      if (to === undefined || names.length < 2) return null;
      return { ...unchanged, renamed: names.slice(0, -1).map((from) => [here(from), here(to)]) };
    }
    default:
      return reading.has(verb) || verb === "" ? unchanged : null;
  }
}
