/** Files that a session wrote without a lease: leased for it now if they are free, and else a violation. */
import type { Repository } from "../names/repository.ts";
import { type HookAnswer, pass } from "./answers.ts";
import { type HookCall, purposeOf } from "./hook-call.ts";
import { heldByOthers, lease } from "./leasing.ts";
import { ownNames } from "./own-leases.ts";
import { checkoutFolder } from "./private-files.ts";
import { covers, type Target } from "./targets.ts";
import { markWrite, noteWritten, versionOf } from "./versions.ts";
import { logViolation, reportViolations, violationWords } from "./violations.ts";
import { changedReason } from "./words.ts";

const reportedMax = 100;

export async function judgeUnleased(
  call: HookCall,
  repository: Repository,
  unleased: readonly Target[],
): Promise<HookAnswer> {
  if (unleased.length === 0) return pass;
  const checkout = checkoutFolder(repository, call.environment);
  const { agentId } = call.session;
  const own = ownNames(call.session);
  const all = await heldByOthers(call.server, repository.name, [agentId]);
  const others = all.filter(({ id }) => !own.includes(id));
  // Its model holds these by another way.
  const isOwn = ({ resource }: Target) => all.some((one) => own.includes(one.id) && covers(one.resource, resource));
  const targets = unleased.filter((target) => !isOwn(target));
  for (const target of unleased.filter(isOwn)) noteWritten(call, target);
  if (targets.length === 0) return pass;
  const violations = targets.flatMap((target) => {
    const holder = others.find(({ resource }) => covers(resource, target.resource));
    return holder === undefined ? [] : [{ target, holder }];
  });
  const free = targets.filter((target) => !violations.some((one) => one.target === target)).slice(0, reportedMax);
  let told = "";
  if (free.length > 0) {
    const intents = free.map(({ resource }) => ({ predicate: "MUTATES" as const, resource }));
    const verdict = await lease(call, intents, purposeOf(call), 0);
    if (verdict.kind === "granted") {
      for (const target of free) noteWritten(call, target);
      if (verdict.changes.length > 0) told = ` ${changedReason(verdict.changes)}`;
    }
  }
  if (violations.length > 0) {
    for (const violation of violations) {
      logViolation(checkout, call, violation);
      // So that the holder learns, at its next write, who wrote.
      const { path } = violation.target;
      markWrite(checkout, path, { agentId, state: "written", version: versionOf(path), at: Date.now() });
    }
    await reportViolations(call, violations);
    return { ...pass, violation: violationWords(violations) };
  }
  const names = free.slice(0, 5).map(({ resource }) => resource);
  const more = free.length - names.length;
  const shown = `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
  return {
    ...pass,
    context: `Leasehold: that also changed ${shown}, which was not leased before; it was free, and is leased for you now.${told}`,
  };
}
