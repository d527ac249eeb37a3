/**
 * The pieces of work of one agent, and which of them the present code runs in (W13). A `withLease` inside the work of
 * another is found here, by the platform's async context where it has one, and runs as the same agent: so nested leases
 * have one holder, and Wait-Die sees what each program holds while it asks for more.
 */
import type { Actor } from "./actor.ts";
import type { Died } from "./errors.ts";
import type { Holding } from "./holding.ts";
import { LeaseLost } from "./lease-lost.ts";
import type { Intent } from "./wire.ts";

/** Saves a checkpoint of the agent, whose manifest could not be had or was lost (A2). Never rejects. */
export type Checkpoint = (wanted: readonly Intent[]) => Promise<void>;

/** What the works of one agent have in common. */
export interface WorksOptions {
  /** Whether the agent may hold something that no piece of work here knows of. */
  readonly mayHoldMore: boolean;
  readonly checkpoint?: Checkpoint;
}

export class Works {
  readonly mayHoldMore: boolean;
  readonly checkpoint: Checkpoint | null;
  private readonly all = new Set<Work>();
  private readonly waiters: (() => void)[] = [];

  constructor({ mayHoldMore, checkpoint }: WorksOptions) {
    this.mayHoldMore = mayHoldMore;
    this.checkpoint = checkpoint ?? null;
  }

  add(work: Work): void {
    this.all.add(work);
  }

  delete(work: Work): void {
    this.all.delete(work);
    if (this.all.size === 0) for (const resolve of this.waiters.splice(0)) resolve();
  }

  /** Whether a piece of work is under way. */
  get isBusy(): boolean {
    return this.all.size > 0;
  }

  /** Settles when no piece of work is under way. */
  idle(): Promise<void> {
    return this.isBusy ? new Promise((resolve) => this.waiters.push(resolve)) : Promise.resolve();
  }

  /** Ends the others' work so that they let go (W5); false where there are none. */
  rollBackOthers(except: Work, died: Died): boolean {
    const others = [...this.all].filter((work) => work !== except && work.isHolding);
    for (const work of others) work.rollBack(died);
    return others.length > 0;
  }
}

/** One piece of work under way. */
export class Work {
  readonly actor: Actor;
  readonly works: Works;
  /** The work that it runs in; it stops with it. */
  readonly parent: Work | null;
  private holding: Holding | null = null;
  private rolledBackBy: Died | null = null;

  constructor(actor: Actor, works: Works, parent: Work | null) {
    this.actor = actor;
    this.works = works;
    this.parent = parent;
  }

  begin(holding: Holding): void {
    this.holding = holding;
    this.rolledBackBy = null;
  }

  get isHolding(): boolean {
    return this.holding !== null;
  }

  /** Fires when what runs in it has to stop; null while nothing does. */
  get signal(): AbortSignal | null {
    return this.holding?.signal ?? null;
  }

  /** What it was rolled back by, if it was. */
  end(): Died | null {
    this.holding = null;
    return this.rolledBackBy;
  }

  /** Its leases are kept until it has stopped, and given back then. */
  rollBack(died: Died): void {
    if (this.holding === null) return;
    this.rolledBackBy = died;
    const detail = "Another request of this agent died, and the agent lets go of all it holds before it asks again.";
    this.holding.cancel(new LeaseLost({ reason: "rolled_back", detail, leases: this.holding.leases, cause: died }));
  }
}

interface Storage {
  run<T>(work: Work | null, body: () => T): T;
  getStore(): Work | null | undefined;
}

interface Builtins {
  readonly process?: {
    getBuiltinModule?(name: "node:async_hooks"): { readonly AsyncLocalStorage: new () => Storage } | undefined;
  };
}

const storage = openStorage();

/** Node, Bun and Deno follow the async context; browsers do not yet, and there `held.withLease` says it by hand. */
function openStorage(): Storage | null {
  const hooks = (globalThis as Builtins).process?.getBuiltinModule?.("node:async_hooks");
  return hooks === undefined ? null : new hooks.AsyncLocalStorage();
}

/** Runs the body so that what it begins is found to run in this work; null: in none. */
export function runIn<T>(work: Work | null, body: () => T): T {
  return storage === null ? body() : storage.run(work, body);
}

/** The innermost work that this code runs in and that still holds its leases. */
export function presentWork(): Work | null {
  let work = storage?.getStore() ?? null;
  while (work !== null && !work.isHolding) work = work.parent;
  return work;
}
