/** Before a shell command runs: what its text says that it writes, and a picture of the tree for what it does not say. */
import { join } from "node:path";
import { findRepository, type Repository } from "../names/repository.ts";
import { markCommit } from "./commit-marks.ts";
import { isSameRepository, runGit } from "./git-run.ts";
import { type HeldLooks, looksOf } from "./held-files.ts";
import type { HookCall } from "./hook-call.ts";
import { addRename, addTarget, endOf, finished, type Gathering, type Plan } from "./intents.ts";
import { heldByOthers } from "./leasing.ts";
import { ownNames } from "./own-leases.ts";
import type { Payload } from "./payload.ts";
import { checkoutFolder, fileName, writePrivate } from "./private-files.ts";
import { type ShellWrites, shellWrites } from "./shell-writes.ts";
import { isFolder, targetOf } from "./targets.ts";
import { pictureTree, type TreePicture } from "./tree.ts";
import { noteRead } from "./versions.ts";

const readFilesMax = 50;

/** What there was before a command ran: the tree, or, where that is too large, the files that others hold. */
export interface Earlier {
  readonly folder: string;
  readonly tree: TreePicture | null;
  readonly held: HeldLooks | null;
}

export async function planShell(call: HookCall, command: string): Promise<Plan> {
  const writes = shellWrites(command, call.payload.cwd);
  for (const path of writes.named.slice(0, readFilesMax)) noteRead(call.session.agentFolder, path, "/");
  // What may write anything is judged afterwards, with the server's help: without one it cannot be judged.
  const reached = writes.isClear ? null : call.server.call("GET", "/healthz");
  const [plan] = await Promise.all([planOf(call, writes), rememberTree(call, command, writes), reached]);
  return plan;
}

async function planOf({ payload }: HookCall, writes: ShellWrites): Promise<Plan> {
  const found: Gathering = { intents: new Map(), files: new Map(), outside: new Set() };
  for (const { path, isTree } of [...writes.mutated, ...writes.claimed])
    addTarget(found, "MUTATES", targetOf(path, "/", { isTree: isTree || isFolder(path) }));
  for (const { path, isTree: isDeep } of writes.deleted) {
    const isTree = isDeep && (isFolder(path) || /[*?]/.test(path));
    addTarget(found, "DELETES", targetOf(path, "/", { isTree, isLink: true }));
  }
  for (const [from, to] of writes.renamed) addRename(found, from, to);
  for (const [from, to] of writes.copied) addTarget(found, "MUTATES", targetOf(endOf(from, to), "/"));
  let isClear = writes.isClear;
  for (const { folder, asks } of writes.git) {
    const repository = guardedCheckout(payload, folder);
    for (const ask of asks ?? []) {
      const paths = repository === null ? null : await pathsFromGit(repository, folder, ask);
      if (repository === null || paths === null) isClear = false;
      else
        for (const path of paths) {
          addTarget(found, "MUTATES", targetOf(join(repository.root, path), "/", { isLink: true }));
        }
    }
  }
  return finished(found, isClear, writes.shared);
}

/**
 * The checkout that a folder is in, if it is of the repository in which the session works. Another one is only named by a
 * command that nobody has agreed to yet, and asking git there would read its configuration.
 */
function guardedCheckout({ home }: Payload, folder: string): Repository | null {
  const own = findRepository(home);
  const other = findRepository(folder);
  return own !== null && other !== null && isSameRepository(own, other) ? other : null;
}

async function pathsFromGit(
  repository: Repository,
  folder: string,
  ask: readonly string[],
): Promise<readonly string[] | null> {
  const [verb = "", ...rest] = ask;
  const more = { "ls-files": ["--full-name"], diff: ["--ignore-submodules=all", "--no-ext-diff", "--no-textconv"] };
  const args = [verb, ...(verb === "ls-files" || verb === "diff" ? more[verb] : []), ...rest];
  const output = await runGit(repository, args, { folder });
  if (output === null) return null;
  // --numstat has two counts before each path.
  const lines = output.split("\0").filter(Boolean);
  return lines.map((line) => line.replace(/^(?:\d+|-)\t(?:\d+|-)\t/, ""));
}

/** What slips through is found afterwards, by comparison with this. */
async function rememberTree(call: HookCall, command: string, writes: ShellWrites): Promise<void> {
  const { payload, session, environment } = call;
  for (const folder of writes.commits) {
    const repository = findRepository(folder);
    if (repository !== null) markCommit(checkoutFolder(repository, environment), ownNames(session), call.pid);
  }
  if (writes.isClear && writes.git.every(({ folder }) => guardedCheckout(payload, folder) !== null)) return;
  const repository = guardedCheckout(payload, payload.cwd) ?? findRepository(payload.home);
  if (repository === null) return;
  const picture = await pictureTree(repository);
  const earlier: Earlier = {
    folder: repository.root,
    tree: picture,
    held:
      picture === null
        ? looksOf(repository, await heldByOthers(call.server, repository.name, ownNames(session)))
        : null,
  };
  writePrivate(pictureFile(session.agentFolder, payload.toolUseId, command), JSON.stringify(earlier));
}

export function pictureFile(agentFolder: string, toolUseId: string | null, command: string): string {
  return join(agentFolder, "trees", fileName(toolUseId ?? command));
}
