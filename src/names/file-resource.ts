/** The resource name of a file: `src/auth.ts` is `FILE:/<repository>/src/auth.ts`, for every program in every checkout. */
import { NamingProblem, projectFile } from "./project-file.ts";
import { findRepository, type Repository } from "./repository.ts";

/**
 * From any folder of the repository; `src/` with its slash is the folder and all below it, and `*`, `?` and `**` make a
 * pattern. Whether the file exists makes no difference: one spelling has one meaning in every checkout and worktree.
 * Relative paths are taken from `folder`, the working directory if it is left out. Throws a NamingProblem where the file is
 * in no repository. Needs a file system, so not in browsers.
 */
export function fileResource(path: string, folder: string = process.cwd()): string {
  const { isAbsolute, relative, resolve, sep } = process.getBuiltinModule("node:path");
  if (path === "" || path.includes("\0")) {
    throw new NamingProblem(`"${path}" is not a resource name; give TYPE:/path, or a path within the repository`);
  }
  const full = resolve(folder, path);
  const repository = repositoryOf(path, full);
  const inside = relative(repository.root, full);
  const segments = inside === "" ? [] : inside.split(sep);
  if (segments[0] === ".." || isAbsolute(inside)) {
    throw new NamingProblem(
      `"${path}" lies outside of the repository ${repository.root}; give a whole name, TYPE:/path`,
    );
  }
  const isTree = segments.length === 0 || path.endsWith("/") || path.endsWith(sep);
  return `FILE:/${[repository.name, ...segments, ...(isTree ? ["**"] : [])].join("/")}`;
}

/** The repository that the file is in, which may be another than that of the working directory. */
function repositoryOf(path: string, full: string): Repository {
  const { sep } = process.getBuiltinModule("node:path");
  const parts = full.split(sep);
  const pattern = parts.findIndex((part) => /[*?]/.test(part));
  const found = findRepository(pattern === -1 ? full : parts.slice(0, pattern).join(sep) || sep);
  if (found !== null) return found;
  const example = `FILE:/shop/${path.replace(/^[./\\]+/, "")}`;
  throw new NamingProblem(
    `"${path}" is not in a repository: give a whole name such as ${example}, or put a ${projectFile} with {"repository": "shop"} into the project's folder`,
  );
}

/**
 * A FILE name whose first part is another than the repository that the folder is in, and probably meant as a path in it:
 * such a name meets nobody who says `FILE:/<repository>/…`. Null where all is well, or where nothing is known.
 */
export function strangerWarning(name: string, folder: string): string | null {
  const [, first, rest = ""] = /^FILE:\/([^/]+)\/?(.*)$/.exec(name) ?? [];
  if (first === undefined || /[*?]/.test(first)) return null;
  const repository = findRepository(folder);
  if (repository === null || first === repository.name || isSibling(first, repository)) return null;
  const path = rest === "" ? first : `${first}/${rest}`;
  return `"${first}" in ${name} is not a known repository; this one is "${repository.name}", and the file ${path} in it is FILE:/${repository.name}/${path}`;
}

/** A checkout beside this one, or another worktree's name of the same repository. */
function isSibling(name: string, { root, name: own }: Repository): boolean {
  const { dirname, join } = process.getBuiltinModule("node:path");
  if (name.split("@")[0] === own.split("@")[0]) return true;
  return findRepository(join(dirname(root), name))?.name === name;
}
