/** Resource names from what is typed (C3). */
import { fileResource } from "../names/file-resource.ts";
import { NamingProblem } from "../names/project-file.ts";
import { findRepository, type Repository } from "../names/repository.ts";
import { UsageProblem } from "./problem.ts";

const typed = /^[A-Z][A-Z0-9_]*:/;
/** A type that is misspelt, such as `lock:/a`: as a path it would be a file that nobody else means. */
const almostTyped = /^([A-Za-z][\w-]*):\/(?!\/)/;

/** `TYPE:/path` is taken as it stands. Everything else is a path within its repository. */
export function resourceName(text: string, cwd: string): string {
  if (typed.test(text)) return text;
  const [, type] = almostTyped.exec(text) ?? [];
  if (type !== undefined) {
    const right = type.toUpperCase().replaceAll("-", "_");
    throw new UsageProblem(
      `"${type}" in ${text} is not a type; types have capital letters: ${right}${text.slice(type.length)}. A file is given as ./${text}`,
    );
  }
  return asUsage(() => fileResource(text, cwd));
}

export function repositoryAt(folder: string): Repository | null {
  return asUsage(() => findRepository(folder));
}

/** A fault in the project's name is wrong usage here. */
function asUsage<T>(find: () => T): T {
  try {
    return find();
  } catch (error) {
    throw error instanceof NamingProblem ? new UsageProblem(error.message) : error;
  }
}
