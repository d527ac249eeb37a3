/** Resource names from what is typed (C3). */
import { isAbsolute, relative, resolve, sep } from "node:path";
import { findRepository, NamingProblem, projectFile, type Repository } from "../names/repository.ts";
import { UsageProblem } from "./problem.ts";

const typed = /^[A-Z][A-Z0-9_]*:/;

/**
 * `TYPE:/path` is taken as it stands. Everything else is a path: `src/auth.ts` is `FILE:/<repository>/src/auth.ts` from
 * any folder of the repository; `src/` with its slash is the folder and all below it. Whether the file exists makes no
 * difference: one spelling has one meaning in every checkout.
 */
export function resourceName(text: string, cwd: string): string {
  if (typed.test(text)) return text;
  if (text === "" || text.includes("\0")) {
    throw new UsageProblem(`"${text}" is not a resource name; give TYPE:/path, or a path within the repository`);
  }
  const path = resolve(cwd, text);
  const repository = repositoryOf(text, path);
  const inside = relative(repository.root, path);
  const segments = inside === "" ? [] : inside.split(sep);
  if (segments[0] === ".." || isAbsolute(inside)) throw outside(text, repository);
  const isTree = segments.length === 0 || text.endsWith("/") || text.endsWith(sep);
  return `FILE:/${[repository.name, ...segments, ...(isTree ? ["**"] : [])].join("/")}`;
}

/** The repository that the file is in, which may be another than that of the working directory. */
function repositoryOf(text: string, path: string): Repository {
  const parts = path.split(sep);
  const pattern = parts.findIndex((part) => /[*?]/.test(part));
  const found = repositoryAt(pattern === -1 ? path : parts.slice(0, pattern).join(sep) || sep);
  if (found !== null) return found;
  const example = `FILE:/shop/${text.replace(/^[./\\]+/, "")}`;
  throw new UsageProblem(
    `"${text}" is not in a repository: give a whole name such as ${example}, or put a ${projectFile} with {"repository": "shop"} into the project's folder`,
  );
}

/** A fault in the project's name is wrong usage here. */
export function repositoryAt(folder: string): Repository | null {
  try {
    return findRepository(folder);
  } catch (error) {
    throw error instanceof NamingProblem ? new UsageProblem(error.message) : error;
  }
}

function outside(text: string, { root }: Repository): UsageProblem {
  return new UsageProblem(`"${text}" lies outside of the repository ${root}; give a whole name, TYPE:/path`);
}
