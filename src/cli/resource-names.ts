/** From what is typed to the one name of a resource (C3). */
import { isAbsolute, relative, resolve, sep } from "node:path";
import { UsageProblem } from "./problem.ts";
import { findRepository, projectFile, type Repository } from "./repository.ts";

const typed = /^[A-Z][A-Z0-9_]*:/;

/**
 * `TYPE:/path` is meant as it stands. All else is a path: `src/auth.ts` is `FILE:/<repository>/src/auth.ts` from
 * wherever in the repository it is said; `src/` with its slash is the folder and all below it. Whether something is
 * there makes no difference: one spelling has one meaning in every checkout.
 */
export function resourceName(text: string, cwd: string): string {
  if (typed.test(text)) return text;
  if (text === "" || text.includes("\0")) {
    throw new UsageProblem(`"${text}" is no name; give TYPE:/path, or a path within the repository`);
  }
  const path = resolve(cwd, text);
  const repository = repositoryOf(text, path);
  const inside = relative(repository.root, path);
  const segments = inside === "" ? [] : inside.split(sep);
  if (segments[0] === ".." || isAbsolute(inside)) throw outside(text, repository);
  const isTree = segments.length === 0 || text.endsWith("/") || text.endsWith(sep);
  return `FILE:/${[repository.name, ...segments, ...(isTree ? ["**"] : [])].join("/")}`;
}

/** By where the file is, not by where one stands: a path into another checkout has that one's name. */
function repositoryOf(text: string, path: string): Repository {
  const parts = path.split(sep);
  const pattern = parts.findIndex((part) => /[*?]/.test(part));
  const found = findRepository(pattern === -1 ? path : parts.slice(0, pattern).join(sep) || sep);
  if (found !== null) return found;
  const example = `FILE:/shop/${text.replace(/^[./\\]+/, "")}`;
  throw new UsageProblem(
    `"${text}" is in no repository: give a whole name such as ${example}, or put a ${projectFile} with {"repository": "shop"} into the project's folder`,
  );
}

function outside(text: string, { root }: Repository): UsageProblem {
  return new UsageProblem(`"${text}" lies outside of the repository ${root}; give a whole name, TYPE:/path`);
}
