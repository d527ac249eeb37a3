/**
 * The kernel's surface. A pure state machine: no I/O, no clock, no randomness. Same commands, same times, same random
 * inputs: same replies, events and records, byte for byte.
 */

import {
  dropFailedDigest,
  pauseAgent,
  registerAgent,
  restartAgent,
  transitionAgent,
  verifyAll,
} from "./agents/agents.ts";
import { resumeAgent, saveDigest } from "./agents/digests.ts";
import type { Command } from "./contract/commands.ts";
import type { KernelEvent } from "./contract/events.ts";
import type { Millis } from "./contract/records.ts";
import type { Reply } from "./contract/replies.ts";
import type { Receipt } from "./contract/task-records.ts";
import { earliest } from "./index/heap.ts";
import { downgradeLease, revoke, transferLease } from "./leases/handing-over.ts";
import { heartbeat, heartbeatAll, releaseAll, releaseLease, renewLease } from "./leases/holding.ts";
import { reportViolation } from "./leases/violations.ts";
import type { Handle, State } from "./memory/state.ts";
import type { ReadyTask } from "./memory/task-state.ts";
import { submitReceipt } from "./receipts/submit-receipt.ts";
import { acquire } from "./requests/acquire.ts";
import { cancelRequest, collectRequest } from "./requests/requests.ts";
import { enrolCell } from "./resources/cell-enrol.ts";
import { cellEnded, cellHeartbeat, cellLeft, readmitCell, reportBinding, withdrawCell } from "./resources/cells.ts";
import { declareResource, fenceResource, resetResource, withdrawResource } from "./resources/resources.ts";
import { isDue, serveFreed, settleDue } from "./settle.ts";
import { createTask } from "./tasks/task-create.ts";
import { cancelTask, redriveTask } from "./tasks/task-ends.ts";
import { heartbeatTask, releaseTask } from "./tasks/task-holding.ts";
import { pollTasks } from "./tasks/task-poll.ts";
import { setTaskType } from "./tasks/task-types.ts";
import {
  createKey,
  createTenant,
  deleteKey,
  setTenantQuotas,
  setTenantSettings,
  suspendTenant,
} from "./tenants/tenants.ts";

export { answerForEnded } from "./leases/ended.ts";
export { createState, type Handle, type State } from "./memory/state.ts";
export type { ReadyTask } from "./memory/task-state.ts";
export { receiptFingerprint } from "./receipts/receipt-content.ts";
export {
  beginRestore,
  endRestore,
  jumpFences,
  liveHandles,
  type RestoredRecord,
  type Restoring,
  restore,
  restoreLeases,
  snapshot,
} from "./restore.ts";
export { answerForEndedTask } from "./tasks/task-ended.ts";
export { explainTask, type WaitingFor } from "./tasks/task-explain.ts";

export interface Step {
  readonly events: readonly KernelEvent[];
  /** Each record that the step touched, once. Collect them in a set: a batch writes each in its newest form. */
  readonly changes: readonly Handle[];
  /** What was added to the ledger, in order (R1). */
  readonly receipts: readonly Receipt[];
  /** Tasks that can be offered since: whoever holds polls open asks again for them. */
  readonly ready: readonly ReadyTask[];
}

export interface Outcome extends Step {
  readonly reply: Reply;
}

export interface Settled extends Step {
  readonly more: boolean;
}

/** Settles all that is due by now, so that no rule can meet a holder whose time has run out (L3), and then decides. */
export function apply(state: State, command: Command, now: Millis): Outcome {
  begin(state);
  settleDue(state, now, Number.POSITIVE_INFINITY);
  const reply = decide(state, command, now);
  serveFreed(state, now);
  return { reply, ...stepOf(state) };
}

/** Does a slice of what is due, so that a hundred thousand ends at once never hold up whoever runs the kernel. */
export function settle(state: State, now: Millis, limit: number): Settled {
  begin(state);
  const more = settleDue(state, now, limit);
  return { more, ...stepOf(state) };
}

export function hasDue(state: State, now: Millis): boolean {
  return isDue(state, now);
}

/** When something is due next if nobody says anything; null: never. */
export function nextDeadline(state: State): Millis | null {
  if (state.unserved.length > 0) return 0;
  const wait = earliest(state.waits)?.dueAt ?? Number.POSITIVE_INFINITY;
  const end = earliest(state.ends)?.dueAt ?? Number.POSITIVE_INFINITY;
  const next = Math.min(wait, end);
  return next === Number.POSITIVE_INFINITY ? null : next;
}

function begin(state: State): void {
  state.step++;
  state.events = [];
  state.changes = [];
  state.receipts = [];
  state.ready = [];
}

function stepOf({ events, changes, receipts, ready }: State): Step {
  return { events, changes, receipts, ready };
}

function decide(state: State, command: Command, now: Millis): Reply {
  switch (command.type) {
    case "register_agent":
      return registerAgent(state, command, now);
    case "transition_agent":
      return transitionAgent(state, command, now);
    case "restart_agent":
      return restartAgent(state, command, now);
    case "pause_agent":
    case "unpause_agent":
      return pauseAgent(state, command, now);
    case "save_digest":
      return saveDigest(state, command, now);
    case "resume_agent":
      return resumeAgent(state, command, now);
    case "drop_digest":
      return dropFailedDigest(state, command, now);
    case "verify_all":
      return verifyAll(state, command, now);
    case "acquire":
      return acquire(state, command, now);
    case "collect_request":
      return collectRequest(state, command);
    case "cancel_request":
      return cancelRequest(state, command, now);
    case "heartbeat":
      return heartbeat(state, command, now);
    case "heartbeat_all":
      return heartbeatAll(state, command, now);
    case "renew_lease":
      return renewLease(state, command, now);
    case "release_lease":
      return releaseLease(state, command, now);
    case "release_all":
      return releaseAll(state, command, now);
    case "transfer_lease":
      return transferLease(state, command, now);
    case "downgrade_lease":
      return downgradeLease(state, command, now);
    case "revoke":
      return revoke(state, command, now);
    case "report_violation":
      return reportViolation(state, command, now);
    case "declare_resource":
      return declareResource(state, command, now);
    case "fence_resource":
      return fenceResource(state, command, now);
    case "reset_resource":
      return resetResource(state, command, now);
    case "withdraw_resource":
      return withdrawResource(state, command, now);
    case "bind_confirmed":
    case "bind_failed":
    case "teardown_confirmed":
    case "teardown_failed":
      return reportBinding(state, command, now);
    case "enrol_cell":
      return enrolCell(state, command, now);
    case "cell_heartbeat":
      return cellHeartbeat(state, command, now);
    case "cell_left":
      return cellLeft(state, command, now);
    case "cell_ended":
      return cellEnded(state, command, now);
    case "withdraw_cell":
      return withdrawCell(state, command, now);
    case "readmit_cell":
      return readmitCell(state, command, now);
    case "create_tenant":
      return createTenant(state, command, now);
    case "suspend_tenant":
    case "resume_tenant":
      return suspendTenant(state, command, now);
    case "set_tenant_settings":
      return setTenantSettings(state, command, now);
    case "set_tenant_quotas":
      return setTenantQuotas(state, command, now);
    case "create_key":
      return createKey(state, command, now);
    case "delete_key":
      return deleteKey(state, command);
    case "create_task":
      return createTask(state, command, now);
    case "cancel_task":
      return cancelTask(state, command, now);
    case "redrive_task":
      return redriveTask(state, command, now);
    case "poll_tasks":
      return pollTasks(state, command, now);
    case "heartbeat_task":
      return heartbeatTask(state, command, now);
    case "release_task":
      return releaseTask(state, command, now);
    case "set_task_type":
      return setTaskType(state, command);
    case "submit_receipt":
      return submitReceipt(state, command, now);
  }
}
