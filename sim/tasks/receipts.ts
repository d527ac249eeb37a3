/** Receipts as workers send them: short, full, with and without keys, for others' tasks, and malformed. */
import type { ReceiptInput } from "../../src/kernel/contract/task-commands.ts";
import type { HeldTask, SimTenant, SimWorker, World } from "../world.ts";
import { blankReceipt } from "./inputs.ts";

export type ReceiptKind = "accept" | "complete" | "fail" | "escalate" | "progress" | "zombie" | "forged" | "bad";

export function receiptFor(
  world: World,
  tenant: SimTenant,
  worker: SimWorker,
  task: HeldTask | null,
  kind: ReceiptKind,
): ReceiptInput {
  const { random } = world;
  switch (kind) {
    case "accept":
      return named(world, worker, task, {
        ...blankReceipt("accepted", task?.taskId ?? null),
        ...bound(world, worker),
        ...keyed(world),
      });
    case "complete":
      return named(world, worker, task, { ...completion(world, task?.taskId ?? null, "success"), ...keyed(world) });
    case "fail": {
      const status = random.pick(["failure", "failure", "failure", "canceled"]);
      const retryRequested = random.pick([true, true, null]);
      return named(world, worker, task, {
        ...completion(world, task?.taskId ?? null, status),
        retryRequested,
        ...keyed(world),
      });
    }
    case "escalate":
      return named(world, worker, task, { ...escalation(world, task?.taskId ?? null), ...keyed(world) });
    case "progress": {
      const outcomeText = random.chance(0.3) ? "half done" : null;
      return named(world, worker, task, { ...blankReceipt("progress", task?.taskId ?? null), outcomeText });
    }
    case "zombie": {
      // The worker does not know that its lease has ended.
      const phase = random.weighted({ complete: 8, accept: 2, escalate: 1, progress: 1, fail: 1 });
      const receipt = receiptFor(world, tenant, worker, task, phase);
      return random.chance(0.6) && task !== null ? { ...receipt, leaseId: task.leaseId, fence: task.fence } : receipt;
    }
    case "forged":
      return forgery(world, tenant, worker, task);
    case "bad": {
      const known = blankReceipt("complete", task?.taskId ?? random.pick([...tenant.taskIds, "T-never-was"]));
      return { ...known, ...random.pick(spoilt) };
    }
  }
}

/** R5: whom the acceptance binds, and under which id. */
function bound({ random, store }: World, { id }: SimWorker): Partial<ReceiptInput> {
  const open = [...store.task.values()].flatMap(({ obligation }) => (obligation === null ? [] : [obligation.id]));
  const given = random.chance(0.2) && open.length > 0 ? random.pick(open) : `given-${random.below(2 ** 30)}`;
  const forPrincipal = random.weighted({ none: 6, self: 2, family: 2, other: 1 });
  return {
    forPrincipal: { none: null, self: id, family: "builder", other: "innocent" }[forPrincipal],
    recipientAi: random.pick([null, null, "builder", "innocent"]),
    obligationId: random.chance(0.1) ? given : null,
    fromPrincipal: random.pick([null, null, null, "lead", "owner"]),
  };
}

function completion({ random }: World, taskId: string | null, status: string): ReceiptInput {
  const blank = { ...blankReceipt("complete", taskId), status };
  return random.pick<ReceiptInput>([
    blank,
    { ...blank, outcomeText: "it is done", outcomeKind: "response_text" },
    { ...blank, artifactLocation: "s3://results/1" },
    { ...blank, artifactPointer: "s3://results/2", outcomeText: "see there" },
  ]);
}

function escalation({ random }: World, taskId: string | null): ReceiptInput {
  return {
    ...blankReceipt("escalate", taskId),
    escalationClass: random.pick(["capability", "scope", "other"]),
    escalationReason: "it is beyond me",
    escalationTo: random.pick([null, "owner", "somebody"]),
    retryRequested: random.pick([true, null]),
  };
}

function keyed({ random }: World): Partial<ReceiptInput> {
  return random.weighted({ none: 5, key: 4, id: 1 }) === "none"
    ? {}
    : random.chance(0.8)
      ? { dedupeKey: `dedupe-${random.below(2 ** 30)}` }
      : { receiptId: `receipt-${random.below(2 ** 30)}` };
}

/** R2: the attempt is named by its lease, by its fence, or by its worker. */
function named({ random }: World, worker: SimWorker, task: HeldTask | null, receipt: ReceiptInput): ReceiptInput {
  if (task === null) return { ...receipt, sourceSystem: worker.id };
  const { leaseId, fence } = task;
  return random.pick<() => ReceiptInput>([
    () => ({ ...receipt, leaseId }),
    () => ({ ...receipt, leaseId, fence }),
    () => ({ ...receipt, fence }),
    () => ({ ...receipt, leaseId, taskId: null }),
    () => ({ ...receipt, sourceSystem: worker.id }),
    () => ({ ...receipt, sourceSystem: worker.id }),
    () => receipt,
  ])();
}

/** In another worker's name, with an old fence, for another worker's task, or with a used key. */
function forgery(world: World, tenant: SimTenant, worker: SimWorker, task: HeldTask | null): ReceiptInput {
  const { random } = world;
  const other = random.pick(tenant.workers);
  const stolen = random.pick(
    [...other.held, ...other.past, task ?? undefined].filter((one) => one !== undefined).concat(nobodys),
  );
  const taskId = random.chance(0.7) ? stolen.taskId : random.pick([...tenant.taskIds, "T-never-was"]);
  const phase = random.pick(["accept", "complete", "complete", "fail", "escalate"] as const);
  const receipt = receiptFor(world, tenant, worker, { ...stolen, taskId }, phase);
  const dedupeKey = other.sent.at(-1)?.receipt.dedupeKey ?? receipt.dedupeKey;
  return random.pick<ReceiptInput>([
    { ...receipt, sourceSystem: worker.id },
    { ...receipt, fence: stolen.fence + random.between(-2, 2) },
    { ...receipt, leaseId: worker.held[0]?.leaseId ?? "lse_none" },
    { ...receipt, dedupeKey },
    { ...receipt, tenantId: "another-tenant" },
  ]);
}

const nobodys: HeldTask = { taskId: "T-never-was", leaseId: "lse_none", fence: 0, isAccepted: false };

const spoilt: readonly Partial<ReceiptInput>[] = [
  { phase: "finished" },
  { status: "perfect" },
  { status: null },
  { status: "success", outcomeKind: "artifact_pointer" },
  { status: "success", escalationTo: "nobody" },
  { phase: "accepted", status: "success" },
  { phase: "accepted", retryRequested: true },
  { phase: "escalate", status: null, escalationClass: "mood", escalationReason: "because" },
  { phase: "escalate", status: null, escalationClass: "policy" },
  { phase: "progress", status: null, retryRequested: true },
  { status: "success", attempt: 0 },
  { status: "success", outcomeText: "x".repeat(102_401) },
  { status: "success", dedupeKey: "" },
  { status: "success", taskId: null },
];
