/** A manifest is granted whole or not at all (W6), and a wait ends in one of the ways that W2 allows. */
import { limits } from "../../src/kernel/contract/limits.ts";
import type { Request } from "../../src/kernel/contract/records.ts";
import type { RecordStore } from "../record-store.ts";
import { type Step, violated } from "./step.ts";
import { claimsOf } from "./tenant-view.ts";

const waitEndsAs: readonly Request["state"][] = [
  "WAITING",
  "BINDING",
  "GRANTED",
  "TIMED_OUT",
  "CANCELED",
  "PAUSED",
  "BIND_FAILED",
];

export function checkRequestChanges(step: Step): void {
  for (const change of step.changes) {
    if (change.kind !== "request") continue;
    const { before, after } = change;
    if (before !== null && before.holder !== before.agentId) continue; // A task's: see task-waits.ts.
    if (before?.state === "WAITING" && after === null)
      violated("W2", "a waiting request disappeared without an outcome", before);
    if (after === null) continue;
    if (after.forgetAt !== null && before?.forgetAt === null) checkMemory(step.store, after);
    if (before !== null) checkSteady(before, after);
    if (before?.state === "WAITING" && !waitEndsAs.includes(after.state))
      violated("W2", "a wait ended in an unexpected state", after);
    if (before?.state === "WAITING" && after.state === "TIMED_OUT" && step.now < before.timeoutAt) {
      violated("W4", "a wait timed out too early", before, after);
    }
    if ((after.state === "GRANTED" || after.state === "BINDING") && before?.state !== "GRANTED") {
      checkWhole(step.store, after);
    }
    const holdsNothing = after.state !== "GRANTED" && after.state !== "BINDING";
    if (holdsNothing && after.leaseIds.some((id) => isLive(step.store, after, id))) {
      violated("W6", "a request that was not granted has a live lease", after);
    }
  }
}

/** What was granted at once is in the reply, and all its leases are live. */
export function checkGrantReply({ command, reply, store }: Step): void {
  if (command?.type !== "acquire" || command.dryRun || reply?.type !== "granted") return;
  const names = command.intents.reduce(
    (sum, intent) => sum + (intent.to === null || intent.to === undefined ? 1 : 2),
    0,
  );
  if (reply.leases.length !== names) violated("W6", `${reply.leases.length} leases for ${names} names`, command, reply);
  for (const lease of reply.leases) {
    const isThere = store.lease.has(`${lease.tenant} ${lease.id}`);
    const hasEnded = lease.state === "RELEASED" || lease.state === "EXPIRED" || lease.state === "REVOKED";
    if (!isThere && !hasEnded && command.requestKey === null) violated("W6", "a granted lease is not live", lease);
  }
}

/** Ids follow the manifest's order, so each lease can be compared with its intent. */
function checkWhole(store: RecordStore, request: Request): void {
  const claims = claimsOf(request.intents, request.picked);
  if (request.leaseIds.length !== claims.length) violated("W6", "a manifest was granted in part", request);
  for (const [index, claim] of claims.entries()) {
    const id = request.leaseIds[index] ?? "";
    const lease = store.lease.get(`${request.tenant} ${id}`) ?? request.ended.find((ended) => ended.id === id);
    // Transferred within the same step, which no command does, or never granted.
    if (lease === undefined) violated("W6", `lease ${index} of a granted manifest is missing`, request);
    if (lease.resource !== claim.resource || lease.units !== claim.units) {
      violated("W6", "a lease is not what was asked for", request, lease);
    }
  }
}

/** W10: a limited number per tenant is remembered; the oldest are forgotten first. */
function checkMemory({ request: requests }: RecordStore, { tenant }: Request): void {
  let remembered = 0;
  for (const one of requests.values()) {
    if (one.forgetAt !== null && one.tenant === tenant) remembered++;
  }
  if (remembered > limits.requestMemoryPerTenantMax)
    violated("W10", `${remembered} ended requests are remembered`, tenant);
}

function checkSteady(before: Request, after: Request): void {
  const isSteady =
    before.arrival === after.arrival &&
    before.timeoutAt === after.timeoutAt &&
    before.agentId === after.agentId &&
    JSON.stringify(before.intents) === JSON.stringify(after.intents);
  if (!isSteady) violated("W4", "a request's place, end or content has changed", before, after);
}

/** A transferred lease no longer belongs to the request that it was granted to. */
function isLive(store: RecordStore, request: Request, id: string): boolean {
  const lease = store.lease.get(`${request.tenant} ${id}`);
  return lease !== undefined && lease.state !== "CLOSING";
}
