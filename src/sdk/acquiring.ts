/**
 * From a manifest to its leases: waits in line, tries again where it died, and leaves nothing behind when it is given
 * up. The agent, and so its age, stays the same throughout (W1, W5).
 */
import { backOffMs } from "../keeper/lease-keeper.ts";
import { type Actor, askAs } from "./actor.ts";
import type { Timed } from "./client.ts";
import { aborted, Died, type LeaseholdCode, LeaseholdError } from "./errors.ts";
import { drawKey } from "./idempotency.ts";
import { onAbort, sleep } from "./timing.ts";
import type { Granted, Intent, OperationInputs, Standby, Waiting } from "./wire.ts";

/** One resource, or all that one step needs. A name alone is to be changed (MUTATES). */
export type Manifest = string | Intent | readonly (string | Intent)[];

export interface AcquireOptions {
  readonly ttlMs?: number | undefined;
  /**
   * How long to try to get the leases, waiting and retrying included (W4); 0: only if they are free. Five minutes if left
   * out; Infinity: no limit.
   */
  readonly timeoutMs?: number | undefined;
  readonly idleTimeoutMs?: number | undefined;
  /** Why, for those who are in each other's way. */
  readonly purpose?: string | undefined;
  readonly tokens?: boolean | undefined;
  /** Whether to stand by where it would get DIE and the agent holds nothing (W14); true if left out. */
  readonly standby?: boolean | undefined;
  /** Gives up the wait, or the work. */
  readonly signal?: AbortSignal | undefined;
  /** Called when it has to wait or to come back, with what stands in the way. */
  readonly onWait?: ((verdict: Waiting | Standby | Died) => void) | undefined;
}

export interface AcquireSteps {
  /** Called after each DIE, before the pause: lets go of what is held. Throws to give up. */
  readonly rollBack: (died: Died) => Promise<void>;
  /** Called when it gets WAIT, DIE or PAUSED, before it lets go: saves a checkpoint (A2). */
  readonly stopped?: ((wanted: readonly Intent[]) => Promise<void>) | null;
  /** Whether to keep trying while the server is away, which is right for work that held the leases before (A7). */
  readonly outlasts: boolean;
}

/**
 * One question to the server is held no longer than this; then it is asked again. Short enough that a dead connection is
 * noticed, and the grant that waits behind it still collected, before it lapses (W8: 10 s).
 */
const holdMsMax = 5_000;
const timeoutMsDefault = 300_000;
/** After a wait that ran out, before the next attempt. */
const pauseMsBase = 100;
const pauseMsCap = 5_000;
/** The server's own limit. */
const standbyMsMax = 55_000;
/** With less time than this left, a wait that is over is not begun again. */
const lastWaitMsMin = 50;
/** One wait in line; then it is begun again. The server's usual cap, so that it has nothing to warn of. */
const waitMsMax = 600_000;

export async function acquireLeases(
  actor: Actor,
  manifest: Manifest,
  options: AcquireOptions,
  steps: AcquireSteps,
): Promise<Timed<Granted>> {
  const { timeoutMs = timeoutMsDefault, signal, onWait } = options;
  const endAt = performance.now() + timeoutMs;
  const intents = intentsOf(manifest);
  let input: AcquireInput | null = null;
  let isUnverified = false;
  for (let attempt = 0; ; attempt++) {
    if (signal?.aborted === true) throw aborted(signal, false);
    const leftMs = Math.max(endAt - performance.now(), 0);
    try {
      // A restart was announced for the agent while it was out of reach (L9): first the truth, then more leases.
      if (isUnverified) await askAs(actor, "verify_all", { agent_id: actor.agentId });
      isUnverified = false;
      input ??= inputOf(actor, intents, options, leftMs);
      const first = await submit(actor, input, signal);
      if (first.answer.verdict === "GRANTED") return { answer: first.answer, sentAt: first.sentAt };
      onWait?.(first.answer);
      void steps.stopped?.(intents);
      return await waitFor(actor, first.answer, signal);
    } catch (error) {
      if (!(error instanceof LeaseholdError)) throw error;
      if (error.code === "die" || error.code === "paused") await steps.stopped?.(intents);
      const hasWaited = error.code === "wait_timeout" && endAt - performance.now() < lastWaitMsMin;
      const mayAgain = comesBack.includes(error.code) || (steps.outlasts && outlasted.includes(error.code));
      if (leftMs === 0 || hasWaited || !mayAgain) throw error;
      // Whether it took effect is settled by sending exactly the same again (W10).
      if (!error.outcomeUnknown) input = null;
      isUnverified = isUnverified || error.code === "verify_required";
      if (error instanceof Died) {
        onWait?.(error);
        await steps.rollBack(error);
      }
      await sleep(Math.min(pauseMs(error, attempt), Math.max(endAt - performance.now(), 0)), signal);
    }
  }
}

export function intentsOf(manifest: Manifest): readonly Intent[] {
  return [manifest].flat().map((one) => (typeof one === "string" ? { predicate: "MUTATES", resource: one } : one));
}

type AcquireInput = OperationInputs["acquire"];

function inputOf(actor: Actor, intents: readonly Intent[], options: AcquireOptions, leftMs: number): AcquireInput {
  const { ttlMs, idleTimeoutMs, purpose, tokens, standby = true } = options;
  return {
    agent_id: actor.agentId,
    intents,
    request_id: drawKey(),
    collect: false,
    ...(ttlMs !== undefined && { ttl_ms: ttlMs }),
    ...(idleTimeoutMs !== undefined && { idle_timeout_ms: idleTimeoutMs }),
    ...(purpose !== undefined && { purpose }),
    ...(tokens !== undefined && { tokens }),
    ...(standby && leftMs > 0 && { standby_ms: Math.floor(Math.min(leftMs, standbyMsMax)) }),
    wait_timeout_ms: Math.floor(Math.min(leftMs, waitMsMax)),
  };
}

/** Not cut off in the middle: who gives up meanwhile waits for the answer, and undoes what it says. */
async function submit(
  actor: Actor,
  input: AcquireInput,
  signal: AbortSignal | undefined,
): Promise<Timed<Granted | Waiting | Standby>> {
  const asked = askAs(actor, "acquire", input);
  return orUndo(asked, signal, async ({ answer }) => {
    if (answer.verdict === "GRANTED") return release(actor, answer);
    if (answer.request_id !== null) await askAs(actor, "cancel_request", { request_id: answer.request_id });
  });
}

/**
 * WAIT ends in a grant, or in an error that says how (W2). The answer collects nothing, since it may be lost on its way: the
 * heartbeat of the client that has it does (W8).
 */
async function waitFor(
  actor: Actor,
  waiting: Waiting | Standby,
  signal: AbortSignal | undefined,
): Promise<Timed<Granted>> {
  const { request_id: requestId } = waiting;
  if (requestId === null) throw new TypeError("a request that waits has an id");
  const asks = async (): Promise<Timed<Granted>> => {
    for (;;) {
      const input = { request_id: requestId, hold_ms: holdMsMax, collect: false };
      const { answer, sentAt } = await askAs(actor, "get_request", input);
      if (answer.verdict === "GRANTED") return { answer, sentAt };
    }
  };
  const granted = asks();
  // With this the question that is held is answered at once.
  const giveUp = (): unknown => askAs(actor, "cancel_request", { request_id: requestId }).catch(() => undefined);
  const stop = onAbort(signal, giveUp);
  return orUndo(granted, signal, ({ answer }) => release(actor, answer)).finally(stop);
}

/** The outcome; or, where the signal fires first, its rejection, while what comes after all is undone. */
function orUndo<T>(
  outcome: Promise<T>,
  signal: AbortSignal | undefined,
  undo: (value: T) => Promise<void>,
): Promise<T> {
  if (signal === undefined) return outcome;
  return new Promise((resolve, reject) => {
    let isGivenUp = false;
    const stop = onAbort(signal, () => {
      isGivenUp = true;
      reject(aborted(signal, true));
    });
    outcome
      .finally(stop)
      // What cannot be undone now ends by itself, at the end of its TTL.
      .then((value) => (isGivenUp ? undo(value).catch(() => undefined) : resolve(value)), reject);
  });
}

async function release(actor: Actor, { leases }: Granted): Promise<void> {
  await askAs(actor, "release_all", { agent_id: actor.agentId, lease_ids: leases.map(({ id }) => id) });
}

/** `lease_expired`: it was granted while its answers did not get through, and has lapsed since (W8). */
const comesBack: readonly LeaseholdCode[] = ["die", "wait_timeout", "request_unknown", "lease_expired"];
/** What passes while the server is away, or once the agent has verified what it holds. */
const outlasted: readonly LeaseholdCode[] = [
  "verify_required",
  "unreachable",
  "timeout",
  "shutting_down",
  "database_unavailable",
];

/** The server's hint (W5), and a little chance on top so that a crowd does not come back at once; else a back-off (W4). */
function pauseMs({ retryAfterMs: hint }: LeaseholdError, attempt: number): number {
  if (hint === null) return backOffMs(attempt, pauseMsBase, pauseMsCap);
  return hint + Math.random() * Math.min(hint / 4, 250);
}
