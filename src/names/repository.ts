/**
 * Which repository a folder is in, and what it is called, so that every agent in every checkout says the same name for
 * the same file: by `.leasehold.json`, else by where it came from, else by its folder. Git's files are read directly:
 * it takes a tenth of the time, and works where git is not installed. The command line and the guards both name by this.
 */
import { NamingProblem, projectFile, readIfThere, readProject } from "./project-file.ts";

export interface Repository {
  readonly root: string;
  /** With `"scope": "worktree"`, a linked worktree has its own: "shop@feature". */
  readonly name: string;
  /** Git's folder of this checkout; null where there is only a `.leasehold.json`. */
  readonly gitFolder: string | null;
}

interface GitFolders {
  readonly own: string;
  /** The folder with git's configuration: a worktree's is the one that it shares with the others. */
  readonly shared: string;
}

export function findRepository(folder: string): Repository | null {
  const { basename, dirname, join, resolve } = paths();
  for (let at = resolve(folder); ; at = dirname(at)) {
    const project = namesOf(at);
    const git = gitFoldersOf(join(at, ".git"));
    if (git !== null) {
      const name = project?.repository ?? originName(git.shared) ?? folderName(at, git.shared);
      const isApart = project?.scope === "worktree" && git.own !== git.shared;
      return { root: at, name: isApart ? `${name}@${basename(git.own)}` : name, gitFolder: git.own };
    }
    if (project !== null && project.repository !== null) {
      return { root: at, name: project.repository, gitFolder: null };
    }
    if (dirname(at) === at) return null;
  }
}

interface ProjectNames {
  readonly repository: string | null;
  readonly scope: "repository" | "worktree";
}

function namesOf(folder: string): ProjectNames | null {
  const read = readProject(folder);
  if (read === null) return null;
  const { repository, scope } = read;
  const path = paths().join(folder, projectFile);
  if (repository !== undefined && (typeof repository !== "string" || !isName(repository))) {
    throw new NamingProblem(`"repository" in ${path} is not a name; use letters, digits and . _ -`);
  }
  if (scope !== undefined && scope !== "repository" && scope !== "worktree") {
    throw new NamingProblem(`"scope" in ${path} is "repository" or "worktree"`);
  }
  return { repository: repository ?? null, scope: scope ?? "repository" };
}

// Loaded when they are used: an import would load all of node:fs, streams too, and hooks start often; browsers, which
// load the SDK, have neither.
const paths = () => process.getBuiltinModule("node:path");

function gitFoldersOf(path: string): GitFolders | null {
  const { dirname, join, resolve } = paths();
  const found = process.getBuiltinModule("node:fs").statSync(path, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (found.isDirectory()) return { own: path, shared: path };
  const [, linked] = /^gitdir: (.+)$/m.exec(readIfThere(path) ?? "") ?? [];
  if (linked === undefined) return null;
  const own = resolve(dirname(path), linked.trim());
  const shared = readIfThere(join(own, "commondir"));
  return { own, shared: shared === null ? own : resolve(own, shared.trim()) };
}

/** "git@example.com:acme/shop.git" and "https://example.com/acme/shop" are both "shop". */
function originName(git: string): string | null {
  const config = readIfThere(paths().join(git, "config")) ?? "";
  const [, section = ""] = /^\s*\[remote "origin"\]([^[]*)/m.exec(config) ?? [];
  const [, url = ""] = /^\s*url\s*=\s*"?([^"\n]+?)"?\s*$/m.exec(section) ?? [];
  const last =
    url
      .replace(/[\\/]+$/, "")
      .split(/[\\/:]/)
      .at(-1) ?? "";
  const name = last.replace(/\.git$/, "");
  return isName(name) ? name : null;
}

/** Of the main checkout, so that worktrees, whose folders have names of their own, say the same. */
function folderName(root: string, git: string): string {
  const { basename, dirname, join } = paths();
  const name = basename(basename(git) === ".git" ? dirname(git) : root);
  if (isName(name)) return name;
  throw new NamingProblem(
    `${root} has no name that fits; write {"repository": "name"} into ${join(root, projectFile)}`,
  );
}

function isName(text: string): boolean {
  return /^[\p{L}\p{N}_][\p{L}\p{N}._-]*$/u.test(text) && text.length <= 128;
}
