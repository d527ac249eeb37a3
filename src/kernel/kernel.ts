/**
 * The kernel's surface. A pure state machine: no I/O, no clock, no randomness. Same commands, same times, same random
 * inputs: same replies, events and records, byte for byte.
 */

import { conclude } from "./aftermath.ts";
import { acquire } from "./commands/acquire.ts";
import {
  dropFailedDigest,
  pauseAgent,
  registerAgent,
  restartAgent,
  transitionAgent,
  verifyAll,
} from "./commands/agents.ts";
import { enrolCell } from "./commands/cell-enrol.ts";
import { cellEnded, cellHeartbeat, cellLeft, readmitCell, reportBinding, withdrawCell } from "./commands/cells.ts";
import { resumeAgent, saveDigest } from "./commands/digests.ts";
import { downgradeLease, revoke, transferLease } from "./commands/handing-over.ts";
import { heartbeat, heartbeatAll, releaseAll, releaseLease, renewLease } from "./commands/holding.ts";
import { cancelRequest, collectRequest } from "./commands/requests.ts";
import { declareResource, fenceResource, resetResource, withdrawResource } from "./commands/resources.ts";
import { submitReceipt } from "./commands/submit-receipt.ts";
import { createTask } from "./commands/task-create.ts";
import { cancelTask, redriveTask } from "./commands/task-ends.ts";
import { heartbeatTask, releaseTask } from "./commands/task-holding.ts";
import { pollTasks } from "./commands/task-poll.ts";
import { setTaskType } from "./commands/task-types.ts";
import {
  createKey,
  createTenant,
  deleteKey,
  setTenantQuotas,
  setTenantSettings,
  suspendTenant,
} from "./commands/tenants.ts";
import { reportViolation } from "./commands/violations.ts";
import type { Command } from "./contract/commands.ts";
import type { KernelEvent } from "./contract/events.ts";
import type { Millis } from "./contract/records.ts";
import type { Reply } from "./contract/replies.ts";
import type { Receipt } from "./contract/task-records.ts";
import { firstOf } from "./index/heap.ts";
import { findTenant } from "./memory/actors.ts";
import type { Handle, State, Turn } from "./memory/state.ts";
import type { ReadyTask } from "./memory/task-state.ts";
import { isDue, settleDue } from "./settle.ts";

export { answerForEnded, answerForEndedTask, dedupeConflict } from "./commands/ended.ts";
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
export { explainTask, type WaitingFor } from "./tasks/task-explain.ts";

export interface Step {
  readonly events: readonly KernelEvent[];
  /** Each record that the step touched, once. Collect them in a set: a batch writes each in its newest form. */
  readonly changes: readonly Handle[];
  /** What was added to the ledger, in order (R1). */
  readonly receipts: readonly Receipt[];
  /** Tasks that can be offered since: held polls are tried again for them. */
  readonly ready: readonly ReadyTask[];
  /** When something is due next, if no command comes; null: never. */
  readonly nextDueAt: Millis | null;
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
  const { events, changes, receipts, ready } = state;
  return { reply, events, changes, receipts, ready, nextDueAt: nextDeadline(state) };
}

/** Does a slice of what is due, so that a hundred thousand ends at once never block the caller. */
export function settle(state: State, now: Millis, limit: number): Settled {
  begin(state);
  const more = settleDue(state, now, limit);
  const { events, changes, receipts, ready } = state;
  return { more, events, changes, receipts, ready, nextDueAt: nextDeadline(state) };
}

export function hasDue(state: State, now: Millis): boolean {
  return isDue(state, now);
}

/** When something is due next if nobody says anything; null: never. */
export function nextDeadline(state: State): Millis | null {
  if (state.unserved.length > 0) return 0;
  const wait = firstOf(state.waits)?.rank ?? Number.POSITIVE_INFINITY;
  const end = firstOf(state.ends)?.rank ?? Number.POSITIVE_INFINITY;
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

function decide(state: State, command: Command, now: Millis): Reply {
  switch (command.type) {
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
    default:
      return decideFor(state, command, now);
  }
}

type OperatorCommand =
  | "create_tenant"
  | "suspend_tenant"
  | "resume_tenant"
  | "set_tenant_settings"
  | "set_tenant_quotas"
  | "create_key"
  | "delete_key";
type TenantCommand = Exclude<Command, { readonly type: OperatorCommand }>;

/** Everything but what operators do is done within the caller's tenant. */
function decideFor(state: State, command: TenantCommand, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const turn = { state, tenant, now };
  const reply = run(turn, command);
  conclude(turn);
  return reply;
}

function run(turn: Turn, command: TenantCommand): Reply {
  switch (command.type) {
    case "register_agent":
      return registerAgent(turn, command);
    case "transition_agent":
      return transitionAgent(turn, command);
    case "restart_agent":
      return restartAgent(turn, command);
    case "pause_agent":
    case "unpause_agent":
      return pauseAgent(turn, command);
    case "save_digest":
      return saveDigest(turn, command);
    case "resume_agent":
      return resumeAgent(turn, command);
    case "drop_digest":
      return dropFailedDigest(turn, command);
    case "verify_all":
      return verifyAll(turn, command);
    case "acquire":
      return acquire(turn, command);
    case "collect_request":
      return collectRequest(turn, command);
    case "cancel_request":
      return cancelRequest(turn, command);
    case "heartbeat":
      return heartbeat(turn, command);
    case "heartbeat_all":
      return heartbeatAll(turn, command);
    case "renew_lease":
      return renewLease(turn, command);
    case "release_lease":
      return releaseLease(turn, command);
    case "release_all":
      return releaseAll(turn, command);
    case "transfer_lease":
      return transferLease(turn, command);
    case "downgrade_lease":
      return downgradeLease(turn, command);
    case "revoke":
      return revoke(turn, command);
    case "report_violation":
      return reportViolation(turn, command);
    case "declare_resource":
      return declareResource(turn, command);
    case "fence_resource":
      return fenceResource(turn, command);
    case "reset_resource":
      return resetResource(turn, command);
    case "withdraw_resource":
      return withdrawResource(turn, command);
    case "bind_confirmed":
    case "bind_failed":
    case "teardown_confirmed":
    case "teardown_failed":
      return reportBinding(turn, command);
    case "enrol_cell":
      return enrolCell(turn, command);
    case "cell_heartbeat":
      return cellHeartbeat(turn, command);
    case "cell_left":
      return cellLeft(turn, command);
    case "cell_ended":
      return cellEnded(turn, command);
    case "withdraw_cell":
      return withdrawCell(turn, command);
    case "readmit_cell":
      return readmitCell(turn, command);
    case "create_task":
      return createTask(turn, command);
    case "cancel_task":
      return cancelTask(turn, command);
    case "redrive_task":
      return redriveTask(turn, command);
    case "poll_tasks":
      return pollTasks(turn, command);
    case "heartbeat_task":
      return heartbeatTask(turn, command);
    case "release_task":
      return releaseTask(turn, command);
    case "set_task_type":
      return setTaskType(turn, command);
    case "submit_receipt":
      return submitReceipt(turn, command);
  }
}
