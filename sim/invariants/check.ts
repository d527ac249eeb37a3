/** Checks all invariants after every step: of all records in small worlds, of the changed ones in large worlds. */
import { checkActor, checkWounds } from "./actors.ts";
import { checkChoices, checkKinds, checkReadiness } from "./cells.ts";
import { checkAllConflicts, checkNewConflicts } from "./conflicts.ts";
import { checkFences, type FenceMemory } from "./fences.ts";
import { checkForeign, type ForeignMemory } from "./foreign.ts";
import { checkLateCompletes, createGrantMemory, type GrantMemory } from "./late-completes.ts";
import { checkEnds, checkHeartbeat, checkIdleStates, checkLeaseChanges } from "./lifetimes.ts";
import { checkGrantReply, checkRequestChanges } from "./manifests.ts";
import { checkObservation, checkWorkers, type EndMemory } from "./observations.ts";
import {
  checkObligation,
  checkReceipts,
  checkRepeated,
  checkSender,
  createReceiptMemory,
  type ReceiptMemory,
} from "./receipts.ts";
import { checkStandbyChanges, checkStandbys } from "./standby.ts";
import type { Step } from "./step.ts";
import { checkOffers, checkTaskLeases } from "./task-leases.ts";
import { checkPlaces } from "./task-places.ts";
import { checkConservation, checkTask, checkTaskChanges, createTaskMemory, type TaskMemory } from "./task-records.ts";
import { checkTaskOvertaking, checkTaskWaits } from "./task-waits.ts";
import { type TenantView, viewsOf } from "./tenant-view.ts";
import { checkDeath, checkTimestamps, type TimestampMemory } from "./units-of-work.ts";
import { checkAllWaits, checkOvertaking, checkTouchedWaits } from "./waits.ts";

/** What the invariants remember from step to step. */
export interface Memory {
  readonly fences: FenceMemory;
  readonly timestamps: TimestampMemory;
  readonly wasHeld: Set<string>;
  readonly tasks: TaskMemory;
  readonly receipts: ReceiptMemory;
  readonly foreign: ForeignMemory;
  readonly grants: GrantMemory;
  readonly ends: EndMemory;
}

export function createMemory(): Memory {
  return {
    fences: new Map(),
    timestamps: new Map(),
    wasHeld: new Set(),
    tasks: createTaskMemory(),
    receipts: createReceiptMemory(),
    foreign: new Map(),
    grants: createGrantMemory(),
    ends: [],
  };
}

export function checkInvariants(memory: Memory, step: Step, thoroughly: boolean): void {
  checkFences(memory.fences, step);
  checkTimestamps(memory.timestamps, step);
  checkLeaseChanges(step, memory.wasHeld);
  checkRequestChanges(step);
  checkStandbyChanges(step);
  checkGrantReply(step);
  checkActor(step);
  checkWounds(step);
  checkHeartbeat(step);
  checkTaskChanges(memory.tasks, step);
  checkReceipts(memory.receipts, step);
  checkForeign(memory.foreign, step);
  checkRepeated(memory.receipts, step);
  checkOffers(step);
  checkSender(step);
  checkLateCompletes(memory.grants, step);
  checkObservation(memory.ends, step);
  const nothingNew = step.changes.length === 0 && step.reply?.type !== "died";
  if (nothingNew && !thoroughly) return;
  for (const view of viewsOf(step.store)) {
    checkNewConflicts(view, step);
    checkOvertaking(view, step);
    checkDeath(view, step);
    if (thoroughly) {
      checkAllConflicts(view);
      checkAllWaits(view, step);
      checkStandbys(view, step);
      checkIdleStates(view);
      checkWorkers(view);
      checkChoices(view, step);
    } else checkTouchedWaits(view, step);
    if (step.settled) checkEnds(view, step);
    checkReadiness(view, step);
    checkKinds(view, step);
    checkTaskWaits(view, step);
    checkTaskOvertaking(view, step);
    if (thoroughly) checkTasks(memory, view, step);
  }
}

function checkTasks(memory: Memory, view: TenantView, step: Step): void {
  const closing = new Map<string, number>();
  for (const { state, holder } of step.store.lease.values())
    if (state === "CLOSING") closing.set(holder, (closing.get(holder) ?? 0) + 1);
  checkConservation(memory.tasks, step);
  for (const task of view.tasks.values()) {
    checkTask(task, closing.get(task.id) ?? 0);
    checkObligation(memory.receipts, task);
  }
  checkTaskLeases(view, step);
  checkPlaces(view, step);
}
