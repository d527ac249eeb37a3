/**
 * Sends a command to the kernel as an engine would, and checks the invariants on the result. Sometimes it settles what
 * is due in slices first, as an engine does between I/O; then it can check that a refusal changes nothing.
 */
import type { Command } from "../src/kernel/contract/commands.ts";
import type { KernelEvent } from "../src/kernel/contract/events.ts";
import type { Lease } from "../src/kernel/contract/records.ts";
import type { Reply } from "../src/kernel/contract/replies.ts";
import type { EndedTask } from "../src/kernel/contract/task-records.ts";
import {
  apply,
  hasDue,
  type Step as KernelStep,
  nextDeadline,
  type Outcome,
  restore,
  settle,
  snapshot,
} from "../src/kernel/kernel.ts";
import type { TaskEntry } from "../src/kernel/memory/task-state.ts";
import { isPlanted, throwAtChange } from "../src/kernel/testing/planted-faults.ts";
import { count } from "./counters.ts";
import { checkBindings } from "./invariants/cells.ts";
import { checkInvariants } from "./invariants/check.ts";
import { type Step, violated } from "./invariants/step.ts";
import { allRecords, fingerprint, keep } from "./record-store.ts";
import { endedSince } from "./restarts.ts";
import { noteEvents, noteReply } from "./situations.ts";
import { noteTasks } from "./tasks/situations.ts";
import type { SimLedger, World } from "./world.ts";

const recentMax = 40;

export function send(world: World, command: Command): Reply {
  const { random } = world;
  remember(world, command);
  const isSettled = random.chance(0.5);
  if (isSettled) settleInSlices(world);
  const isCompared = isSettled && random.chance(world.size === "small" ? 0.05 : 0.005);
  const before = isCompared ? fingerprint(snapshot(world.state)) : "";

  const outcome =
    world.seed % 16 === (world.hasTasks ? 14 : 11) && random.chance(0.02)
      ? applyAfterFault(world, command)
      : apply(world.state, command, world.now);
  const { reply, events, changes } = outcome;
  if (isSettled && changesNothing(command, reply)) {
    if (events.length > 0 || changes.length > 0) {
      violated(
        "S3",
        "a refusal or a dry run changed something",
        command,
        reply,
        events,
        changes.map((one) => one.record),
      );
    }
    if (isCompared && fingerprint(snapshot(world.state)) !== before) {
      violated("S3", "a refusal or a dry run changed what it did not list", command, reply);
    }
    if (isCompared) count(world.counters, reply.type === "refused" ? "S3 refusal compared" : "W12 dry run compared");
  }
  world.transcript.update(JSON.stringify([world.now, command, reply, events]));
  noteReply(world, command, reply);
  finish(world, outcome, { command, reply, settled: true });
  return reply;
}

/** S2: the step throws somewhere in the middle. Memory is dropped, and the caller asks again; the store knows nothing of it. */
function applyAfterFault(world: World, command: Command): Outcome {
  const ended = endedSince(world);
  const disarm = throwAtChange(world.state, world.random.between(1, 6));
  try {
    const outcome = apply(world.state, command, world.now);
    // The step changed less than that.
    disarm();
    return outcome;
  } catch (fault) {
    if (!isPlanted(fault)) throw fault;
  }
  const stored = allRecords(world.store);
  world.state = restore(stored, ended);
  if (fingerprint(snapshot(world.state)) !== fingerprint(stored)) violated("S2", "memory is not what is stored");
  count(world.counters, "S2 a step threw");
  return apply(world.state, command, world.now);
}

/** A few at a time, with the invariants between, as long as something is due. */
export function settleInSlices(world: World): void {
  const limit = world.random.pick([1, 2, 5, 1_000_000]);
  for (let slices = 0; hasDue(world.state, world.now); slices++) {
    settleSlice(world, limit);
    if (slices === 1) count(world.counters, "L3 settled in slices");
  }
  if (nextDeadline(world.state) <= world.now) {
    violated("L3", "nothing is due, and yet the next deadline has passed", nextDeadline(world.state));
  }
}

/** True: more is due. */
export function settleSlice(world: World, limit: number): boolean {
  const settled = settle(world.state, world.now, limit);
  const { events, more } = settled;
  if (events.length > 0) world.transcript.update(JSON.stringify([world.now, events]));
  finish(world, settled, { command: null, reply: null, settled: !more });
  return more;
}

function finish(world: World, outcome: KernelStep, done: Pick<Step, "command" | "reply" | "settled">): void {
  const { events, receipts } = outcome;
  const { state, store, now } = world;
  const ended = keepHistory(world.ledger, outcome);
  const step: Step = { ...done, now, store, state, events, receipts, ended, changes: keep(store, outcome.changes) };
  noteEvents(world, events);
  if (world.hasTasks) noteTasks(world, step);
  const thoroughly = world.size === "small" || (done.settled && world.step % 97 === 0);
  checkInvariants(world.memory, step, thoroughly);
  checkBindings(step, world.cells);
  checkEvents(world, events);
}

/** Moves ended leases and tasks to history and appends receipts to the ledger. */
function keepHistory(
  { ended, endedLeases, receipts: ledger }: SimLedger,
  { changes, receipts }: KernelStep,
): EndedTask[] {
  const gone: EndedTask[] = [];
  for (const handle of new Set(changes)) {
    if (handle.alive) continue;
    if (handle.kind === "lease") endedLeases.push(handle.record as Lease);
    if (handle.kind !== "task") continue;
    // A dead task's handle still has its payload, which goes to history with it.
    const { record, payload } = handle as TaskEntry;
    gone.push({ ...record, payload: payload?.record ?? null });
  }
  for (const task of gone) ended.set(`${task.tenant} ${task.id}`, task);
  for (const receipt of receipts) {
    const known = ledger.get(receipt.tenant);
    if (known === undefined) ledger.set(receipt.tenant, [receipt]);
    else known.push(receipt);
  }
  return gone;
}

function checkEvents(world: World, events: readonly KernelEvent[]): void {
  for (const event of events) {
    if (event.at !== world.now) violated("L3", "an event is not stamped with the present", event, world.now);
  }
}

function changesNothing(command: Command, reply: Reply): boolean {
  // A heartbeat that extends nothing still collects a grant and reports activity (W8, L10).
  if (command.type === "heartbeat") return reply.type === "refused" && !livesOn.includes(reply.code);
  return reply.type === "refused" || (command.type === "acquire" && command.dryRun);
}

const livesOn: readonly string[] = ["renew_required", "resource_withdrawn", "lease_denied"];

function remember({ recent, step, now }: World, command: Command): void {
  recent.push({ step, now, command });
  if (recent.length > recentMax) recent.shift();
}
