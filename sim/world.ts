/** One simulated world: the kernel, what a store would hold, the clock, and all clients. */
import { createHash, type Hash } from "node:crypto";
import type { Acquire, Actor, Command } from "../src/kernel/contract/commands.ts";
import type { Lease, StoredRecord } from "../src/kernel/contract/records.ts";
import type { CreateTask, PollTasks, SubmitReceipt } from "../src/kernel/contract/task-commands.ts";
import type { EndedTask, Receipt } from "../src/kernel/contract/task-records.ts";
import { createState, type State } from "../src/kernel/kernel.ts";
import type { Counters } from "./counters.ts";
import { createMemory, type Memory } from "./invariants/check.ts";
import { createRandom, type Random } from "./random.ts";
import { createRecordStore, type RecordStore } from "./record-store.ts";

export const beginning = 1_700_000_000_000;

/** An agent's own view, which may be wrong: replies get lost, and others act meanwhile. */
export interface SimAgent {
  readonly tenant: string;
  readonly id: string;
  epoch: number;
  /** Leases and requests that it knows of; some ended long ago. */
  leases: string[];
  requests: string[];
  /** Its last requests with a key, to be sent again when the reply was lost. */
  sent: Acquire[];
  /** Earlier instances that do not know yet that they were replaced. */
  zombies: Actor[];
  /** Crashed, until it is started again. */
  crashed: boolean;
  hasDigest: boolean;
}

/** A task that a worker believes it has, which may be wrong. */
export interface HeldTask {
  readonly taskId: string;
  readonly leaseId: string;
  readonly fence: number;
  isAccepted: boolean;
}

/** A worker's own view (T1). */
export interface SimWorker {
  readonly tenant: string;
  readonly id: string;
  readonly keyId: string;
  capabilities: readonly string[];
  held: HeldTask[];
  /** Tasks from before a restart, or completed ones: a zombie still sends receipts for them. */
  past: HeldTask[];
  polls: PollTasks[];
  sent: SubmitReceipt[];
  crashed: boolean;
}

export interface SimTenant {
  readonly id: string;
  readonly names: readonly string[];
  readonly counted: readonly string[];
  readonly bound: readonly string[];
  readonly agents: SimAgent[];
  readonly workers: SimWorker[];
  /** The last creations with the tasks' ids. */
  created: CreateTask[];
  taskIds: string[];
}

/** History: ended tasks, and every receipt (R1). */
export interface SimLedger {
  readonly ended: Map<string, EndedTask>;
  readonly endedLeases: Lease[];
  readonly receipts: Map<string, Receipt[]>;
}

/** The last backup, and the greatest fences that its restores gave. */
export interface SimBackups {
  backup: StoredRecord[];
  restores: number;
  readonly fences: Map<string, number>;
}

/** An order to a cell that it has not reported on yet. */
export interface CellJob {
  readonly tenant: string;
  /** The lease as it was when the order was given. */
  readonly lease: Lease;
  readonly does: "bind" | "teardown";
  /** A teardown. */
  readonly until: number;
}

/** A cell that enrolled, and what it really has set up. */
export interface SimCell {
  readonly tenant: string;
  readonly id: string;
  readonly actor: Actor;
  session: string;
  readonly bindings: Map<string, SimBinding>;
  /** Leases that it has ended; it does not bind them again. */
  readonly over: Set<string>;
}

export interface SimBinding {
  readonly resource: string;
  readonly generation: number;
  readonly fence: number;
  /** Its teardown failed. */
  readonly endedAs: string | null;
}

export interface World {
  readonly seed: number;
  readonly size: "small" | "large";
  readonly random: Random;
  readonly counters: Counters;
  readonly store: RecordStore;
  readonly memory: Memory;
  readonly ledger: SimLedger;
  /** Every other world has workers and tasks. */
  readonly hasTasks: boolean;
  readonly backups: SimBackups;
  readonly transcript: Hash;
  readonly tenants: SimTenant[];
  readonly jobs: CellJob[];
  readonly cells: SimCell[];
  /** Commands in flight; each arrives at its step, if at all. */
  readonly mail: { readonly atStep: number; readonly command: Command }[];
  /** The last commands, for the report of a violation. */
  readonly recent: { readonly step: number; readonly now: number; readonly command: Command }[];
  state: State;
  now: number;
  step: number;
}

export function createWorld(seed: number, counters: Counters): World {
  const random = createRandom(seed);
  return {
    seed,
    size: seed % 5 === 0 ? "large" : "small",
    random,
    counters,
    store: createRecordStore(),
    memory: createMemory(),
    ledger: { ended: new Map(), endedLeases: [], receipts: new Map() },
    hasTasks: seed % 2 === 0,
    backups: { backup: [], restores: 0, fences: new Map() },
    transcript: createHash("sha256"),
    tenants: [],
    jobs: [],
    cells: [],
    mail: [],
    recent: [],
    state: createState(),
    now: beginning + random.below(86_400_000),
    step: 0,
  };
}

export function entropyOf({ random }: World): readonly [number, number] {
  return [random.bits(), random.bits()];
}

export const operator: Actor = { role: "operator", agentId: null, epoch: null };
export const supervisor: Actor = { role: "supervisor", agentId: null, epoch: null };

export function workerActor({ keyId }: SimWorker): Actor {
  return { role: "worker", agentId: null, epoch: null, keyId };
}

export function actorOf(agent: SimAgent): Actor {
  return { role: "agent", agentId: agent.id, epoch: agent.epoch };
}
