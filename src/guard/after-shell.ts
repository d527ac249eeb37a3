/** After a shell command: its files are noted, and what it changed that its text did not say is found in the tree. */
import { join } from "node:path";
import { findRepository, type Repository } from "../names/repository.ts";
import type { Lease } from "../sdk/wire.ts";
import { type HookAnswer, pass } from "./answers.ts";
import { unmarkCommit } from "./commit-marks.ts";
import { releaseGit } from "./git-lease.ts";
import { changedLooks, looksOf, placesOf } from "./held-files.ts";
import type { HookCall } from "./hook-call.ts";
import { judgeUnleased } from "./judging.ts";
import { heldByOthers, renew, reportActivity } from "./leasing.ts";
import { ownNames } from "./own-leases.ts";
import { checkoutFolder, readPrivateJson, remove } from "./private-files.ts";
import { type Earlier, pictureFile } from "./shell-plan.ts";
import { shellWrites } from "./shell-writes.ts";
import { covers, isOutside, type Target, targetOf } from "./targets.ts";
import { changedPaths, pictureTree } from "./tree.ts";
import { noteWritten, readWriteMark, versionOf } from "./versions.ts";

/** A tool may ask its user between our word and its write; one that was refused then leaves the mark behind. */
const writingMsMax = 120_000;

/** `isUnseen`: there is no picture of the tree from before it, so the files that others hold are compared with what they wrote. */
export async function afterShell(call: HookCall, command: string, isUnseen: boolean): Promise<HookAnswer> {
  const { payload, session, environment } = call;
  const writes = shellWrites(command, payload.cwd);
  for (const folder of writes.commits) {
    const repository = findRepository(folder);
    if (repository !== null) unmarkCommit(checkoutFolder(repository, environment), session.agentId);
  }
  if (writes.shared.length > 0) await releaseGit(call);
  const held = await renew(call);
  const named = [...writes.mutated, ...writes.deleted, ...writes.renamed.flat(), ...writes.copied.flat()];
  await reportActivity(
    call,
    named.flatMap(({ path }) => noteIfHeld(call, path, held) ?? []),
  );
  const file = pictureFile(session.agentFolder, payload.toolUseId, command);
  const earlier = readPrivateJson<Earlier>(file, { folder: "string" });
  if (earlier === null) return isUnseen ? await judgeUnseen(call, held) : pass;
  remove(file);
  const repository = findRepository(earlier.folder);
  if (repository === null) return pass;
  const { changed, notice } = await compare(call, repository, earlier);
  const answer = changed.length === 0 ? pass : await judge(call, repository, changed, held);
  return { ...answer, notice };
}

interface Comparison {
  readonly changed: readonly string[];
  readonly notice: string | null;
}

async function compare(call: HookCall, repository: Repository, { tree, held }: Earlier): Promise<Comparison> {
  if (held !== null) return { changed: changedLooks(repository.root, held), notice: tooLarge(held.isWhole) };
  if (tree === null) return { changed: [], notice: null };
  const now = await pictureTree(repository);
  if (now !== null) return { changed: await changedPaths(repository, tree, now), notice: null };
  // The command has made the tree too large. What others hold was clean before it, or in that picture.
  const others = await heldByOthers(call.server, repository.name, ownNames(call.session));
  const places = placesOf(repository, others);
  const part = places.length === 0 ? { head: tree.head, files: {} } : await pictureTree(repository, places);
  if (part === null) return { changed: [], notice: tooLarge(null) };
  const changed = await changedPaths(repository, tree, part);
  const isHeld = (path: string) => others.some(({ resource }) => covers(resource, `FILE:/${repository.name}/${path}`));
  return { changed: changed.filter(isHeld), notice: tooLarge(true) };
}

/** Of what others hold, the files whose content is not what their holder is known to have written last. */
async function judgeUnseen(call: HookCall, held: readonly Lease[]): Promise<HookAnswer> {
  const { payload, session, environment } = call;
  const repository = findRepository(payload.cwd);
  if (repository === null) return pass;
  const checkout = checkoutFolder(repository, environment);
  const others = await heldByOthers(call.server, repository.name, ownNames(session));
  const changed = Object.keys(looksOf(repository, others).files).filter((path) => {
    const mark = readWriteMark(checkout, join(repository.root, path));
    return mark !== null && mark.version !== versionOf(join(repository.root, path));
  });
  return changed.length === 0 ? pass : await judge(call, repository, changed, held);
}

/** What was compared instead: all that others hold, a part of it, or nothing (null). */
function tooLarge(isWhole: boolean | null): string {
  const why = "Leasehold: this tree is too large to compare as a whole, or git takes too long, or is not there";
  if (isWhole === null) return `${why}; so it is not known whether that command changed what other agents hold.`;
  return `${why}; only the files that other agents hold were compared after that command${isWhole ? "" : ", and not all of them: there are too many"}.`;
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
