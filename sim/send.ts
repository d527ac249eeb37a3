/**
 * Sends a command to the kernel as an engine would, and holds what comes back against the invariants. Sometimes what is
 * due is settled in slices first, as an engine does between I/O; then a refusal can be seen to change nothing.
 */
import type { Command } from "../src/kernel/commands.ts";
import type { KernelEvent } from "../src/kernel/events.ts";
import { apply, hasDue, nextDeadline, settle, snapshot } from "../src/kernel/kernel.ts";
import type { Reply } from "../src/kernel/replies.ts";
import { count } from "./counters.ts";
import { checkInvariants } from "./invariants/check.ts";
import { type Step, violated } from "./invariants/step.ts";
import { fingerprint, keep } from "./record-store.ts";
import { noteEvents, noteReply } from "./situations.ts";
import type { World } from "./world.ts";

const recentMax = 40;

export function send(world: World, command: Command): Reply {
  const { random } = world;
  remember(world, command);
  const isSettled = random.chance(0.5);
  if (isSettled) settleInSlices(world);
  const isCompared = isSettled && random.chance(world.size === "small" ? 0.05 : 0.005);
  const before = isCompared ? fingerprint(snapshot(world.state)) : "";

  const { reply, events, changes } = apply(world.state, command, world.now);
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
  finish(world, { command, reply, events, changes: keep(world.store, changes), settled: true });
  return reply;
}

/** A few at a time, with the invariants between, as long as something is due. */
export function settleInSlices(world: World): void {
  const limit = world.random.pick([1, 2, 5, 1_000_000]);
  for (let slices = 0; hasDue(world.state, world.now); slices++) {
    settleSlice(world, limit);
    if (slices === 1) count(world.counters, "L3 settled in slices");
  }
  if ((nextDeadline(world.state) ?? Number.POSITIVE_INFINITY) <= world.now) {
    violated("L3", "nothing is due, and yet the next deadline has passed", nextDeadline(world.state));
  }
}

/** True: more is due. */
export function settleSlice(world: World, limit: number): boolean {
  const { events, changes, more } = settle(world.state, world.now, limit);
  if (events.length > 0) world.transcript.update(JSON.stringify([world.now, events]));
  finish(world, { command: null, reply: null, events, changes: keep(world.store, changes), settled: !more });
  return more;
}

function finish(world: World, done: Pick<Step, "command" | "reply" | "events" | "changes" | "settled">): void {
  noteEvents(world, done.events);
  const step: Step = { ...done, now: world.now, store: world.store };
  const thoroughly = world.size === "small" || (done.settled && world.step % 97 === 0);
  checkInvariants(world.memory, step, thoroughly);
  checkEvents(world, done.events);
}

function checkEvents(world: World, events: readonly KernelEvent[]): void {
  for (const event of events) {
    if (event.at !== world.now) violated("L3", "an event is not stamped with the present", event, world.now);
  }
}

function changesNothing(command: Command, reply: Reply): boolean {
  return reply.type === "refused" || (command.type === "acquire" && command.dryRun);
}

function remember(world: World, command: Command): void {
  world.recent.push(`step ${world.step} at ${world.now}: ${JSON.stringify(command)}`);
  if (world.recent.length > recentMax) world.recent.shift();
}
