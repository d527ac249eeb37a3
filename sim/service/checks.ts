/** What must hold in the end, read from the disk alone: live tasks, ended tasks and the ledger. */
import { isDeepStrictEqual } from "node:util";
import { readEndedTask, readRecord, recordText } from "../../src/engine/codec/record-text.ts";
import type { StoredRecord } from "../../src/kernel/contract/records.ts";
import type { EndedTask, Receipt, Task } from "../../src/kernel/contract/task-records.ts";
import { snapshot } from "../../src/kernel/kernel.ts";
import { readStoredReceipt } from "../../src/ledger/seal.ts";
import { verifyLedger } from "../../src/ledger/verify.ts";
import type { LiveRow } from "../../src/store/store.ts";
import { count } from "../counters.ts";
import { violated } from "../invariants/step.ts";
import { tenant } from "./flaky-service.ts";
import type { ServiceWorld } from "./service-world.ts";

export async function checkService(world: ServiceWorld, tasks: number): Promise<{ receipts: number; dead: number }> {
  const { disk } = world.service;
  // Answered when everything decided is on the disk.
  const held = await world.service.ask((state) => snapshot(state));
  checkMemory(held, disk.live.values());
  const receipts = disk.ledger.receipts.map((row) => readStoredReceipt(row).receipt);
  const live = [...disk.live.values()].flatMap(({ n, kind, body }) => {
    const stored = kind === "task" ? readRecord(kind, body, n) : null;
    return stored?.kind === "task" ? [stored.record] : [];
  });
  const ended = disk.ledger.endedTasks.map(({ body }) => readEndedTask(body));
  checkAllThere(world, tasks, live, ended);
  const byTask = Map.groupBy(receipts, ({ taskId }) => taskId);
  for (const task of ended) checkEnded(task, byTask.get(task.id) ?? []);
  for (const task of live) checkAlive(task, byTask.get(task.id) ?? []);
  for (const [taskId, own] of byTask) checkObligations(taskId, own);
  checkAcknowledged(world, receipts);
  checkChain(world);
  count(world.counters, "service: tasks succeeded", ended.filter(({ status }) => status === "succeeded").length);
  const dead = live.filter(({ status }) => status === "dead").length;
  count(world.counters, "service: tasks dead", dead);
  return { receipts: receipts.length, dead };
}

/** S2: whatever threw or failed, memory is what is stored. */
function checkMemory(held: readonly StoredRecord[], rows: Iterable<LiveRow>): void {
  // Read once more, because a record that has just been made has its fields in another order than one that was stored.
  const plain = (kind: string, body: string): string => JSON.stringify([kind, readRecord(kind, body, 0).record]);
  const stored: string[] = [];
  for (const { kind, body } of rows) if (kind !== "engine" && kind !== "ledger_key") stored.push(plain(kind, body));
  // What is large is stored apart (S4).
  const apart = (one: StoredRecord): StoredRecord =>
    one.kind === "digest" ? { ...one, record: { ...one.record, context: null } } : one;
  const live = held.filter(({ kind }) => kind !== "payload").map(apart);
  const inMemory = live.map(({ kind, record }) => plain(kind, recordText(kind, record)));
  if (!isDeepStrictEqual(inMemory.sort(), stored.sort())) violated("S2", "memory is not what is stored");
}

/** Each task was created once, although creations were repeated, and each has ended or is a dead letter. */
function checkAllThere(
  { created }: ServiceWorld,
  tasks: number,
  live: readonly Task[],
  ended: readonly EndedTask[],
): void {
  if (created.size !== tasks) violated("T12", `${created.size} of ${tasks} tasks were created`);
  const there = new Map<string, Task>();
  for (const task of [...live, ...ended]) {
    if (there.has(task.id)) violated("T4", "a task exists twice", task, there.get(task.id));
    there.set(task.id, task);
  }
  if (there.size !== tasks) violated("T12", `${tasks} tasks were to be created, ${there.size} exist`);
  for (const [key, ids] of created) {
    const [id] = ids;
    if (ids.size !== 1 || id === undefined) violated("T12", `${key} was created as ${ids.size} tasks`, [...ids]);
    if (there.get(id)?.spec.idempotencyKey !== key)
      violated("S1", `${key} was acknowledged as ${id}, which does not exist`);
  }
  const stuck = (task: Task): boolean => task.status === "dead" || task.waitingOn.some((id) => isStuck(there, id));
  const lost = live.find((task) => !stuck(task));
  if (lost !== undefined) violated("T4", "a task is neither final nor dead", lost);
}

function isStuck(there: ReadonlyMap<string, Task>, id: string): boolean {
  const task = there.get(id);
  return task !== undefined && (task.status === "dead" || task.waitingOn.some((one) => isStuck(there, one)));
}

/** T4: one completion, and it is the result. */
function checkEnded(task: EndedTask, receipts: readonly Receipt[]): void {
  const successes = receipts.filter(({ phase, status }) => phase === "complete" && status === "success");
  if (successes.length !== (task.status === "succeeded" ? 1 : 0)) {
    violated("T4", `a ${task.status} task has ${successes.length} completions`, task, ...successes);
  }
  const winning = receipts.find(({ id }) => id === task.winningReceiptId);
  if (task.status === "succeeded" && winning !== successes[0])
    violated("T4", "the result is not the winning receipt", task);
  if (task.winningReceiptId !== null && winning?.phase !== "complete")
    violated("T4", "the winning receipt is not a completion", task);
  if (winning !== undefined && receipts.at(-1) !== winning)
    violated("T13", "a task took receipts after its end", task, receipts.at(-1));
  if (task.obligation !== null && task.obligation.state !== "CLOSED")
    violated("R5", "a final task has an open obligation", task);
}

function checkAlive(task: Task, receipts: readonly Receipt[]): void {
  if (task.live.length > 0) violated("T5", "a task is leased after all workers stopped", task);
  const isOwed = task.obligation !== null && task.obligation.state !== "CLOSED";
  const opened = receipts.filter(
    ({ phase, obligationId }) => phase === "accepted" && obligationId === task.obligation?.id,
  );
  const closed = receipts.some((one) => one.phase === "complete" && one.obligationId === task.obligation?.id);
  if (isOwed !== (opened.length > 0 && !closed))
    violated("R5", "the ledger and the task disagree on the obligation", task);
  if (receipts.some(({ status }) => status === "success")) violated("T4", "a completed task is not final", task);
}

/**
 * R5: opened before closed, and closed once; a failure after which another of two workers goes on closes nothing
 * (T8).
 */
function checkObligations(taskId: string, receipts: readonly Receipt[]): void {
  const open = new Set<string>();
  const closed = new Set<string>();
  for (const { phase, obligationId, id, status, retryRequested } of receipts) {
    if (phase !== "accepted" && phase !== "complete") continue;
    if (obligationId === null || closed.has(obligationId)) {
      violated("R5", `receipt ${id} of ${taskId} has no open obligation`, ...receipts);
    }
    if (phase === "accepted") open.add(obligationId);
    else if (!open.has(obligationId)) violated("T13", `receipt ${id} of ${taskId} completes what nobody accepted`);
    else if (status !== "failure" || !retryRequested) closed.add(obligationId);
  }
}

/** S1: every acknowledged receipt is stored with the content that was sent; one key is one receipt (R3). */
function checkAcknowledged({ acknowledged }: ServiceWorld, receipts: readonly Receipt[]): void {
  const byId = new Map(receipts.map((receipt) => [receipt.id, receipt]));
  if (byId.size !== receipts.length) violated("R1", "a receipt's id was given twice");
  for (const { sent, receipt } of acknowledged) {
    const stored = byId.get(receipt.id);
    if (stored === undefined) violated("S1", "a receipt that was acknowledged is not in the ledger", receipt);
    if (!isDeepStrictEqual(stored, receipt)) violated("R1", "a receipt is not what was acknowledged", stored, receipt);
    const says =
      stored.phase === sent.phase && stored.taskId === sent.taskId && stored.outcomeText === sent.outcomeText;
    if (!says) violated("R3", "a receipt was acknowledged that says something else", sent, stored);
  }
  const keys = new Map<string, string>();
  for (const { dedupeKey, id } of receipts) {
    if (dedupeKey === null) continue;
    if (keys.has(dedupeKey)) violated("R3", `${keys.get(dedupeKey)} and ${id} have the same dedupe_key`, dedupeKey);
    keys.set(dedupeKey, id);
  }
}

/** R6: the chain is complete, and its signed heads match it. */
function checkChain({ service }: ServiceWorld): void {
  const { receipts, heads } = service.disk.ledger;
  const bySequence = heads.toSorted((a, b) => a.sequence - b.sequence);
  const verdict = verifyLedger(receipts, { heads: new Map([[tenant, bySequence]]), keys: service.keys });
  const [first] = verdict.findings;
  if (first !== undefined) violated("R6", first.detail, first);
  if (verdict.receipts !== receipts.length)
    violated("R6", `${verdict.receipts} of ${receipts.length} receipts were checked`);
}
