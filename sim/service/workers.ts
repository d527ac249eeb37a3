/**
 * Workers as processes: each polls, accepts, works and completes, and repeats each receipt until it is answered. It may
 * die at any point and restart under the same id, or be stopped past its lease and continue, perhaps after another
 * instance of it has taken over.
 */
import type { Offer } from "../../src/kernel/contract/replies.ts";
import type { ReceiptInput } from "../../src/kernel/contract/task-commands.ts";
import { count } from "../counters.ts";
import { blankReceipt } from "../tasks/inputs.ts";
import type { ReceiptAnswer } from "./flaky-service.ts";
import { attempt, insist } from "./network.ts";
import type { ServiceWorld } from "./service-world.ts";

/** The process is gone, with all its memory. */
class Died extends Error {
  override readonly name = "Died";
}

export async function runWorker(world: ServiceWorld, workerId: string): Promise<void> {
  const { time, random, counters } = world;
  for (let life = 1, reclaim = false; !world.isOver; life++) {
    try {
      await live(world, workerId, life, reclaim);
      return;
    } catch (fault) {
      if (!(fault instanceof Died)) throw fault;
      count(counters, "workers: died");
      await time.sleep(random.between(10, 9_000));
      reclaim = random.chance(0.5);
    }
  }
}

async function live(world: ServiceWorld, workerId: string, life: number, reclaimFirst: boolean): Promise<void> {
  const { time, random, service } = world;
  for (let polls = 0, reclaim = reclaimFirst; !world.isOver; polls++, reclaim = false) {
    const requestKey = `${workerId} ${life} ${polls}`;
    const maxTasks = random.pick([1, 1, 2, 4]);
    const reply = await insist(world, () =>
      service.command({
        type: "poll_tasks",
        workerId,
        capabilities: [],
        maxTasks,
        preferredKinds: null,
        requestKey,
        reclaim,
      }),
    );
    if (reply.type !== "offers") throw new Error(`a poll was answered with ${JSON.stringify(reply)}`);
    if (reclaim && reply.offers.length > 0) count(world.counters, "workers: reclaimed");
    for (const offer of reply.offers) {
      const work = perform(world, workerId, offer);
      // A stopped process continues late; meanwhile another instance of this id runs.
      if (!world.isCalm && random.chance(0.04)) work.catch((fault: unknown) => world.onFault(fault));
      else await work;
    }
    if (reply.offers.length === 0) await time.sleep(random.between(100, 1_500));
  }
}

async function perform(world: ServiceWorld, workerId: string, offer: Offer): Promise<void> {
  const { random, time } = world;
  const { task, lease } = offer;
  const isAccepted = task.live.some((one) => one.leaseId === lease.id && one.acceptedAt !== null);
  const named = { leaseId: lease.id, fence: lease.fence, sourceSystem: workerId };
  mayDie(world);
  if (!world.isCalm && random.chance(0.04)) return; // It loses the offer, which then expires.
  if (!isAccepted) {
    const accepted = await say(world, {
      ...blankReceipt("accepted", task.id),
      ...named,
      dedupeKey: `${lease.id} accepted`,
    });
    if (accepted.type === "refused") return count(world.counters, `workers: accept refused, ${accepted.code}`);
  }
  if (!(await work(world, offer))) return;
  mayDie(world);
  await time.sleep(world.isCalm ? 1 : random.between(1, 300));
  const answer = await say(world, { ...outcome(world, offer), ...named });
  mayDie(world);
  if (answer.type === "refused") return count(world.counters, `workers: result refused, ${answer.code}`);
  count(world.counters, answer.created ? "workers: result stored" : "workers: result stored before");
  if (answer.receipt.status === "success" && lease.expiresAt < world.time.now)
    count(world.counters, "workers: late result acknowledged");
}

/** Works and sends heartbeats; false: it got the directive to stop, or knows that it lost the task. */
async function work(world: ServiceWorld, { lease }: Offer): Promise<boolean> {
  const { random, time, service } = world;
  if (!world.isCalm && random.chance(0.08)) {
    count(world.counters, "workers: stopped past the lease");
    await time.sleep(lease.ttl + random.between(1, 30_000));
    return true; // It has not noticed.
  }
  for (let steps = world.isCalm ? 1 : random.between(1, 4); steps > 0; steps--) {
    await time.sleep(random.between(50, lease.ttl / 3));
    mayDie(world);
    const beat = await attempt(world, () =>
      service.command({ type: "heartbeat_task", leaseId: lease.id, progress: null }),
    );
    if (beat?.type === "refused" && random.chance(0.7)) return false;
    if (beat?.type === "task_lease" && beat.directives.length > 0) {
      count(world.counters, `workers: directive ${beat.directives.join()}`);
      await attempt(world, () => service.command({ type: "release_task", leaseId: lease.id }));
      return false;
    }
  }
  return true;
}

function mayDie({ random, isCalm }: ServiceWorld): void {
  if (!isCalm && random.chance(0.02)) throw new Died();
}

/** Each result is different, so that an overwritten one would be found. */
function outcome({ random, isCalm }: ServiceWorld, { task, lease }: Offer): ReceiptInput {
  const blank = { ...blankReceipt("complete", task.id), dedupeKey: random.chance(0.8) ? `${lease.id} complete` : null };
  const kind = isCalm ? "success" : random.weighted({ success: 90, retry: 6, failure: 2, escalate: 2 });
  const outcomeText = `by ${lease.agentId} under fence ${lease.fence}`;
  switch (kind) {
    case "success":
      return { ...blank, status: "success", outcomeText };
    case "retry":
    case "failure":
      return { ...blank, status: "failure", outcomeText, retryRequested: kind === "retry" };
    case "escalate":
      return {
        ...blank,
        phase: "escalate",
        escalationClass: "other",
        escalationReason: "it is beyond me",
        retryRequested: true,
      };
  }
}

/**
 * Repeats until the receipt is stored, known or refused. Acknowledged receipts are noted and must be in the ledger
 * (S1).
 */
async function say(world: ServiceWorld, receipt: ReceiptInput): Promise<ReceiptAnswer> {
  const answer = await insist(world, () => world.service.receipt(receipt));
  if (answer.type === "stored") world.acknowledged.push({ sent: receipt, receipt: answer.receipt });
  return answer;
}
