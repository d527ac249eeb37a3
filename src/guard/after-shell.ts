/** After a shell command: its files are noted, and what it changed that its text did not say is found in the tree. */
import { join } from "node:path";
import { findRepository, type Repository } from "../names/repository.ts";
import type { Lease } from "../sdk/wire.ts";
import { type HookAnswer, pass } from "./answers.ts";
import { unmarkCommit } from "./commit-marks.ts";
import type { HookCall } from "./hook-call.ts";
import { judgeUnleased } from "./judging.ts";
import { renew, reportActivity } from "./leasing.ts";
import { checkoutFolder, readPrivateJson, remove } from "./private-files.ts";
import { pictureFile } from "./shell-plan.ts";
import { shellWrites } from "./shell-writes.ts";
import { covers, isOutside, type Target, targetOf } from "./targets.ts";
import { changedPaths, pictureTree, type TreePicture } from "./tree.ts";
import { noteWritten, readWriteMark, versionOf } from "./versions.ts";

/** A tool may ask its user between our word and its write; one that was refused then leaves the mark behind. */
const writingMsMax = 120_000;

export async function afterShell(call: HookCall, command: string): Promise<HookAnswer> {
  const { payload, session, environment } = call;
  const writes = shellWrites(command, payload.cwd);
  for (const folder of writes.commits) {
    const repository = findRepository(folder);
    if (repository !== null) unmarkCommit(checkoutFolder(repository, environment), session.agentId);
  }
  const held = await renew(call);
  const named = [...writes.mutated, ...writes.deleted, ...writes.renamed.flat(), ...writes.copied.flat()];
  await reportActivity(
    call,
    named.flatMap(({ path }) => noteIfHeld(call, path, held) ?? []),
  );
  const file = pictureFile(session.agentFolder, payload.toolUseId, command);
  const earlier = readPrivateJson<Earlier>(file, { root: "string", picture: "object" });
  if (earlier === null) return pass;
  remove(file);
  const now = await pictureTree(earlier.root);
  const repository = findRepository(earlier.root);
  if (now === null || repository === null) return pass;
  const changed = await changedPaths(earlier.root, earlier.picture, now);
  return changed.length === 0 ? pass : await judge(call, repository, changed, held);
}

/** Of what has changed: leased by us is fine, another's own write is not ours, and the rest was not asked for. */
async function judge(
  call: HookCall,
  repository: Repository,
  changed: readonly string[],
  held: readonly Lease[],
): Promise<HookAnswer> {
  const checkout = checkoutFolder(repository, call.environment);
  const targets = changed
    .map((path) => targetOf(join(repository.root, path), "/", { isLink: true }))
    .filter((target): target is Target => !isOutside(target));
  const active: Lease[] = [];
  const unasked = targets.filter((target) => {
    const own = held.find(({ resource }) => covers(resource, target.resource));
    if (own === undefined) return !isOthersWrite(checkout, target, call.session.agentId);
    if (noteWritten(call, target)) active.push(own);
    return false;
  });
  await reportActivity(call, active);
  return await judgeUnleased(call, repository, unasked);
}

/** It writes there now, or what is there is what it wrote. */
function isOthersWrite(checkout: string, { path }: Target, agentId: string): boolean {
  const mark = readWriteMark(checkout, path);
  if (mark === null || mark.agentId === agentId) return false;
  return mark.state === "writing" ? Date.now() - mark.at < writingMsMax : mark.version === versionOf(path);
}

/** The lease that covers it, if it was changed. */
function noteIfHeld(call: HookCall, path: string, held: readonly Lease[]): Lease | null {
  if (/[*?]/.test(path)) return null;
  const target = targetOf(path, "/");
  if (isOutside(target)) return null;
  const own = held.find(({ resource }) => covers(resource, target.resource));
  return own !== undefined && noteWritten(call, target) ? own : null;
}

interface Earlier {
  readonly root: string;
  readonly picture: TreePicture;
}
