/** What a git command does to the files of a checkout. Where only git can tell which, the question is prepared. */
import { resolve } from "node:path";
import { readFlags } from "./shell-flags.ts";
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

/** Verbs that leave the files of a checkout as they are, with flags of the list below. */
const reading = new Set(
  (
    "status log diff show branch rev-parse ls-files ls-tree ls-remote blame annotate remote fetch describe tag reflog grep " +
    "cat-file shortlog add name-rev merge-base rev-list for-each-ref symbolic-ref show-ref diff-tree diff-index diff-files " +
    "check-ignore check-attr whatchanged count-objects help version"
  ).split(" "),
);
/** Not among them: what names a file to write (`-o`, `--output`) or a program to run (`-O`, `--exec`, `--ext-diff`, …). */
const readingFlags =
  "-0abcdDEFhHiIklLmMnNpPqrRsStvwWxyz1 u? U? G? C? A? B? --oneline --stat? --name-only --name-status --graph --all --decorate? --pretty? --format= " +
  "--since= --until= --after= --before= --author= --grep= --cached --staged --no-color --color? --word-diff? --check --numstat " +
  "--shortstat --summary --patch --no-patch --follow --reverse --max-count= --merges --no-merges --first-parent --date= " +
  "--abbrev-commit --abbrev? --diff-filter= --find-renames? --unified= --ignore-all-space --ignore-space-change --quiet " +
  "--ignore-blank-lines --minimal --relative? --exit-code --text --branches? --tags --remotes --topo-order --left-right " +
  "--cherry-pick --merge-base --no-prefix --function-context --compact-summary --raw --no-ext-diff --no-textconv --no-renames " +
  "--list --contains? --merged? --no-merged? --show-current --sort= --delete --force --move --copy --set-upstream-to= --track? " +
  "--no-track --unset-upstream --verbose --prune --depth= --dry-run --heads --refs --show-toplevel --git-dir --abbrev-ref? " +
  "--is-inside-work-tree --symbolic-full-name --short? --verify --absolute-git-dir --show-prefix --git-common-dir --others " +
  "--exclude-standard --modified --deleted --stage --full-name --error-unmatch --porcelain? --branch --ignored? --untracked-files? " +
  "--count --long --always --dirty? --match= --exact-match --update --intent-to-add --annotate --message= --is-ancestor " +
  "--points-at= --no-abbrev --show-stash --no-renames --files-with-matches --line-number --ignore-case --word-regexp --fixed-strings " +
  "--perl-regexp --extended-regexp --untracked --get-url --no-pager --cherry --no-walk --full-history --ancestry-path --is-bare-repository";

const changedHere = ["diff", "--name-only", "--no-renames", "-z", "HEAD"] as const;
const untracked = ["ls-files", "--others", "--exclude-standard", "-z"] as const;

/** Null for a command that cannot be understood, or that runs what it names (`-c`, `--exec-path`). */
export function gitWrites(words: readonly Word[], cwd: string): GitWrites | null {
  let folder = cwd;
  let at = 0;
  for (; at < words.length; at++) {
    const { text = "", isKnown = false } = words[at] ?? {};
    if (!isKnown) return null;
    if (text === "-C") {
      if (words[at + 1]?.isKnown !== true) return null;
      folder = resolve(folder, words[++at]?.text ?? ".");
    } else if (!text.startsWith("-")) break;
    else if (!/^(?:--no-pager|-P|--no-optional-locks|--version|--help)$/.test(text))
      return committing(words, folder, at);
  }
  const verb = words[at]?.text ?? "";
  const rest = words.slice(at + 1);
  const unchanged: GitWrites = {
    folder,
    deleted: [],
    renamed: [],
    asks: null,
    isCommit: verb === "commit",
    isClear: isClearlyReading(verb, rest),
  };
  if (rest.some(({ isKnown }) => !isKnown)) return verb === "commit" || reading.has(verb) ? unchanged : null;
  const texts = rest.map(({ text }) => text);
  const here = (text: string, isTree = false): ShellPath => ({ path: resolve(folder, text), isTree });
  const dashes = texts.indexOf("--");
  const behind = dashes === -1 ? [] : texts.slice(dashes + 1);
  const plain = texts.slice(0, dashes === -1 ? texts.length : dashes).filter((text) => !text.startsWith("-"));
  const index: GitWrites = { ...unchanged, isClear: texts.every((text) => !/^-.*[oO]/.test(text)) };
  const has = (flag: RegExp) => texts.some((text) => flag.test(text));
  const asking = (...asks: readonly (readonly string[])[]): GitWrites => ({ ...unchanged, asks, isClear: false });
  const changing = (paths: readonly string[]): GitWrites => ({
    ...unchanged,
    // A `checkout` runs a hook; both may be given more than paths.
    isClear: verb === "restore" && texts.every((text) => !text.startsWith("-") || /^--?(?:W|worktree|)$/.test(text)),
    asks: paths.map((path) => ["ls-files", "-z", "--", path]),
  });
  const against = (ref: string) => ["diff", "--name-only", "--no-renames", "-z", "HEAD", ref];

  switch (verb) {
    case "checkout":
      if (dashes !== -1) return changing(behind);
      if (has(/^(?:-b|-B|--orphan)$/)) return asking(...(plain[1] === undefined ? [] : [against(plain[1])]));
      // A word may be a branch or a path; as a path it is in the index.
      return plain[0] === undefined ? null : asking(against(plain[0]), ["ls-files", "-z", "--", ...plain]);
    case "switch":
      if (has(/^(?:-c|-C|--create|--orphan)$/)) return asking(...(plain[1] === undefined ? [] : [against(plain[1])]));
      return plain[0] === undefined ? null : asking(against(plain[0]));
    case "restore":
      if (has(/^(?:-S|--staged)$/) && !has(/^(?:-W|--worktree)$/)) return index;
      return changing([...plain, ...behind]);
    case "reset":
      if (!has(/^--(?:hard|merge|keep)$/)) return has(/^-(?!-(?:soft|mixed|quiet)?$|q$)/) ? null : index;
      return asking(changedHere, ...(plain[0] === undefined ? [] : [against(plain[0])]));
    case "stash":
      if (plain[0] === "list" || plain[0] === "show" || plain[0] === "drop") return index;
      if (plain[0] === "pop" || plain[0] === "apply")
        return asking(["stash", "show", "--name-only", "-z", ...plain.slice(1)]);
      return asking(changedHere, ...(has(/^(?:-u|-a|--include-untracked|--all)$/) ? [untracked] : []));
    case "apply":
      if (has(/^--(?:check|stat|numstat|summary)$/) || has(/^--cached$/)) return index;
      return plain[0] === undefined ? null : asking(["apply", "--numstat", "-z", ...plain]);
    case "clean":
      return has(/^-\w*f|^--force$/) ? asking(untracked) : null;
    case "merge":
    case "rebase":
    case "cherry-pick":
    case "revert":
      return plain[0] === undefined ? null : asking(against(plain[0]));
    case "pull":
      return asking(against("@{upstream}"));
    case "rm":
      if (has(/^--cached$/)) return index;
      return {
        ...unchanged,
        isClear: !has(/^-(?!-?$|[rfqn]+$|-force$|-quiet$)/),
        deleted: [...plain, ...behind].map((text) => here(text, has(/^-\w*r/))),
      };
    case "mv": {
      const names = [...plain, ...behind];
      const to = names.at(-1);
      if (to === undefined || names.length < 2) return null;
      return {
        ...unchanged,
        isClear: !has(/^-(?!-?$|[fkvn]+$)/),
        renamed: names.slice(0, -1).map((from) => [here(from), here(to)]),
      };
    }
    case "worktree":
      return plain[0] === "list" ? index : null;
    case "config":
      return isReadingConfig(texts) ? index : null;
    default:
      return reading.has(verb) || verb === "commit" || verb === "" ? unchanged : null;
  }
}

/** Verbs that write what worktrees share (references, configuration, worktrees, packs), or the index. */
const sharing = new Set(
  (
    "add commit rm mv reset restore checkout switch merge rebase cherry-pick revert am pull fetch gc repack prune " +
    "pack-refs update-ref update-index read-tree notes submodule maintenance sparse-checkout bisect replace filter-branch init"
  ).split(" "),
);

/** Whether it does, and in which folder git runs; null where it does not. */
export function sharedGitFolder(words: readonly Word[], cwd: string): string | null {
  let folder = cwd;
  let at = 0;
  for (; at < words.length && (words[at]?.text ?? "").startsWith("-"); at++) {
    const { text = "" } = words[at] ?? {};
    if (text === "-C") folder = resolve(folder, words[at + 1]?.text ?? ".");
    if (text === "-C" || text === "-c" || text === "--git-dir" || text === "--work-tree") at++;
  }
  const [verb = "", ...rest] = words.slice(at).map(({ text }) => text);
  const operands = rest.filter((text) => !text.startsWith("-"));
  const has = (flag: RegExp) => rest.some((text) => flag.test(text));
  const writes = (): boolean => {
    switch (verb) {
      case "branch":
        return (
          has(/^(?:-[dDmMcCuf]|--(?:delete|move|copy|set-upstream|unset-upstream|force|edit))/) ||
          (operands.length > 0 && !has(/^(?:-l|--list|--contains|--merged|--no-merged|--points-at)/))
        );
      case "tag":
        return operands.length > 0 && !has(/^(?:-l|-n|-v|--list|--contains|--merged|--points-at|--verify)/);
      case "stash":
        return operands[0] !== "list" && operands[0] !== "show";
      case "worktree":
        return operands[0] !== "list" && operands.length > 0;
      case "remote":
        return operands.length > 1 && operands[0] !== "show" && operands[0] !== "get-url";
      case "config":
        return !isReadingConfig(rest);
      case "reflog":
        return operands[0] === "expire" || operands[0] === "delete";
      case "symbolic-ref":
        return operands.length > 1 || has(/^(?:-d|--delete)$/);
      default:
        return sharing.has(verb);
    }
  };
  return writes() ? folder : null;
}

/** Its flags are not understood, but a commit is marked all the same, so that its hook knows who commits. */
function committing(words: readonly Word[], folder: string, at: number): GitWrites | null {
  const isCommit = words.slice(at).some(({ text }) => text === "commit");
  return isCommit ? { folder, deleted: [], renamed: [], asks: null, isCommit, isClear: false } : null;
}

function isClearlyReading(verb: string, words: readonly Word[]): boolean {
  if (verb === "") return words.length === 0;
  // `ext::` is a command, as an address.
  if (!reading.has(verb) || words.some(({ text }) => text.includes("::"))) return false;
  return readFlags(words, verb === "grep" ? `${readingFlags} e:` : readingFlags).areKnown;
}

/** `git config` writes with two operands, with most flags, and with `-f` into any file. */
function isReadingConfig(texts: readonly string[]): boolean {
  const plain = texts.filter((text) => !text.startsWith("-"));
  const flags = texts.filter((text) => text.startsWith("-"));
  const isScope = (text: string) => /^--(?:global|local|system|worktree|show-origin|show-scope|name-only)$/.test(text);
  const isRead = (text: string) => /^(?:--get|--get-all|--get-regexp|--list|-l)$/.test(text);
  return flags.every((text) => isScope(text) || isRead(text)) && (flags.some(isRead) || plain.length === 1);
}
