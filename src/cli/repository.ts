/** The repository that a folder is in; what is wrong with its name is a wrong usage here. */
import { NamingProblem, findRepository as search } from "../names/repository.ts";
import { UsageProblem } from "./problem.ts";

export { projectFile } from "../names/repository.ts";

export interface Repository {
  readonly root: string;
  readonly name: string;
}

export function findRepository(folder: string): Repository | null {
  try {
    const found = search(folder);
    return found === null ? null : { root: found.root, name: found.name };
  } catch (error) {
    throw error instanceof NamingProblem ? new UsageProblem(error.message) : error;
  }
}
