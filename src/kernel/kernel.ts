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
import {
  cellEnded,
  cellHeartbeat,
  cellLeft,
  findCell,
  findCellToManage,
  readmitCell,
  reportBinding,
  withdrawCell,
} from "./commands/cells.ts";
import { resumeAgent, saveDigest } from "./commands/digests.ts";
import { downgradeLease, revoke, transferLease } from "./commands/handing-over.ts";
import { findLease, heartbeat, heartbeatAll, releaseAll, releaseLease, renewLease } from "./commands/holding.ts";
import { cancelRequest, collectRequest } from "./commands/requests.ts";
import { declareResource, fenceResource, findName, resetResource, withdrawResource } from "./commands/resources.ts";
import { submitReceipt } from "./commands/submit-receipt.ts";
import { createTask } from "./commands/task-create.ts";
import { cancelTask, findForPrincipal, redriveTask } from "./commands/task-ends.ts";
import { findTaskLease, heartbeatTask, releaseTask } from "./commands/task-holding.ts";
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
import type { Refusal } from "./contract/refusals.ts";
import type { Reply } from "./contract/replies.ts";
import type { Receipt } from "./contract/task-records.ts";
import { firstOf } from "./index/heap.ts";
import { agentOf, findTenant } from "./memory/actors.ts";
import type { Handle, State, Turn } from "./memory/state.ts";
import type { ReadyTask } from "./memory/task-state.ts";
import { isDue, settleDue } from "./settle.ts";

export { answerForEnded, answerForEndedTask, dedupeConflict } from "./commands/ended.ts";
export { createState, type Handle, type State } from "./memory/state.ts";
export type { ReadyTask } from "./memory/task-state.ts";
export { receiptFingerprint } from "./names/fingerprint.ts";
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

type Handler<K extends Command["type"]> = (turn: Turn, command: Extract<Command, { readonly type: K }>) => Reply;

/** Every command within a tenant. Most begin by finding what they act on; see `on`. */
const handlers = {
  register_agent: registerAgent,
  transition_agent: on(agentOf, transitionAgent),
  restart_agent: on(agentOf, restartAgent),
  pause_agent: pauseAgent,
  unpause_agent: pauseAgent,
  save_digest: on(agentOf, saveDigest),
  resume_agent: on(agentOf, resumeAgent),
  drop_digest: on(agentOf, dropFailedDigest),
  verify_all: on(agentOf, verifyAll),
  acquire: on(agentOf, acquire),
  collect_request: collectRequest,
  cancel_request: cancelRequest,
  heartbeat: on(findLease, heartbeat),
  heartbeat_all: on(agentOf, heartbeatAll),
  renew_lease: on(findLease, renewLease),
  release_lease: on(findLease, releaseLease),
  release_all: on(agentOf, releaseAll),
  transfer_lease: on(findLease, transferLease),
  downgrade_lease: on(findLease, downgradeLease),
  revoke,
  report_violation: on(agentOf, reportViolation),
  declare_resource: on(findName, declareResource),
  fence_resource: on(findName, fenceResource),
  reset_resource: on(findName, resetResource),
  withdraw_resource: on(findName, withdrawResource),
  bind_confirmed: reportBinding,
  bind_failed: reportBinding,
  teardown_confirmed: reportBinding,
  teardown_failed: reportBinding,
  enrol_cell: enrolCell,
  cell_heartbeat: on(findCell, cellHeartbeat),
  cell_left: on(findCell, cellLeft),
  cell_ended: on(findCell, cellEnded),
  withdraw_cell: on(findCellToManage, withdrawCell),
  readmit_cell: on(findCellToManage, readmitCell),
  create_task: createTask,
  cancel_task: on(findForPrincipal, cancelTask),
  redrive_task: on(findForPrincipal, redriveTask),
  poll_tasks: pollTasks,
  heartbeat_task: on(findTaskLease, heartbeatTask),
  release_task: on(findTaskLease, releaseTask),
  set_task_type: setTaskType,
  submit_receipt: submitReceipt,
} satisfies { readonly [K in Command["type"]]?: Handler<K> };

type TenantCommand = Extract<Command, { readonly type: keyof typeof handlers }>;

/** Everything but what operators do is done within the caller's tenant. */
function decideFor(state: State, command: TenantCommand, now: Millis): Reply {
  const tenant = findTenant(state, command.tenant);
  if ("code" in tenant) return tenant;
  const turn = { state, tenant, now };
  const handle = handlers[command.type] as (turn: Turn, command: TenantCommand) => Reply;
  const reply = handle(turn, command);
  conclude(turn);
  return reply;
}

/** A command on something that the caller must be allowed to act on: `find` gives it, or refuses. */
function on<C, Found extends object>(
  find: (turn: Turn, command: C) => Found | Refusal,
  act: (turn: Turn, found: Found, command: C) => Reply,
): (turn: Turn, command: C) => Reply {
  return (turn, command) => {
    const found = find(turn, command);
    return isRefusal(found) ? found : act(turn, found, command);
  };
}

/** Not `in`: among many kinds of objects a property is loaded faster than looked for. */
function isRefusal(found: object): found is Refusal {
  return (found as Partial<Refusal>).type === "refused";
}
