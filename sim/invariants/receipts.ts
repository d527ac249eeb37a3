/**
 * The ledger (R1, T3, T4): no gap and no number twice; nothing is accepted that was not offered, or completed that was
 * not accepted; every obligation is opened once and closed once; an ended task takes no more receipts.
 */
import type { Reply } from "../../src/kernel/contract/replies.ts";
import type { EndedTask, Receipt, Task } from "../../src/kernel/contract/task-records.ts";
import { isForeign } from "./foreign.ts";
import { isCustodians } from "./late-completes.ts";
import { type Step, violated } from "./step.ts";

export interface ReceiptMemory {
  readonly sequences: Map<string, number>;
  readonly receipts: Map<string, Receipt>;
  readonly offered: Set<string>;
  readonly obligations: Map<string, { readonly taskId: string; isOpen: boolean; escalatedTo: string | null }>;
  readonly tasks: Map<string, { successes: number; isOver: boolean }>;
  /** R3: the receipt and the content that each key stands for. */
  readonly marks: Map<string, Mark>;
}

interface Mark {
  readonly taskId: string;
  readonly receiptId: string;
  readonly print: string;
}

export function createReceiptMemory(): ReceiptMemory {
  return {
    sequences: new Map(),
    receipts: new Map(),
    offered: new Set(),
    obligations: new Map(),
    tasks: new Map(),
    marks: new Map(),
  };
}

const completeAs = { succeeded: "success", failed: "failure", canceled: "canceled" } as const;

export function checkReceipts(memory: ReceiptMemory, step: Step): void {
  const stored = step.events.flatMap((event) => (event.type === "receipt.stored" ? [event.receipt] : []));
  if (stored.length !== step.receipts.length || stored.some((one, index) => one !== step.receipts[index])) {
    violated("R1", "the events and the ledger have different receipts", stored, step.receipts);
  }
  // In order, so that an offer comes before its acceptance.
  for (const event of step.events) {
    if (event.type === "task.offered") memory.offered.add(`${event.tenant} ${event.leaseId}`);
    if (event.type === "receipt.stored") checkReceipt(memory, step, event.receipt);
    if (event.type === "task.accepted" && !memory.offered.has(`${event.tenant} ${event.leaseId}`)) {
      violated("T3", "a task was accepted under a lease that was never offered", event);
    }
  }
  for (const change of step.changes) {
    if (change.kind === "task" && change.after !== null && isFinal(change.after)) over(memory, change.after);
  }
  for (const task of step.ended) {
    over(memory, task);
    checkEnd(memory, task);
  }
}

/**
 * R3: the same receipt again is answered with the first one; the same key with other content is refused. The ledger
 * keeps the keys of ended tasks, but a receipt that names a task still in the kernel is answered there.
 */
export function checkRepeated({ marks }: ReceiptMemory, { command, reply, store }: Step): void {
  if (command?.type !== "submit_receipt" || reply === null) return;
  const { dedupeKey, receiptId } = command.receipt;
  const { leaseId, fence: _fence, ...said } = command.receipt;
  const print = JSON.stringify(said);
  const lease = leaseId === null ? undefined : store.lease.get(`${command.tenant} ${leaseId}`);
  const taskId = command.receipt.taskId ?? command.taskOfLease ?? lease?.resource.slice("TASK:/".length);
  // A key is its task's own; an id is the tenant's.
  for (const name of [`key ${taskId} ${dedupeKey}`, `id ${receiptId}`]) {
    if (name.endsWith(" null")) continue;
    const id = `${command.tenant} ${name}`;
    const mark = marks.get(id);
    const task = mark === undefined ? undefined : store.task.get(`${command.tenant} ${mark.taskId}`);
    if (mark !== undefined && task !== undefined) {
      const isLeftToLedger =
        (isFinal(task) && (mark.print !== print || command.receipt.taskId === null)) ||
        (reply.type === "refused" && (reply.code === "lease_unknown" || reply.code === "task_unknown"));
      if (!isLeftToLedger) checkAnswer(reply, mark, mark.print === print);
    }
    const stored = reply.type === "receipt" ? reply.receipt.taskId : null;
    if (stored !== null && name.startsWith("key") && stored !== taskId) continue;
    if (reply.type === "receipt") marks.set(id, { taskId: reply.receipt.taskId, receiptId: reply.receipt.id, print });
  }
}

function checkAnswer(reply: Reply, mark: Mark, isSame: boolean): void {
  if (isSame && (reply.type !== "receipt_known" || reply.receiptId !== mark.receiptId)) {
    violated("R3", "a repeated receipt was not answered with the first one", reply, mark);
  }
  const isRefused = reply.type === "refused" && (reply.code === "dedupe_conflict" || reply.code === "invalid_receipt");
  if (!isSame && !isRefused) violated("R3", "another receipt was accepted under the same key", reply, mark);
}

/** L13: a receipt comes with its worker's key, and a fence in it is its attempt's. */
export function checkSender({ command, reply, store, changes }: Step): void {
  if (command?.type !== "submit_receipt" || reply?.type !== "receipt") return;
  const { tenant, actor } = command;
  const { receipt } = reply;
  const worker = store.worker.get(`${tenant} ${receipt.sourceSystem}`);
  const isOwn = worker === undefined || worker.keyId === actor.keyId;
  if (actor.role === "worker" && !isOwn)
    violated("L13", "a receipt of another key's worker was accepted", command, worker);
  const submittedBy = actor.keyId ?? actor.agentId;
  if (receipt.submittedBy !== submittedBy) violated("R7", "a receipt names another credential", command, receipt);
  if (isForeign(receipt)) return;
  const { fence, leaseId } = command.receipt;
  const change = changes.find((one) => one.kind === "task" && one.before?.id === receipt.taskId);
  if (change?.kind !== "task" || change.before === null) violated("R1", "a receipt changed nothing", command, receipt);
  const attempts = [...change.before.live, ...change.before.past];
  const isOfWorker = attempts.some(({ workerId }) => workerId === receipt.sourceSystem);
  if (actor.role === "worker") checkWorkersWords(receipt, change.before, isOfWorker);
  // While nobody has the task, its custodian may speak for it (R5).
  if (change.before.live.length === 0 && isCustodians(command.receipt, change.before)) return;
  const isMeant = (one: (typeof attempts)[number]): boolean =>
    (fence === null || one.fence === fence) && (leaseId === null || one.leaseId === leaseId);
  if (!attempts.some(isMeant)) violated("T4", "an accepted receipt names no attempt of the task", command, attempts);
}

/** R7: a worker binds itself or its family, on behalf of the task's principal, and does not change what the task is. */
function checkWorkersWords(receipt: Receipt, task: Task, isOfWorker: boolean): void {
  const { sourceSystem, fromPrincipal, forPrincipal, taskType } = receipt;
  const isOwn = (name: string | null): boolean => name === null || `${sourceSystem} `.startsWith(name);
  // Later receipts repeat whom the accepted one bound, which a supervisor may have sent.
  if (isOfWorker && receipt.phase === "accepted" && !isOwn(forPrincipal))
    violated("R7", "a worker's receipt binds somebody else", receipt);
  if (fromPrincipal !== task.spec.principalAi && !isOwn(fromPrincipal))
    violated("R7", "a worker's receipt names another requester", receipt);
  if (taskType !== task.spec.taskType) violated("R7", "a worker's receipt says that the task was another", receipt);
  if (receipt.phase === "progress" && (receipt.taskBody !== null || receipt.inputs !== null))
    violated("R2", "a progress receipt copies the task", receipt);
}

function checkReceipt(memory: ReceiptMemory, step: Step, receipt: Receipt): void {
  const { tenant, sequence, taskId, phase, obligationId } = receipt;
  const last = memory.sequences.get(tenant) ?? 0;
  if (sequence !== last + 1) violated("R6", `receipt ${sequence} follows ${last}`, receipt);
  memory.sequences.set(tenant, sequence);
  const id = `${tenant} ${receipt.id}`;
  if (memory.receipts.has(id)) violated("R1", "a receipt's id was given twice", receipt, memory.receipts.get(id));
  memory.receipts.set(id, receipt);
  if (isForeign(receipt)) return;
  const task = tallyOf(memory, tenant, taskId);
  if (task.isOver) violated("T13", "a task that has ended took a receipt", receipt);
  const obligation = obligationId === null ? undefined : memory.obligations.get(`${tenant} ${obligationId}`);
  if (obligation !== undefined && obligation.taskId !== taskId)
    violated("R5", "an obligation belongs to another task", receipt);
  if (phase === "accepted") {
    if (obligationId === null) violated("T3", "an accepted receipt opens no obligation", receipt);
    if (obligation?.isOpen === false) violated("R5", "an obligation that was closed is open again", receipt);
    memory.obligations.set(`${tenant} ${obligationId}`, { taskId, isOpen: true, escalatedTo: null });
    checkAccepted(step, receipt);
  }
  if (phase === "complete") {
    if (obligation?.isOpen !== true) violated("T4", "a complete receipt closes no open obligation", receipt);
    obligation.isOpen = goesOnWithAnother(step, receipt);
    if (receipt.sourceSystem !== "leasehold" && receipt.sourceSystem !== obligation.escalatedTo)
      checkCause(memory, receipt);
    if (receipt.status === "success" && ++task.successes > 1) violated("T4", "a task succeeded twice", receipt);
  }
  if (phase === "escalate") noteEscalation(memory, receipt);
}

/** R5, T2: custody follows escalation_to; the escalation of what nobody accepted opens an obligation. */
function noteEscalation(memory: ReceiptMemory, { tenant, taskId, obligationId, escalationTo, sourceSystem }: Receipt) {
  if (obligationId === null) {
    if (sourceSystem === "leasehold") violated("T5", "a policy escalation is in nobody's inbox", taskId);
    return;
  }
  const known = memory.obligations.get(`${tenant} ${obligationId}`);
  if (known?.isOpen === false) violated("R5", "a closed obligation was escalated", taskId);
  if (known === undefined && sourceSystem !== "leasehold")
    violated("R5", "a worker opened an obligation by escalating", taskId);
  memory.obligations.set(`${tenant} ${obligationId}`, { taskId, isOpen: true, escalatedTo: escalationTo });
}

/** T8: one of two attempts failed and requests a retry; the other attempt is that retry, under the same obligation. */
function goesOnWithAnother({ store }: Step, { tenant, taskId, status, retryRequested }: Receipt): boolean {
  if (status !== "failure" || !retryRequested) return false;
  const task = store.task.get(`${tenant} ${taskId}`);
  return task?.live.some(({ acceptedAt, canceled }) => acceptedAt !== null && !canceled) ?? false;
}

/** T3: it needs the task's live lease. */
function checkAccepted({ store }: Step, receipt: Receipt): void {
  const task = store.task.get(`${receipt.tenant} ${receipt.taskId}`);
  const attempt = task?.live.find((one) => one.receiptId === receipt.id);
  const lease = attempt === undefined ? undefined : store.lease.get(`${receipt.tenant} ${attempt.leaseId}`);
  if (lease === undefined) violated("T3", "a task was accepted without a live lease", receipt, task);
}

/** A worker completes only what it has accepted. */
function checkCause({ receipts }: ReceiptMemory, receipt: Receipt): void {
  const cause = receipts.get(`${receipt.tenant} ${receipt.causedByReceiptId}`);
  if (cause?.phase !== "accepted" || cause.taskId !== receipt.taskId) {
    violated("T13", "a task was completed by a worker that had not accepted it", receipt, cause);
  }
}

function checkEnd(memory: ReceiptMemory, task: EndedTask): void {
  const { tenant, id, status, winningReceiptId, obligation } = task;
  const winning = winningReceiptId === null ? undefined : memory.receipts.get(`${tenant} ${winningReceiptId}`);
  const isRight = winning?.phase === "complete" && winning.taskId === id && winning.status === completedAs(task);
  if (winningReceiptId !== null && !isRight)
    violated("T4", "the winning receipt is not the one that ended it", task, winning);
  if (winningReceiptId === null && status !== "canceled") violated("T4", "a task ended without a receipt", task);
  const { successes } = tallyOf(memory, tenant, id);
  if (successes !== (status === "succeeded" ? 1 : 0)) violated("T4", `${successes} completions of one task`, task);
  if (obligation !== null && obligation.state !== "CLOSED")
    violated("R5", "a task ended, but its obligation is open", task);
  for (const [name, one] of memory.obligations) {
    if (one.isOpen && one.taskId === id && name.startsWith(`${tenant} `)) {
      violated("R5", "a task ended, but no receipt closes its obligation", task, name);
    }
  }
}

function completedAs({ status }: Task): string | null {
  return status === "succeeded" || status === "failed" || status === "canceled" ? completeAs[status] : null;
}

export function isFinal({ status }: Task): boolean {
  return status === "succeeded" || status === "failed" || status === "canceled";
}

function over(memory: ReceiptMemory, { tenant, id }: Task): void {
  tallyOf(memory, tenant, id).isOver = true;
}

function tallyOf({ tasks }: ReceiptMemory, tenant: string, taskId: string): { successes: number; isOver: boolean } {
  const known = tasks.get(`${tenant} ${taskId}`);
  if (known !== undefined) return known;
  const tally = { successes: 0, isOver: false };
  tasks.set(`${tenant} ${taskId}`, tally);
  return tally;
}

/** R5: ledger and task agree on the obligation's state. */
export function checkObligation(memory: ReceiptMemory, task: Task): void {
  const { tenant, obligation, status, live } = task;
  const accepted = live.some(({ acceptedAt, canceled }) => acceptedAt !== null && !canceled);
  if (obligation === null) {
    if (accepted || task.attempts > 0) violated("T3", "an accepted task has no obligation", task);
    return;
  }
  const known = memory.obligations.get(`${tenant} ${obligation.id}`);
  if (known === undefined) violated("R5", "no receipt opened an obligation", task);
  if (known.isOpen !== (obligation.state !== "CLOSED"))
    violated("R5", "the ledger and the task disagree on an obligation", task);
  if (status === "accepted" && obligation.state !== "OPEN")
    violated("R5", "a running task has no open obligation", task);
  if (obligation.state === "OVERDUE" && accepted)
    violated("R5", "an obligation is overdue while a worker has the task", task);
  if (isFinal(task) && obligation.state !== "CLOSED") violated("R5", "a final task has an open obligation", task);
  if (obligation.state !== "CLOSED") checkCustody(memory, task, obligation.custodian, known.escalatedTo);
}

/** R5: who has accepted it answers for it, as its receipt says; otherwise the one that it was last escalated to. */
function checkCustody({ receipts }: ReceiptMemory, task: Task, custodian: string, escalatedTo: string | null): void {
  const accepted = task.live.filter(({ acceptedAt, canceled }) => acceptedAt !== null && !canceled);
  const named = accepted.map(({ receiptId }) => receipts.get(`${task.tenant} ${receiptId}`)?.forPrincipal);
  const isRight = accepted.length > 0 ? named.includes(custodian) : custodian === escalatedTo;
  if (!isRight) violated("R5", "the custodian is not the one that the ledger names", task, named, escalatedTo);
}
