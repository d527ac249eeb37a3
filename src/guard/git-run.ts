/**
 * Git, asked about a checkout, so that nothing of that checkout is run: a hook asks before its user has agreed to
 * anything, and a repository's configuration can name programs (a file watcher, filters, hooks, a remote's helper).
 *
 * The repository is named and not searched for, because a folder of a checkout can itself look like a repository.
 */
import { dirname, join } from "node:path";
import type { Repository } from "../names/repository.ts";
import { readPrivate } from "./private-files.ts";

export type Checkout = Pick<Repository, "root" | "gitFolder">;

export interface GitOptions {
  /** Relative paths start here; the root, if it is not said. */
  readonly folder?: string;
  readonly timeoutMs?: number;
  /** The index of a commit that is being made. */
  readonly indexFile?: string;
}

const gitMs = 3_000;
const outputBytesMax = 32 * 2 ** 20;
const hardened = [
  "core.quotePath=false",
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "core.pager=cat",
  "diff.external=",
  "safe.bareRepository=explicit",
  // A partial clone fetches what it lacks, through programs that its configuration names.
  "protocol.allow=never",
].flatMap((setting) => ["-c", setting]);

/** What git prints; null if it fails or takes too long. It takes no locks that an agent's own git would meet. */
export async function runGit(
  { root, gitFolder }: Checkout,
  args: readonly string[],
  { folder = root, timeoutMs = gitMs, indexFile }: GitOptions = {},
): Promise<string | null> {
  if (gitFolder === null) return null;
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_"));
  const environment = {
    ...Object.fromEntries(inherited),
    GIT_DIR: gitFolder,
    GIT_WORK_TREE: root,
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_ATTR_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    GIT_NO_LAZY_FETCH: "1",
    ...(indexFile !== undefined && { GIT_INDEX_FILE: indexFile }),
  };
  const run = (more: readonly string[], settings: Readonly<Record<string, string>> = {}) =>
    execute(["--no-optional-locks", ...hardened, ...more], folder, { ...environment, ...settings }, timeoutMs);
  let withoutFilters = {};
  if (mayNameFilters(gitFolder)) {
    const names = await run(["config", "--list", "--name-only", "-z"]);
    if (names === null) return null;
    withoutFilters = filtersOff(names.split("\0"));
  }
  return await run(args, withoutFilters);
}

/** Both are the one repository, seen from its main checkout or a linked worktree: they share a configuration. */
export function isSameRepository(one: Checkout, other: Checkout): boolean {
  return (
    one.gitFolder !== null && other.gitFolder !== null && sharedFolder(one.gitFolder) === sharedFolder(other.gitFolder)
  );
}

function sharedFolder(gitFolder: string): string {
  const parent = dirname(gitFolder);
  return parent.endsWith("/worktrees") ? dirname(parent) : gitFolder;
}

function mayNameFilters(gitFolder: string): boolean {
  const files = [join(sharedFolder(gitFolder), "config"), join(gitFolder, "config.worktree")];
  return files.some((path) => /filter|include/i.test(readPrivate(path) ?? ""));
}

/** Git has no switch for all filters; each is switched off by its name. */
function filtersOff(names: readonly string[]): Readonly<Record<string, string>> {
  const filters = new Set(names.flatMap((name) => /^(filter\..+)\.\w+$/s.exec(name)?.[1] ?? []));
  const settings = [...filters].flatMap((filter) => [
    [`${filter}.clean`, ""],
    [`${filter}.smudge`, ""],
    [`${filter}.process`, ""],
    [`${filter}.required`, "false"],
  ]);
  return {
    GIT_CONFIG_COUNT: String(settings.length),
    ...Object.fromEntries(
      settings.flatMap(([key = "", value = ""], at) => [
        [`GIT_CONFIG_KEY_${at}`, key],
        [`GIT_CONFIG_VALUE_${at}`, value],
      ]),
    ),
  };
}

function execute(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
  timeout: number,
): Promise<string | null> {
  const { execFile } = process.getBuiltinModule("node:child_process");
  return new Promise((resolve) => {
    const options = { cwd, env, timeout, maxBuffer: outputBytesMax, encoding: "utf8" } as const;
    execFile("git", args, options, (error, stdout) => resolve(error === null ? stdout : null));
  });
}
