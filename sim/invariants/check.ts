/** All invariants after every step: everything against everything in small worlds, what changed in large ones. */
import { checkActor, checkWounds } from "./actors.ts";
import { checkAllConflicts, checkNewConflicts } from "./conflicts.ts";
import { checkFences, type FenceMemory } from "./fences.ts";
import { checkEnds, checkHeartbeat, checkIdleStates, checkLeaseChanges } from "./lifetimes.ts";
import { checkGrantReply, checkRequestChanges } from "./manifests.ts";
import type { Step } from "./step.ts";
import { viewsOf } from "./tenant-view.ts";
import { checkDeath, checkTimestamps, type TimestampMemory } from "./units-of-work.ts";
import { checkAllWaits, checkOvertaking, checkTouchedWaits } from "./waits.ts";

/** What the invariants remember from step to step. */
export interface Memory {
  readonly fences: FenceMemory;
  readonly timestamps: TimestampMemory;
  readonly wasHeld: Set<string>;
}

export function createMemory(): Memory {
  return { fences: new Map(), timestamps: new Map(), wasHeld: new Set() };
}

export function checkInvariants(memory: Memory, step: Step, thoroughly: boolean): void {
  checkFences(memory.fences, step);
  checkTimestamps(memory.timestamps, step);
  checkLeaseChanges(step, memory.wasHeld);
  checkRequestChanges(step);
  checkGrantReply(step);
  checkActor(step);
  checkWounds(step);
  checkHeartbeat(step);
  const nothingNew = step.changes.length === 0 && step.reply?.type !== "died";
  if (nothingNew && !thoroughly) return;
  for (const view of viewsOf(step.store)) {
    checkNewConflicts(view, step);
    checkOvertaking(view, step);
    checkDeath(view, step);
    if (thoroughly) {
      checkAllConflicts(view);
      checkAllWaits(view, step);
      checkIdleStates(view);
    } else checkTouchedWaits(view, step);
    if (step.settled) checkEnds(view, step);
  }
}
