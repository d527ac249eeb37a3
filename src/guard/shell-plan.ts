/** Before a shell command runs: what its text says that it writes, and a picture of the tree for what it does not say. */
import { join } from "node:path";
import { findRepository } from "../names/repository.ts";
import { markCommit } from "./commit-marks.ts";
import type { HookCall } from "./hook-call.ts";
import { addRename, addTarget, endOf, finished, type Gathering, type Plan } from "./intents.ts";
import { checkoutFolder, fileName, writePrivate } from "./private-files.ts";
import { type ShellWrites, shellWrites } from "./shell-writes.ts";
import { isFolder, targetOf } from "./targets.ts";
import { pictureTree, runGit } from "./tree.ts";
import { noteRead } from "./versions.ts";

const readFilesMax = 50;

export async function planShell(call: HookCall, command: string): Promise<Plan> {
  const writes = shellWrites(command, call.payload.cwd);
  for (const path of writes.named.slice(0, readFilesMax)) noteRead(call.session.agentFolder, path, "/");
  // What may write anything is judged afterwards, with the server's help: without one it cannot be judged.
  const reached = writes.isClear ? null : call.server.call("GET", "/healthz");
  const [plan] = await Promise.all([planOf(writes), rememberTree(call, command, writes), reached]);
  return plan;
}

async function planOf(writes: ShellWrites): Promise<Plan> {
  const found: Gathering = { intents: new Map(), files: new Map(), outside: new Set() };
  for (const { path, isTree } of [...writes.mutated, ...writes.claimed])
    addTarget(found, "MUTATES", targetOf(path, "/", { isTree: isTree || isFolder(path) }));
  for (const { path, isTree: isDeep } of writes.deleted) {
    const isTree = isDeep && (isFolder(path) || /[*?]/.test(path));
    addTarget(found, "DELETES", targetOf(path, "/", { isTree, isLink: true }));
  }
  for (const [from, to] of writes.renamed) addRename(found, from, to);
  for (const [from, to] of writes.copied) addTarget(found, "MUTATES", targetOf(endOf(from, to), "/"));
  for (const { folder, asks } of writes.git) {
    const root = findRepository(folder)?.root;
    if (root === undefined) continue;
    for (const ask of asks ?? []) {
      for (const path of await pathsFromGit(folder, ask))
        addTarget(found, "MUTATES", targetOf(join(root, path), "/", { isLink: true }));
    }
  }
  return finished(found, writes.isClear);
}

async function pathsFromGit(folder: string, ask: readonly string[]): Promise<readonly string[]> {
  const args = ask[0] === "ls-files" ? ["ls-files", "--full-name", ...ask.slice(1)] : ask;
  const output = await runGit(folder, args);
  // --numstat has two counts before each path.
  const lines = (output ?? "").split("\0").filter(Boolean);
  return lines.map((line) => line.replace(/^(?:\d+|-)\t(?:\d+|-)\t/, ""));
}

/** What slips through is found afterwards, by comparison with this. */
async function rememberTree(
  { payload, session, environment }: HookCall,
  command: string,
  writes: ShellWrites,
): Promise<void> {
  for (const folder of writes.commits) {
    const repository = findRepository(folder);
    if (repository !== null) markCommit(checkoutFolder(repository, environment), session.agentId);
  }
  if (writes.isClear) return;
  const root = findRepository(payload.cwd)?.root;
  const picture = root === undefined ? null : await pictureTree(root);
  if (root === undefined || picture === null) return;
  writePrivate(pictureFile(session.agentFolder, payload.toolUseId, command), JSON.stringify({ root, picture }));
}

export function pictureFile(agentFolder: string, toolUseId: string | null, command: string): string {
  return join(agentFolder, "trees", fileName(toolUseId ?? command));
}
