/**
 * The kernel's surface. A pure state machine: no I/O, no clock, no randomness. Same commands, same times, same random
 * inputs: same replies, events and records, byte for byte.
 */

import { conclude } from "./aftermath.ts";
import { auditCommand, recordAudit } from "./audit.ts";
import { acquire } from "./commands/acquire.ts";
import * as agents from "./commands/agents.ts";
import { enrolCell } from "./commands/cell-enrol.ts";
import * as cells from "./commands/cells.ts";
import { recoverObligation } from "./commands/custody.ts";
import { adoptDirectory } from "./commands/directory.ts";
import * as handingOver from "./commands/handing-over.ts";
import * as holding from "./commands/holding.ts";
import * as keys from "./commands/keys.ts";
import * as policies from "./commands/policies.ts";
import * as requests from "./commands/requests.ts";
import * as resources from "./commands/resources.ts";
import { submitReceipt } from "./commands/submit-receipt.ts";
import * as taskCreate from "./commands/task-create.ts";
import { pollTasks } from "./commands/task-poll.ts";
import * as tasks from "./commands/tasks.ts";
import * as tenants from "./commands/tenants.ts";
import type { AuditEntry } from "./contract/audit-records.ts";
import { audited } from "./contract/audited.ts";
import type { Command } from "./contract/commands.ts";
import type { KernelEvent } from "./contract/events.ts";
import { limits } from "./contract/limits.ts";
import type { Digest, Millis, RecordKind, RecordOf } from "./contract/records.ts";
import type { Refusal } from "./contract/refusals.ts";
import type { Reply } from "./contract/replies.ts";
import type { Payload, Receipt } from "./contract/task-records.ts";
import { type LostHistory, reissueAll } from "./lost-history.ts";
import { agentOf, findTenant } from "./memory/actors.ts";
import { away, createEntry } from "./memory/entries.ts";
import type { Job } from "./memory/jobs.ts";
import { countMemory } from "./memory/memory-use.ts";
import {
  type DigestEntry,
  type Handle,
  nextDeadline,
  type State,
  type TenantEntry,
  type Turn,
} from "./memory/state.ts";
import { isPayloadAway, type PayloadEntry, type ReadyTask, type TaskEntry } from "./memory/task-state.ts";
import type { Later } from "./requests/sweep.ts";
import { settleDue } from "./settle.ts";

export { auditEntryOf } from "./audit.ts";
export {
  answerForEnded,
  answerForEndedRequest,
  answerForEndedTask,
  answerForLateReceipt,
  answerForStoredKey,
} from "./commands/ended.ts";
export { answerForRepeated } from "./commands/task-create.ts";
export { type LostHistory, numberBeyond } from "./lost-history.ts";
export type { Job } from "./memory/jobs.ts";
export { createState, type Handle, nextDeadline, type State } from "./memory/state.ts";
export type { ReadyTask } from "./memory/task-state.ts";
export { receiptFingerprint } from "./names/fingerprint.ts";
export { dedupeConflict } from "./receipts/marks.ts";
export { endedRequestOf, endedRequestOfLease } from "./requests/stored-keys.ts";
export {
  beginRestore,
  type EndedLeases,
  endRestore,
  liveHandles,
  type RestoredRecord,
  type Restoring,
  restore,
  restoreLeases,
  snapshot,
} from "./restore.ts";
export { type DueItem, SettleFault, setAside } from "./settle.ts";
export { findStoredConflict } from "./stored-conflicts.ts";
export type { WaitingFor } from "./tasks/task-explain.ts";

export interface Step {
  readonly events: readonly KernelEvent[];
  /** Each record that the step touched, once. Collect them in a set: a batch writes each in its newest form. */
  readonly changes: readonly Handle[];
  /** What was added to the ledger, in order (R1). */
  readonly receipts: readonly Receipt[];
  /** Tasks that can be offered since: held polls are tried again for them. */
  readonly ready: readonly ReadyTask[];
  /** For the audit log (S7). */
  readonly audits: readonly AuditEntry[];
  /** When something is due next if no command comes; infinity: never. */
  readonly nextDueAt: Millis;
}

export interface Outcome extends Step {
  readonly reply: Reply;
}

/** The answer of a command that is not done yet. */
export type PendingReply = Later<Reply>;

export interface Begun extends Step {
  readonly reply: Reply | PendingReply;
}

export interface Advanced extends Step {
  /** The job that was finished. */
  readonly done: Job | null;
}

export interface Settled extends Step {
  readonly more: boolean;
}

/** Settles all that is due by now, so that no rule can meet a holder whose time has run out (L3), and then decides. */
export function apply(state: State, command: Command, now: Millis): Outcome {
  const begun = applySlice(state, command, now, Number.POSITIVE_INFINITY);
  if (begun.reply.type === "later") throw new Error(`${command.type} waits for a job that was begun in slices.`);
  return begun as Outcome;
}

/** The same, but what ends more than `limit` records goes on as a job; the command is answered when that is done. */
export function applySlice(state: State, command: Command, now: Millis, limit: number): Begun {
  begin(state, limit);
  if (nextDeadline(state) <= now) settleDue(state, now, Number.POSITIVE_INFINITY);
  const reply = decide(state, command, now);
  // A field of a known object is compared faster than a table is searched, and most commands are one of these two.
  const { type } = command;
  if (type !== "acquire" && type !== "release_lease" && audited[type]) auditCommand(state, command, reply, now);
  countMemory(state, state.changes);
  const { events, changes, receipts, ready, audits } = state;
  return { reply, events, changes, receipts, ready, audits, nextDueAt: nextDeadline(state) };
}

/** Does a slice of what is due, so that a hundred thousand ends at once never block the caller. */
export function settle(state: State, now: Millis, limit: number): Settled {
  begin(state, Math.max(limit, limits.recordsPerStepMax));
  const more = settleDue(state, now, limit);
  countMemory(state, state.changes);
  const { events, changes, receipts, ready, audits } = state;
  return { more, events, changes, receipts, ready, audits, nextDueAt: nextDeadline(state) };
}

/** Does a slice of the first job (L14). The caller settles what is due before it, as before a command (L3). */
export function advance(state: State, now: Millis, limit: number): Advanced {
  begin(state, limit);
  const [job] = state.jobs;
  if (job !== undefined) {
    const turn = { state, tenant: job.tenant, now };
    job.run(turn, limit);
    conclude(turn);
    if (job.isDone) state.jobs.splice(state.jobs.indexOf(job), 1);
  }
  countMemory(state, state.changes);
  const { events, changes, receipts, ready, audits } = state;
  const done = job?.isDone ? job : null;
  return { done, events, changes, receipts, ready, audits, nextDueAt: nextDeadline(state) };
}

/** Answers a command whose job is done. */
export function answerLater(state: State, { job, reply: answer }: PendingReply, now: Millis): Begun {
  begin(state, Number.POSITIVE_INFINITY);
  const turn = { state, tenant: job.tenant, now };
  const reply = answer(turn);
  conclude(turn);
  countMemory(state, state.changes);
  const { events, changes, receipts, ready, audits } = state;
  return { reply, events, changes, receipts, ready, audits, nextDueAt: nextDeadline(state) };
}

/** Whether work is left that is done in slices. */
export function hasJobs({ jobs }: State): boolean {
  return jobs.length > 0;
}

/** L11: to be committed before anything else is decided. */
export function jumpAhead(state: State, lost: LostHistory, now: Millis): Step {
  begin(state, Number.POSITIVE_INFINITY);
  reissueAll(state, lost, now);
  countMemory(state, state.changes);
  const { events, changes, receipts, ready, audits } = state;
  return { events, changes, receipts, ready, audits, nextDueAt: nextDeadline(state) };
}

/** S7: a change that is not a command of the kernel. */
export function audit(state: State, entry: AuditEntry): Step {
  begin(state, Number.POSITIVE_INFINITY);
  recordAudit(state, entry);
  const { events, changes, receipts, ready, audits } = state;
  return { events, changes, receipts, ready, audits, nextDueAt: nextDeadline(state) };
}

/*
 * S4: what is large and not decided with is the store's: tasks' bodies and inputs, and digests' contexts. Memory has it until
 * it is stored, and as long as the engine finds room for it. Without it, what needs it is answered with `payload_away`, and
 * offers come without.
 */

/** What a record that has changed carries of it; null: nothing. */
export function carriedBy(handle: Handle): Payload | Digest | null {
  if (handle.kind === "payload") return handle.record as Payload;
  return handle.kind === "digest" && !isAway(handle.record as Digest) ? (handle.record as Digest) : null;
}

export function isAway({ context }: Digest): boolean {
  return context === away;
}

/** As it is restored. */
export function withoutContext(digest: Digest): Digest {
  return { ...digest, context: away };
}

/** Memory gives up what is stored; what was saved since stays. */
export function putAway(handle: Handle, stored: Payload | Digest): void {
  if (handle.record !== stored) return;
  if (handle.kind === "payload") (handle as PayloadEntry).task.payload = null;
  else (handle as DigestEntry).record = withoutContext(stored as Digest);
}

/** The task or digest that a reply needs the payload of. */
export function findAway({ tenants }: State, tenant: string, reply: Away): Handle<"task"> | Handle<"digest"> | null {
  const entry = tenants.get(tenant);
  if (reply.taskId !== null) return entry?.tasks.get(reply.taskId) ?? null;
  return entry?.agents.get(reply.agentId ?? "")?.digest ?? null;
}
export type Away = Pick<Extract<Reply, { readonly type: "payload_away" }>, "taskId" | "agentId">;

/** Returns the handle that carries it from now on; null: it is there already, or was replaced. */
export function bringBack(handle: Handle, was: RecordOf[RecordKind], content: unknown): Handle | null {
  if (handle.kind === "digest") {
    if (handle.record !== was) return null;
    (handle as DigestEntry).record = { ...(handle.record as Digest), context: content };
    return handle;
  }
  const task = handle as TaskEntry;
  task.isPayloadAwaited = false;
  if (!isPayloadAway(task)) return null;
  task.payload = { ...createEntry("payload", content as Payload), task };
  return task.payload;
}

export function hasDue(state: State, now: Millis): boolean {
  return nextDeadline(state) <= now;
}

function begin(state: State, sliceMax: number): void {
  state.sliceMax = sliceMax;
  state.step++;
  state.events = [];
  state.changes = [];
  state.receipts = [];
  state.ready = [];
  if (state.audits.length > 0) state.audits = [];
}

type CommandOf<K extends Command["type"]> = Extract<Command, { readonly type: K }>;
type Handler<K extends Command["type"]> = (turn: Turn, command: CommandOf<K>) => Reply | PendingReply;
type TenantHandler = (turn: Turn, command: Command) => Reply | PendingReply;
type OperatorHandler<C> = (state: State, command: C, now: Millis) => Reply | PendingReply;

/** What operators do with tenants and keys. */
const operatorHandlers = {
  forget_ends: tenants.forgetEndedLeases,
  create_tenant: tenants.createTenant,
  suspend_tenant: tenants.suspendTenant,
  resume_tenant: tenants.suspendTenant,
  set_tenant_settings: tenants.setTenantSettings,
  set_tenant_quotas: tenants.setTenantQuotas,
  create_key: keys.createKey,
  delete_key: keys.deleteKey,
  rotate_key: keys.rotateKey,
  assign_name: keys.assignName,
  note_key_uses: keys.noteKeyUses,
  adopt_directory: adoptDirectory,
  set_policy: policies.setPolicy,
  delete_policy: policies.deletePolicy,
} satisfies { readonly [K in Command["type"]]?: OperatorHandler<CommandOf<K>> };

/** Every other command is decided within the caller's tenant. Most begin by finding what they act on; see `on`. */
const handlers = {
  register_agent: agents.registerAgent,
  transition_agent: on(agentOf, agents.transitionAgent),
  restart_agent: on(agentOf, agents.restartAgent),
  pause_agent: agents.pauseAgent,
  unpause_agent: agents.pauseAgent,
  save_digest: on(agentOf, agents.saveDigest),
  resume_agent: on(agentOf, agents.resumeAgent),
  verify_all: on(agentOf, agents.verifyAll),
  renew_agent_token: on(agentOf, agents.renewAgentToken),
  acquire: on(agentOf, acquire),
  collect_request: requests.collectRequest,
  cancel_request: requests.cancelRequest,
  heartbeat: on(holding.findLease, holding.heartbeat),
  heartbeat_all: on(agentOf, holding.heartbeatAll),
  renew_lease: on(holding.findLease, holding.renewLease),
  release_lease: on(holding.findLease, holding.releaseLease),
  release_all: on(agentOf, holding.releaseAll),
  transfer_lease: on(holding.findLease, handingOver.transferLease),
  downgrade_lease: on(holding.findLease, handingOver.downgradeLease),
  revoke: handingOver.revoke,
  report_violation: on(agentOf, resources.reportViolation),
  declare_resource: on(resources.findName, resources.declareResource),
  fence_resource: on(resources.findName, resources.fenceResource),
  reset_resource: on(resources.findName, resources.resetResource),
  withdraw_resource: on(resources.findName, resources.withdrawResource),
  bind_confirmed: cells.reportBinding,
  bind_failed: cells.reportBinding,
  teardown_confirmed: cells.reportBinding,
  teardown_failed: cells.reportBinding,
  enrol_cell: enrolCell,
  cell_heartbeat: on(cells.findCell, cells.cellHeartbeat),
  cell_left: on(cells.findCell, cells.cellLeft),
  cell_ended: on(cells.findCell, cells.cellEnded),
  withdraw_cell: on(cells.findCellToManage, cells.withdrawCell),
  readmit_cell: on(cells.findCellToManage, cells.readmitCell),
  create_task: taskCreate.createTask,
  cancel_task: on(tasks.findForPrincipal, tasks.cancelTask),
  redrive_task: on(tasks.findForPrincipal, tasks.redriveTask),
  poll_tasks: pollTasks,
  heartbeat_task: on(tasks.findTaskLease, tasks.heartbeatTask),
  release_task: on(tasks.findTaskLease, tasks.releaseTask),
  set_task_type: taskCreate.setTaskType,
  submit_receipt: submitReceipt,
  recover_obligation: recoverObligation,
} satisfies { readonly [K in Exclude<Command["type"], keyof typeof operatorHandlers>]: Handler<K> };

function decide(state: State, command: Command, now: Millis): Reply | PendingReply {
  const { type } = command;
  // Most commands are one of these two, and two comparisons take less time than a search in the table.
  const common = type === "acquire" ? handlers.acquire : type === "release_lease" ? handlers.release_lease : null;
  const handle = (common ?? handlers[type as keyof typeof handlers]) as TenantHandler | undefined;
  if (handle === undefined) {
    const handleAsOperator = operatorHandlers[type as keyof typeof operatorHandlers] as OperatorHandler<Command>;
    return handleAsOperator(state, command, now);
  }
  const tenant = findTenant(state, command.tenant);
  if ((tenant as Partial<Refusal>).type === "refused") return tenant as Refusal;
  const turn = { state, tenant: tenant as TenantEntry, now };
  const reply = handle(turn, command);
  if (state.consequences.length > 0 || state.freed.length > 0) conclude(turn);
  return reply;
}

/** A command on something that the caller must be allowed to act on: `find` gives it, or refuses. */
function on<C, Found extends object>(
  find: (turn: Turn, command: C) => Found | Refusal,
  act: (turn: Turn, found: Found, command: C) => Reply | PendingReply,
): (turn: Turn, command: C) => Reply | PendingReply {
  return (turn, command) => {
    const found = find(turn, command);
    // Not `in`: among many kinds of objects a property is loaded faster than looked for.
    return (found as Partial<Refusal>).type === "refused" ? (found as Refusal) : act(turn, found as Found, command);
  };
}
