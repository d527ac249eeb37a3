/**
 * Work under leases: acquires them, keeps them, stops the work before they can have ended, and gives them back. Nothing
 * is asked beside the acquire and the release while all goes well.
 */
import { type AcquireOptions, acquireLeases, intentsOf, type Manifest } from "./acquiring.ts";
import { type Actor, askAs } from "./actor.ts";
import { type Died, LeaseholdError } from "./errors.ts";
import { Holding, type HoldingOptions } from "./holding.ts";
import { LeaseLost, lookUpHolders, lossIn, reasonOfEnd } from "./lease-lost.ts";
import { LiveLease } from "./live-lease.ts";
import { onAbort, sleep } from "./timing.ts";
import type { Granted, Lease, LeaseEnd, ObservationUpdate } from "./wire.ts";

export interface WithLeaseOptions extends AcquireOptions, HoldingOptions {
  /**
   * What to do when the leases were lost and the work has stopped: begin it again under new ones after a loss of
   * contact ("contact", the default: A7), after any loss ("always"), or not at all ("never").
   */
  readonly retryLost?: "contact" | "always" | "never" | undefined;
  /** After DIE the agent lets go of all that it holds before it asks again (W5), unless this is true. */
  readonly keepOnDie?: boolean | undefined;
}

/** What the work is given. */
export interface Held {
  /** Fires before the leases can have ended; the work must stop then. Its reason is the LeaseLost. */
  readonly signal: AbortSignal;
  /** As they are now: a renewal changes the fence. */
  readonly leases: readonly Lease[];
  /** Which beginning of the work this is: 1, and more after a loss or a roll-back. */
  readonly attempt: number;
  readonly warnings: readonly string[];
  /** What happened to the resources while the agent was paused (A4); null where it was not. */
  readonly observationUpdate: ObservationUpdate | null;
  /** The lease on it, by its name or as the manifest named it: its token, where to connect, how it ends. */
  leaseOf(resource: string): LiveLease;
  /** The number to show to the resource with every write. */
  fenceOf(resource: string): number;
  remainingMs(): number;
  /** Throws the LeaseLost if the leases may have ended: for the moment before something that cannot be undone. */
  assertHeld(): void;
  /** What the resource is now, reported with the release (A6). */
  setVersion(resource: string, version: string): void;
  /** The work goes on, for leases with an idle timeout (L10). */
  touch(): void;
}

/** The pieces of work of one agent. */
export class Works {
  private readonly all = new Set<Work>();
  /** Whether the agent may hold something that no piece of work here knows of. */
  readonly mayHoldMore: boolean;

  constructor(mayHoldMore: boolean) {
    this.mayHoldMore = mayHoldMore;
  }

  add(work: Work): void {
    this.all.add(work);
  }

  delete(work: Work): void {
    this.all.delete(work);
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
  private holding: Holding | null = null;
  private rolledBackBy: Died | null = null;

  begin(holding: Holding): void {
    this.holding = holding;
    this.rolledBackBy = null;
  }

  get isHolding(): boolean {
    return this.holding !== null;
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

/** A release that gets no answer is given up after this, or when the lease has ended anyway. */
const releaseMsMax = 10_000;

export async function workUnder<T>(
  actor: Actor,
  works: Works,
  manifest: Manifest,
  body: (held: Held) => Promise<T> | T,
  options: WithLeaseOptions = {},
): Promise<T> {
  const work = new Work();
  works.add(work);
  try {
    let lost: LeaseLost | null = null;
    for (let attempt = 1; ; attempt++) {
      const outcome = await runOnce(actor, works, work, manifest, body, options, attempt).catch((error: unknown) => {
        throw takenUpMeanwhile(error, lost) ?? error;
      });
      if (outcome.type === "done") return outcome.value;
      if (outcome.type === "failed") throw outcome.error;
      lost = outcome.lost;
    }
  } finally {
    works.delete(work);
  }
}

type Outcome<T> =
  | { readonly type: "done"; readonly value: T }
  | { readonly type: "failed"; readonly error: unknown }
  | { readonly type: "again"; readonly lost: LeaseLost | null };

async function runOnce<T>(
  actor: Actor,
  works: Works,
  work: Work,
  manifest: Manifest,
  body: (held: Held) => Promise<T> | T,
  options: WithLeaseOptions,
  attempt: number,
): Promise<Outcome<T>> {
  const rollBack = (died: Died): Promise<void> => letGo(actor, works, work, options, died);
  const { answer, sentAt } = await acquireLeases(actor, manifest, options, { rollBack, outlasts: attempt > 1 });
  const { signal } = options;
  const holding = new Holding(actor, answer.leases, sentAt, options);
  const versions = new Map<string, string>();
  work.begin(holding);
  const letGoOfSignal = onAbort(signal, () => holding.cancel(signal?.reason));
  await holding.begin();

  const names = intentsOf(manifest).map(({ resource }) => resource);
  const held = heldOf(holding, names, versions, attempt, answer);
  const ran = await run(body, held);
  holding.finish();
  const died = work.end();
  letGoOfSignal();

  const released = await release(actor, holding, versions);
  const lost = holding.lost ?? released;
  if (ran.type === "failed") {
    if (signal?.aborted === true) return { type: "failed", error: givenUp(signal, ran.error) };
    if (died !== null) await sleep(died.retryAfterMs ?? 0, signal);
    if (died !== null || (lost !== null && mayBeginAgain(lost, options))) return { type: "again", lost };
  }
  if (lost === null) return ran;
  await lookUpHolders(actor, lost);
  if (ran.type === "failed" && ran.error !== lost) lost.cause ??= ran.error;
  return { type: "failed", error: lost };
}

/** What was lost for want of contact was another instance's by then; only coming back tells. */
function takenUpMeanwhile(error: unknown, lost: LeaseLost | null): LeaseLost | null {
  const loss = lost === null ? null : lossIn(error);
  return lost === null || loss?.reason !== "taken_up" ? null : new LeaseLost({ ...loss, leases: lost.leases });
}

/** Work that was never begun because its leases were gone by then has failed as well. */
async function run<T>(body: (held: Held) => Promise<T> | T, held: Held): Promise<Outcome<T>> {
  try {
    held.signal.throwIfAborted();
    return { type: "done", value: await body(held) };
  } catch (error) {
    return { type: "failed", error };
  }
}

/** W5. Other work of the same agent is stopped first, and releases its leases as it ends; this one then has to end too. */
async function letGo(
  { client, agentId, token }: Actor,
  works: Works,
  work: Work,
  { keepOnDie }: WithLeaseOptions,
  died: Died,
): Promise<void> {
  if (keepOnDie === true) return;
  if (works.rollBackOthers(work, died)) throw died;
  if (works.mayHoldMore) await client.call("release_all", { agent_id: agentId }, { token });
}

/**
 * Null where all was given back. What turns out to have ended before was lost, though nobody here knew. A server that
 * is away is not waited for longer than the leases last: they end by themselves, and the work was done in time.
 */
async function release(
  actor: Actor,
  holding: Holding,
  versions: ReadonlyMap<string, string>,
): Promise<LeaseLost | null> {
  const { leases } = holding;
  const input = {
    agent_id: actor.agentId,
    lease_ids: leases.map(({ id }) => id),
    ...(versions.size > 0 && { versions: Object.fromEntries(versions) }),
  };
  const timeoutMs = Math.min(Math.max(holding.remainingMs(), 1_000), releaseMsMax);
  try {
    const { answer } = await askAs(actor, "release_all", input, { timeoutMs });
    const ended = answer.leases.find(({ state }) => state !== "RELEASED" && state !== "CLOSING");
    return ended === undefined ? null : lossOf(ended, leases);
  } catch (error) {
    if (!(error instanceof LeaseholdError)) throw error;
    const loss = holding.lost === null ? lossIn(error) : null;
    return loss?.reason === "taken_up" ? new LeaseLost({ ...loss, leases }) : null;
  }
}

function lossOf({ id, state }: LeaseEnd, leases: readonly Lease[]): LeaseLost {
  const lease = leases.find((one) => one.id === id);
  const what = lease === undefined ? id : `${lease.predicate} on ${lease.resource}`;
  const reason = reasonOfEnd(state);
  return new LeaseLost({ reason, detail: `The lease ${what} had ended before it was given back (${state}).`, leases });
}

function mayBeginAgain({ reason }: LeaseLost, { retryLost = "contact" }: WithLeaseOptions): boolean {
  switch (reason) {
    case "no_contact":
    case "overslept":
    case "expired":
    case "cell_not_ready":
      return retryLost !== "never";
    case "revoked":
    case "released":
    case "stale":
    case "fenced":
      return retryLost === "always";
    case "taken_up":
    case "rolled_back":
      return false;
  }
}

function givenUp({ reason }: AbortSignal, error: unknown): LeaseholdError {
  return new LeaseholdError({ code: "aborted", detail: "The caller has given the work up.", cause: error ?? reason });
}

function heldOf(
  holding: Holding,
  names: readonly string[],
  versions: Map<string, string>,
  attempt: number,
  { warnings, observation_update: update }: Granted,
): Held {
  // The leases come in the manifest's order. A rename has two, and then only their own names count.
  const asked = names.length === holding.held.length ? names : [];
  const leaseOf = (resource: string): LiveLease => {
    const at = asked.indexOf(resource);
    const found = holding.held.find(({ lease }) => lease.resource === resource) ?? holding.held[at];
    if (found === undefined) throw new RangeError(`No lease on ${resource} is held here.`);
    return new LiveLease(holding, found);
  };
  return {
    signal: holding.signal,
    get leases() {
      return holding.leases;
    },
    attempt,
    warnings,
    observationUpdate: update ?? null,
    leaseOf,
    fenceOf: (resource) => leaseOf(resource).fence,
    remainingMs: () => holding.remainingMs(),
    assertHeld: () => holding.assertHeld(),
    setVersion: (resource, version) => versions.set(resource, version),
    touch: () => holding.touch(),
  };
}
