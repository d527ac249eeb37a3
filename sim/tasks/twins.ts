/**
 * Two kernels from here on: an exact copy of the running one, and one restored from its records. Both get the same
 * commands and must give the same replies and hold the same records. This finds a lost wake-up: the restored kernel
 * considers every task again.
 */
import type { Command } from "../../src/kernel/contract/commands.ts";
import type { Reply } from "../../src/kernel/contract/replies.ts";
import { apply, nextDeadline, restore, type State, settle, snapshot } from "../../src/kernel/kernel.ts";
import { count } from "../counters.ts";
import { violated } from "../invariants/step.ts";
import { allRecords, fingerprint } from "../record-store.ts";
import { endedSince } from "../restarts.ts";
import { entropyOf, operator, type World } from "../world.ts";
import { cloneState } from "./clone.ts";
import { blankReceipt } from "./inputs.ts";
import { capabilities } from "./principals.ts";

const rounds = 6;

export function compareTwins(world: World): void {
  const kept = cloneState(world.state);
  const restored = restore(allRecords(world.store), endedSince(world));
  for (const state of [kept, restored]) neverInsist(state);
  let { now } = world;
  let offered = 0;
  for (let round = 0; round < rounds; round++) {
    for (const { id } of world.tenants) offered += playRound(world, id, kept, restored, now);
    compareRecords(kept, restored);
    const next = nextDeadline(kept);
    now = Math.max(now, world.random.chance(0.5) ? Math.min(next, now + 60_000) : now + world.random.below(3_000));
  }
  count(world.counters, "twins compared");
  if (offered > 0) count(world.counters, "twins compared, with offers");
}

/** How often a task was passed over is not stored and starts at 0 after a restore, so it is reset here in both. */
function neverInsist({ tenants }: State): void {
  for (const { tasks } of tenants.values())
    for (const task of tasks.values()) task.passedOver = Number.NEGATIVE_INFINITY;
}

function playRound(world: World, tenant: string, kept: State, restored: State, now: number): number {
  const { random } = world;
  const tell = (command: Command): Reply => tellBoth(command, kept, restored, now);
  const asked = { tenant, actor: operator };
  const settled = [kept, restored].map((state) => settle(state, now, Number.POSITIVE_INFINITY));
  const [one, other] = settled.map(({ events }) => JSON.stringify(events));
  if (one !== other) violated("DESIGN", "a restored kernel settled differently", one, other);
  const reply = tell({
    ...asked,
    entropy: entropyOf(world),
    type: "poll_tasks",
    workerId: "twin.1",
    capabilities,
    maxTasks: 1_000,
    preferredKinds: null,
    requestKey: null,
    reclaim: false,
  });
  if (reply.type !== "offers") return 0;
  for (const { task, lease } of reply.offers) {
    const leaseId = lease.id;
    const fate = random.weighted({ leave: 3, release: 1, complete: 4, accept: 2, fail: 2, cancel: 1 });
    const entropy = entropyOf(world);
    if (fate === "leave") continue;
    if (fate === "release") tell({ ...asked, entropy, type: "release_task", leaseId });
    else if (fate === "cancel") tell({ ...asked, entropy, type: "cancel_task", taskId: task.id, reason: null });
    else {
      tell({ ...asked, entropy, type: "submit_receipt", receipt: { ...blankReceipt("accepted", task.id), leaseId } });
      if (fate === "accept") continue;
      const status = fate === "complete" ? "success" : "failure";
      const receipt = { ...blankReceipt("complete", task.id), leaseId, status, retryRequested: true };
      tell({ ...asked, entropy, type: "submit_receipt", receipt });
    }
  }
  return reply.offers.length;
}

function tellBoth(command: Command, kept: State, restored: State, now: number): Reply {
  const [one, other] = [apply(kept, command, now), apply(restored, command, now)];
  const [a, b] = [one, other].map(({ reply, events, receipts }) => JSON.stringify([reply, events, receipts]));
  if (a !== b)
    violated(
      "DESIGN",
      "a restored kernel replied differently",
      command,
      summary(one.reply),
      summary(other.reply),
      a,
      b,
    );
  return one.reply;
}

function compareRecords(kept: State, restored: State): void {
  const [one, other] = [kept, restored].map((state) => fingerprint(snapshot(state)).split("\n"));
  const onlyInOne = one?.filter((line) => other?.includes(line) !== true) ?? [];
  const onlyInOther = other?.filter((line) => one?.includes(line) !== true) ?? [];
  if (onlyInOne.length + onlyInOther.length === 0) return;
  violated("DESIGN", "a restored kernel holds other records", onlyInOne.slice(0, 3), onlyInOther.slice(0, 3));
}

function summary(reply: Reply): readonly string[] | Reply {
  return reply.type === "offers" ? reply.offers.map(({ task }) => task.id) : reply;
}
