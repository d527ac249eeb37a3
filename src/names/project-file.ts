/**
 * `.leasehold.json` in the root of a repository: what it is called, which server it uses, and how its guards behave. The
 * command line, the guards and the SDK all read it here, so a field means the same to each of them.
 */

export const projectFile = ".leasehold.json";

/** A repository that cannot be named, or a file that cannot be used: the message says what to write. */
export class NamingProblem extends Error {
  override readonly name = "NamingProblem";
}

export type Project = Readonly<Record<string, unknown>>;

/** All fields that there are. A misspelt one would otherwise be ignored in silence. */
export const projectFields = [
  "$schema",
  "repository",
  "scope",
  "url",
  "unreachable",
  "ttl_ms",
  "quiet_ms",
  "wait_ms",
  "hold",
  "on_die",
  "purpose",
] as const;

/** Null where the folder has no such file. */
export function readProject(folder: string): Project | null {
  // Loaded when it is used: hooks start often, and browsers have no files.
  const path = process.getBuiltinModule("node:path").join(folder, projectFile);
  const text = readIfThere(path);
  if (text === null) return null;
  const read = parse(text);
  if (typeof read !== "object" || read === null || Array.isArray(read)) {
    throw new NamingProblem(`${path} is not a JSON object; write {"repository": "name"}`);
  }
  const unknown = Object.keys(read).find((field) => !(projectFields as readonly string[]).includes(field));
  if (unknown !== undefined) {
    throw new NamingProblem(`${path} has an unknown field "${unknown.slice(0, 80)}"; there are ${fieldList}`);
  }
  return read as Project;
}

const fieldList = projectFields.filter((field) => field !== "$schema").join(", ");

/** The text of a small file; null where there is none. */
export function readIfThere(path: string): string | null {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EISDIR") return null;
    throw new NamingProblem(`${path} cannot be read: ${error instanceof Error ? error.message : error}`);
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
