/**
 * Obligations on tasks that this system does not own (R1, R5). There is no lease that could be lost, so that they are OPEN
 * from the acceptance to the completion, and never OVERDUE. Only open ones are in memory: once one is closed, the ledger
 * alone has it.
 */
import { limits } from "../contract/limits.ts";
import type { ReceiptInput } from "../contract/task-commands.ts";
import type { ForeignObligation, Receipt } from "../contract/task-records.ts";
import { createEntry } from "../memory/entries.ts";
import { changed, type TenantEntry, type Turn } from "../memory/state.ts";
import type { ForeignEntry } from "../memory/task-state.ts";
import { after } from "../memory/transitions.ts";
import { forgetMarks, marksOf, rememberMarks } from "../receipts/marks.ts";
import { listObligation, obligationTransitions, unlistObligation } from "./task-states.ts";

/** New, or restored. */
export function placeForeign(tenant: TenantEntry, record: ForeignObligation): ForeignEntry {
  const entry = createEntry("foreign_obligation", record);
  tenant.book.foreign.set(record.taskId, entry);
  listObligation(tenant, entry);
  rememberMarks(tenant, entry);
  return entry;
}

export function openForeign(
  turn: Turn,
  record: Omit<ForeignObligation, "dedupes">,
  input: ReceiptInput,
  receipt: Receipt,
) {
  const entry = placeForeign(turn.tenant, { ...record, dedupes: marksOf(input, receipt) });
  changed(turn, entry);
}

/** A receipt about it that leaves it open: its custodian accepted it once more, handed it on, or reports. */
export function noteForeign(turn: Turn, entry: ForeignEntry, input: ReceiptInput, receipt: Receipt): void {
  const { tenant } = turn;
  const { record } = entry;
  unlistObligation(tenant, entry);
  const dedupes = [...record.dedupes, ...marksOf(input, receipt)];
  const kept = dedupes.slice(-limits.foreignDedupeKeysMax);
  entry.record = { ...record, ...changeBy(record, receipt), lastReceiptId: receipt.id, dedupes: kept };
  listObligation(tenant, entry);
  rememberMarks(tenant, entry);
  forgetMarks(tenant, entry, dedupes.slice(0, -limits.foreignDedupeKeysMax));
  changed(turn, entry);
}

function changeBy({ obligation }: ForeignObligation, { id, phase, sourceSystem, escalationTo }: Receipt) {
  if (phase === "accepted") {
    const state = after(obligationTransitions, obligation.state, "accept");
    return { obligation: { ...obligation, state }, acceptedBy: sourceSystem, receiptId: id };
  }
  if (phase !== "escalate" || escalationTo === null) return {};
  const state = after(obligationTransitions, obligation.state, "hand_over");
  return { obligation: { ...obligation, state, custodian: escalationTo }, acceptedBy: null, receiptId: null };
}

export function closeForeign(turn: Turn, entry: ForeignEntry): void {
  const { tenant } = turn;
  const { record } = entry;
  const { taskId, obligation, dedupes } = record;
  unlistObligation(tenant, entry);
  forgetMarks(tenant, entry, dedupes);
  tenant.book.foreign.delete(taskId);
  const state = after(obligationTransitions, obligation.state, "close");
  entry.record = { ...record, obligation: { ...obligation, state } };
  entry.alive = false;
  changed(turn, entry);
}
