/**
 * The kernel holds live records only. When it answers `lease_unknown` or `task_unknown`, the engine looks the record up
 * in history and asks here what the answer is, so that the rules about what has ended are the kernel's too (L4, L5,
 * L13, T4, T13).
 */

import type { Actor, Command } from "../contract/commands.ts";
import type { EndedLeaseState, EndedRequest, Lease } from "../contract/records.ts";
import { refuse } from "../contract/refusals.ts";
import type { Refusal, Reply } from "../contract/replies.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import type { EndedTask, Task } from "../contract/task-records.ts";
import { endedRefusal } from "../deciding/extension.ts";
import { isAbove } from "../memory/actors.ts";
import { isSameReceipt } from "../names/fingerprint.ts";
import { dedupeConflict, findMark } from "../receipts/marks.ts";
import { endOfGrant } from "../requests/stored-keys.ts";
import { notHolder } from "./holding.ts";
import { notDead, whyNotPrincipal } from "./tasks.ts";

export function answerForEnded(command: Command, unknown: Refusal, ended: Lease | null): Reply {
  if (ended === null) return unknown;
  if (!maySee(command.actor, ended)) return notHolder(ended.id);
  if (command.type === "release_lease") return { type: "lease", lease: ended };
  if (command.type === "revoke") return { type: "revoked", count: 0 };
  return endedRefusal(ended.id, ended.state as EndedLeaseState, ended.endReason);
}

/** W10: for a request whose key the store was asked for, and has. */
export function answerForStoredKey(
  { fingerprint }: Pick<EndedRequest, "fingerprint">,
  { fingerprint: first, leaseId, endedAs, endReason }: EndedRequest,
): Refusal {
  return first === fingerprint ? endedRefusal(leaseId, endedAs, endReason) : keyReused();
}

export function keyReused(): Refusal {
  return refuse("request_id_reused", "This request_id was used for another request; take a new one.", {
    field: "request_id",
  });
}

/** W10: for a request that left no record and has no live lease; `ended` are those that were granted through it. */
export function answerForEndedRequest(command: Command, unknown: Refusal, ended: readonly Lease[]): Reply {
  const [first] = ended;
  if (first === undefined) return unknown;
  const seen = ended.filter((lease) => maySee(command.actor, lease));
  if (seen.length === 0) return notHolder(first.id);
  if (command.type === "cancel_request") return { type: "done" };
  const lease = endOfGrant(seen);
  return endedRefusal(lease.id, lease.state as EndedLeaseState, lease.endReason);
}

function maySee(actor: Actor, lease: Lease): boolean {
  return isAbove(actor) || actor.agentId === lease.agentId;
}

export function answerForEndedTask(command: Command, unknown: Refusal, ended: EndedTask | null): Reply {
  if (ended === null) return unknown;
  switch (command.type) {
    case "cancel_task":
      return whyNotPrincipal(command.actor, ended) ?? { type: "task", task: ended, created: false, warnings: [] };
    case "redrive_task":
      return whyNotPrincipal(command.actor, ended) ?? notDead(ended);
    case "submit_receipt":
      return answerForLateReceipt(command.receipt, ended);
    default:
      return unknown;
  }
}

/** T13's last row: the first answer again for what was said before, and for everything else the receipt that won. */
export function answerForLateReceipt(receipt: ReceiptInput, ended: Task): Reply {
  const mark = findMark(ended, receipt);
  if (mark === undefined) return alreadyCompleted(ended);
  if (!isSameReceipt(mark.fingerprint, receipt)) return dedupeConflict();
  return { type: "receipt_known", receiptId: mark.receiptId };
}

function alreadyCompleted({ id, status, winningReceiptId }: Task): Refusal {
  const detail = `The task has ended (${status}); its result stands, and this receipt was not stored.`;
  if (winningReceiptId === null) return refuse("already_completed", detail, { taskId: id });
  return refuse("already_completed", detail, { taskId: id, winningReceiptId });
}
