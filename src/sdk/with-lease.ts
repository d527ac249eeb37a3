/**
 * Work under leases: acquires them, keeps them, stops the work before they can have ended, and gives them back. Nothing
 * is asked beside the acquire and the release while all goes well and nobody was in the way.
 */
import { type AcquireOptions, acquireLeases, intentsOf, type Manifest } from "./acquiring.ts";
import { type Actor, askAs } from "./actor.ts";
import { type Died, LeaseholdError } from "./errors.ts";
import { type Hold, type HoldOptions, holdUntilReleased } from "./hold.ts";
import { Holding, type HoldingOptions } from "./holding.ts";
import { LeaseLost, lookUpHolders, lookUpReason, lossIn, reasonOfEnd } from "./lease-lost.ts";
import { LiveLease } from "./live-lease.ts";
import { onAbort, sleep } from "./timing.ts";
import type { Granted, Lease, LeaseEnd, ObservationUpdate } from "./wire.ts";
import { runIn, Work, type Works } from "./works.ts";

export interface WithLeaseOptions extends AcquireOptions, HoldingOptions {
  /**
   * What to do when the leases were lost and the work has stopped: begin it again under new ones after a loss of
   * contact or a wound ("contact", the default: A7, W7), after any loss ("always"), or not at all ("never").
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
  /**
   * More leases for the same work, as the same agent (W13). `client.withLease` inside the work does the same wherever the
   * platform follows the async context, which browsers do not.
   */
  withLease<T>(manifest: Manifest, body: (held: Held) => Promise<T> | T, options?: WithLeaseOptions): Promise<T>;
  /** As `withLease`, for leases that outlive a function. */
  hold(manifest: Manifest, options?: HoldOptions): Promise<Hold>;
}

/** A release that gets no answer is given up after this, or when the lease has ended anyway. */
const releaseMsMax = 10_000;

/** `parent`: the work that this one runs in; when that has to stop, so has this one, and only that one begins again. */
export async function workUnder<T>(
  actor: Actor,
  works: Works,
  manifest: Manifest,
  body: (held: Held) => Promise<T> | T,
  options: WithLeaseOptions = {},
  parent: Work | null = null,
): Promise<T> {
  const work = new Work(actor, works, parent);
  works.add(work);
  const within = stoppedWith(parent, options);
  try {
    let lost: LeaseLost | null = null;
    for (let attempt = 1; ; attempt++) {
      const outcome = await runOnce(work, manifest, body, within, attempt).catch((error: unknown) => {
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

function stoppedWith(parent: Work | null, options: WithLeaseOptions): WithLeaseOptions {
  const outer = parent?.signal ?? null;
  if (outer === null) return options;
  return { ...options, signal: options.signal === undefined ? outer : AbortSignal.any([options.signal, outer]) };
}

type Outcome<T> =
  | { readonly type: "done"; readonly value: T }
  | { readonly type: "failed"; readonly error: unknown }
  | { readonly type: "again"; readonly lost: LeaseLost | null };

async function runOnce<T>(
  work: Work,
  manifest: Manifest,
  body: (held: Held) => Promise<T> | T,
  options: WithLeaseOptions,
  attempt: number,
): Promise<Outcome<T>> {
  const { actor } = work;
  const rollBack = (died: Died): Promise<void> => letGo(work, options, died);
  const { checkpoint: stopped } = work.works;
  const granted = await acquireLeases(actor, manifest, options, {
    rollBack,
    stopped,
    outlasts: attempt > 1,
  });
  const { signal } = options;
  const holding = new Holding(actor, granted, options);
  const versions = new Map<string, string>();
  work.begin(holding);
  const letGoOfSignal = onAbort(signal, () => holding.cancel(signal?.reason));
  const intents = intentsOf(manifest);
  // At once, and not when the work has come to its end: it may never.
  if (stopped !== null) onAbort(holding.signal, () => void stopped(intents));
  await holding.begin();

  const names = intents.map(({ resource }) => resource);
  const held = heldOf(work, holding, names, versions, attempt, granted.answer);
  const ran = await run(body, held, work);
  holding.finish();
  const died = work.end();
  letGoOfSignal();

  const released = await release(actor, holding, versions);
  const lost = holding.lost ?? released;
  if (lost !== null) {
    if (stopped !== null && !holding.signal.aborted) await stopped(intents);
    await lookUpReason(actor, lost);
  }
  if (ran.type === "failed" && signal?.aborted === true) return { type: "failed", error: givenUp(signal, ran.error) };
  // A wound is found out about late, often at the release; whatever the work has done since, it was done without a lease.
  if (lost?.reason === "wounded" && mayBeginAgain(lost, options)) return { type: "again", lost };
  if (ran.type === "failed") {
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
async function run<T>(body: (held: Held) => Promise<T> | T, held: Held, work: Work): Promise<Outcome<T>> {
  try {
    held.signal.throwIfAborted();
    return { type: "done", value: await runIn(work, () => body(held)) };
  } catch (error) {
    return { type: "failed", error };
  }
}

/** W5. Other work of the same agent is stopped first, and releases its leases as it ends; this one then has to end too. */
async function letGo(work: Work, { keepOnDie }: WithLeaseOptions, died: Died): Promise<void> {
  if (keepOnDie === true) return;
  const { works, actor } = work;
  if (works.rollBackOthers(work, died)) throw died;
  if (works.mayHoldMore) await askAs(actor, "release_all", { agent_id: actor.agentId });
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
    case "wounded":
      return retryLost !== "never";
    case "revoked":
    case "released":
    case "stale":
    case "fenced":
      return retryLost === "always";
    case "taken_up":
    case "rolled_back":
    case "budget":
      return false;
  }
}

function givenUp({ reason }: AbortSignal, error: unknown): LeaseholdError {
  return new LeaseholdError({ code: "aborted", detail: "The caller has given the work up.", cause: error ?? reason });
}

function heldOf(
  work: Work,
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
  const withLease: Held["withLease"] = (manifest, body, options) =>
    workUnder(work.actor, work.works, manifest, body, options, work);
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
    withLease,
    hold: (manifest, options) =>
      holdUntilReleased((body) => withLease(manifest, body, { ...options, retryLost: "never" })),
  };
}
