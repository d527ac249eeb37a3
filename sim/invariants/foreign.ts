/**
 * Obligations on tasks of other systems, derived a second time from the ledger alone (R1, R5): each receipt must fit what
 * those before it say, and what the kernel keeps must be what they leave open.
 */
import type { Receipt } from "../../src/kernel/contract/task-records.ts";
import { type Step, violated } from "./step.ts";

/** In the simulation, the ids of others' tasks. */
export const foreignPrefix = "foreign/";

export function isForeign({ taskId }: Receipt): boolean {
  return taskId.startsWith(foreignPrefix);
}

interface Owed {
  readonly id: string | null;
  readonly custodian: string | null;
  /** Null: it was escalated, and nobody has taken it up. */
  readonly acceptedBy: string | null;
}

/** By tenant and task. */
export type ForeignMemory = Map<string, Owed>;

export function checkForeign(memory: ForeignMemory, step: Step): void {
  for (const receipt of step.receipts.filter(isForeign)) follow(memory, step, receipt);
  const kept = [...step.store.foreign_obligation.values()];
  if (kept.length !== memory.size)
    violated("R5", `${kept.length} foreign obligations are kept, the ledger leaves ${memory.size} open`);
  for (const { tenant, taskId, obligation } of kept) {
    const owed = memory.get(`${tenant} ${taskId}`);
    if (owed?.id !== obligation.id || owed.custodian !== obligation.custodian || obligation.state !== "OPEN")
      violated("R5", "the ledger and the kernel disagree on a foreign obligation", obligation, owed);
    const listed = step.state.tenants.get(tenant)?.book.custodians.get(obligation.custodian) ?? [];
    if (![...listed].some(({ record }) => record.obligation?.id === obligation.id))
      violated("R5", "a foreign obligation is in nobody's inbox", obligation);
  }
}

function follow(memory: ForeignMemory, step: Step, receipt: Receipt): void {
  const { tenant, taskId, phase, obligationId, forPrincipal, sourceSystem, escalationTo } = receipt;
  const name = `${tenant} ${taskId}`;
  const owed = memory.get(name);
  const isAbove = step.command?.actor.role === "supervisor" || step.command?.actor.role === "operator";
  if (phase === "accepted") {
    if (owed === undefined) checkOpening(memory, step, receipt);
    else if (owed.acceptedBy !== null) violated("T3", "a foreign task was accepted twice", receipt, owed);
    else if (owed.custodian !== forPrincipal) violated("R5", "somebody else took a foreign task up", receipt, owed);
    if (!isAbove && !`${sourceSystem} `.startsWith(forPrincipal ?? " "))
      violated("R7", "a receipt binds somebody else", receipt);
    memory.set(name, { id: obligationId, custodian: forPrincipal, acceptedBy: sourceSystem });
    return;
  }
  if (owed === undefined) violated("T4", "a receipt is about a foreign task that nobody answers for", receipt);
  if (owed.id !== obligationId) violated("R5", "a receipt names another foreign obligation", receipt, owed);
  if (!isAbove && sourceSystem !== owed.custodian && sourceSystem !== owed.acceptedBy)
    violated("R7", "somebody else speaks for a foreign task", receipt, owed);
  if (phase === "complete") memory.delete(name);
  if (phase === "escalate") memory.set(name, { id: owed.id, custodian: escalationTo, acceptedBy: null });
}

/** R1, R8: only where the tenant takes them, and within its quota. */
function checkOpening(memory: ForeignMemory, { store, command }: Step, receipt: Receipt): void {
  const { settings, quotas } = store.tenant.get(receipt.tenant) ?? {};
  if (settings?.foreignReceipts !== true) violated("R1", "a foreign receipt was taken while that is off", receipt);
  if (command?.type !== "submit_receipt" || command.unowned !== true)
    violated("R1", "a receipt about a task of our own was taken for another's", receipt);
  // Ids are the tenant's own.
  const open = [...memory].filter(([name]) => name.startsWith(`${receipt.tenant} `));
  if (open.length >= (quotas?.foreignObligationsMax ?? 0))
    violated("R8", "more foreign obligations than the quota", receipt);
  for (const [, owed] of open)
    if (owed.id === receipt.obligationId) violated("R5", "a foreign obligation's id is used twice", receipt, owed);
}
