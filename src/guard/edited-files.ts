/** Which files an agent has edited and not committed: half-done work, which nobody else should find. */
import { dirname, relative } from "node:path";
import { findRepository } from "../names/repository.ts";
import { runGit } from "./git-run.ts";
import { wroteFiles } from "./versions.ts";

/** Their resources. Where git cannot say, an edited file counts as not committed. */
export async function uncommittedEdits(agentFolder: string): Promise<readonly string[]> {
  const found: string[] = [];
  for (const { path, resource } of wroteFiles(agentFolder)) {
    const repository = findRepository(dirname(path));
    const place = repository === null ? "" : relative(repository.root, path);
    const status = ["--literal-pathspecs", "status", "--porcelain", "-z", "--ignored", "--", place];
    const changed = repository === null ? null : await runGit(repository, status);
    if (changed !== "") found.push(resource);
  }
  return found;
}
