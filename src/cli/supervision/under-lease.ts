/**
 * Runs a command while leases are held, and ends it before they can have ended (A7): SIGTERM, a time to tidy up,
 * SIGKILL, all of it counted back from the leases' end. A watchdog stands by for the case that we cannot.
 */
import type { Actor } from "../../sdk/actor.ts";
import type { Mark } from "../../sdk/clock.ts";
import { Holding } from "../../sdk/holding.ts";
import type { LeaseLost } from "../../sdk/lease-lost.ts";
import type { Lease } from "../../sdk/wire.ts";
import type { Child } from "./child.ts";
import type { Guard } from "./guard.ts";
import { listenForLosses } from "./listening.ts";
import { endGroup, isGroupRunning } from "./process-group.ts";

export interface UnderLease {
  readonly actor: Actor;
  readonly leases: readonly Lease[];
  readonly sentAt: Mark;
  readonly guard: Guard;
  /** How long the command may take to tidy up, where the leases leave as much. */
  readonly graceMs: number;
  /** Starts the command; told of its group before it begins. */
  readonly start: (onGroup: (group: number) => void) => Promise<Child>;
}

export interface Ended {
  readonly code: number;
  /** Why it was stopped; null where it came to its own end. */
  readonly lost: LeaseLost | null;
}

/** How long before the leases' end nothing of the command is left. */
const marginMsMin = 50;
const marginMsMax = 1_000;
/** What has been taken away already is not ours to use: little time to tidy up. */
const takenGraceMsMax = 1_000;

export async function runUnderLease({ actor, leases, sentAt, guard, graceMs, start }: UnderLease): Promise<Ended> {
  const ttlMs = Math.min(...leases.map(({ ttl }) => ttl));
  const marginMs = Math.min(Math.max(ttlMs / 10, marginMsMin), marginMsMax);
  const graceFittingMs = Math.min(graceMs, ttlMs / 4);
  const holding = new Holding(actor, leases, sentAt, { marginMs: marginMs + graceFittingMs, watch: false });
  await holding.begin();
  let group = 0;
  const tellGuard = (): void => {
    const leftMs = holding.remainingMs();
    guard.tell(group, leftMs, leftMs + graceFittingMs, false);
  };
  try {
    holding.assertHeld();
    tellGuard();
    const child = await start((started) => {
      group = started;
      tellGuard();
    });
    const telling = setInterval(tellGuard, Math.min(500, ttlMs / 10));
    const listening = new AbortController();
    void listenForLosses(actor, leases, listening.signal, (reason, detail) => holding.lose({ reason, detail }));
    const stopping = stopWhenLost(holding, child, guard, graceFittingMs);
    try {
      const code = await child.ended;
      await stopping.done();
      clearInterval(telling);
      // What it left running in its group would go on without a lease.
      if (isGroupRunning(group)) await endGroup(group, Math.min(graceFittingMs, holding.remainingMs()));
      return { code, lost: holding.lost };
    } finally {
      listening.abort();
      clearInterval(telling);
      stopping.dismiss();
    }
  } finally {
    holding.finish();
  }
}

function stopWhenLost(holding: Holding, child: Child, guard: Guard, graceMs: number) {
  let ending: Promise<void> | null = null;
  const onLost = (): void => {
    const { lost } = holding;
    const isTaken = lost !== null && lost.reason !== "no_contact";
    const ms = isTaken ? Math.min(graceMs, takenGraceMsMax) : graceMs;
    guard.tell(child.group, 0, ms, true);
    ending = endGroup(child.group, ms);
  };
  if (holding.signal.aborted) onLost();
  else holding.signal.addEventListener("abort", onLost, { once: true });
  return {
    done: () => ending ?? Promise.resolve(),
    dismiss: () => holding.signal.removeEventListener("abort", onLost),
  };
}
