/** One simulated world: the kernel, what a store would hold, the clock, and everybody who speaks to it. */
import { createHash, type Hash } from "node:crypto";
import type { Acquire, Actor, Command } from "../src/kernel/contract/commands.ts";
import type { Lease } from "../src/kernel/contract/records.ts";
import type { CreateTask, PollTasks, SubmitReceipt } from "../src/kernel/contract/task-commands.ts";
import type { EndedTask, Receipt } from "../src/kernel/contract/task-records.ts";
import { createState, type State } from "../src/kernel/kernel.ts";
import type { Counters } from "./counters.ts";
import { createMemory, type Memory } from "./invariants/check.ts";
import { createRandom, type Random } from "./random.ts";
import { createRecordStore, type RecordStore } from "./record-store.ts";

export const beginning = 1_700_000_000_000;

/** An agent as it knows itself, which may be wrong: replies get lost, and others act meanwhile. */
export interface SimAgent {
  readonly tenant: string;
  readonly id: string;
  epoch: number;
  /** Leases and requests it has heard of; some have ended long ago. */
  leases: string[];
  requests: string[];
  /** Its last requests with a key, to be sent again when the answer was lost. */
  sent: Acquire[];
  /** Earlier instances that do not know yet that they were replaced. */
  zombies: Actor[];
  /** Gone without a word, until somebody starts it again. */
  crashed: boolean;
  hasDigest: boolean;
}

/** A task that a worker believes to have, which may be wrong. */
export interface HeldTask {
  readonly taskId: string;
  readonly leaseId: string;
  readonly fence: number;
  isAccepted: boolean;
}

/** A worker as it knows itself (T1). */
export interface SimWorker {
  readonly tenant: string;
  readonly id: string;
  readonly keyId: string;
  capabilities: readonly string[];
  held: HeldTask[];
  /** What it had in earlier lives, or has been done with: as a zombie it speaks of those. */
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
  /** Of the last tasks, what was sent to create them, and their ids. */
  created: CreateTask[];
  taskIds: string[];
}

/** What nothing alive keeps: the tasks that are over, and every receipt (R1). */
export interface SimLedger {
  readonly ended: Map<string, EndedTask>;
  readonly receipts: Map<string, Receipt[]>;
}

/** What a cell has been told to do and has not reported yet. */
export interface CellJob {
  readonly tenant: string;
  /** As it was when the cell was told. */
  readonly lease: Lease;
  readonly does: "bind" | "teardown";
  /** Afterwards it is not set up any more. */
  readonly until: number;
}

/** A cell that enrolled, and what it has set up in truth. */
export interface SimCell {
  readonly tenant: string;
  readonly id: string;
  readonly actor: Actor;
  session: string;
  readonly bindings: Map<string, SimBinding>;
  /** Leases that it has ended once; it does not begin them again. */
  readonly over: Set<string>;
}

export interface SimBinding {
  readonly resource: string;
  readonly generation: number;
  readonly fence: number;
  /** It is to be gone, and is not. */
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
  /** In every other world there are workers and tasks too. */
  readonly hasTasks: boolean;
  readonly transcript: Hash;
  readonly tenants: SimTenant[];
  readonly jobs: CellJob[];
  readonly cells: SimCell[];
  /** Commands under way; each arrives at the step it was given, if ever. */
  readonly mail: { readonly atStep: number; readonly command: Command }[];
  /** The last commands, for whoever reads about a violation. */
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
    ledger: { ended: new Map(), receipts: new Map() },
    hasTasks: seed % 2 === 0,
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
