/** Acquires as a command does: as long as its user is willing to wait, and leaving nothing behind when given up. */
import { constants } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { acquireLeases } from "../sdk/acquiring.ts";
import { type Actor, askAs } from "../sdk/actor.ts";
import type { Timed } from "../sdk/client.ts";
import { Died, LeaseholdError } from "../sdk/errors.ts";
import type { Blocker, Granted, Intent, Standby, Waiting } from "../sdk/wire.ts";
import type { Call, Flags } from "./command.ts";
import { showDuration } from "./durations.ts";
import { exitCodes, serverErrorCode, signalCode } from "./exit-codes.ts";
import { blockedWords } from "./lease-words.ts";
import type { Output } from "./output.ts";
import { Failure, UsageProblem } from "./problem.ts";

const silenceMs = 2_000;

/** As `flock` has them: it waits until it has them, unless it is given a limit. */
export const waitFlags: Flags = {
  nonblock: { short: "n", words: "do not wait: fail at once where something is in the way" },
  wait: { short: "w", sign: "TIME", words: "wait this long at most [for ever]; a bare number is in seconds" },
};

export function waitMsOf(call: Call): number {
  const isNow = call.isSet("nonblock");
  if (isNow && call.isSet("wait")) throw new UsageProblem("give -n (do not wait) or -w TIME, not both");
  return isNow ? 0 : (call.durationMs("wait") ?? Number.POSITIVE_INFINITY);
}

export interface Claim {
  readonly intents: readonly Intent[];
  readonly ttlMs: number | null;
  readonly waitMs: number;
  readonly purpose: string | null;
  /** Fires with the name of the signal that ends us. */
  readonly givenUp: AbortSignal;
  /** The code to end with where it was not granted. */
  readonly conflictCode?: number;
  /** Whether the agent was registered for this. */
  readonly isNew: boolean;
}

export async function acquire(actor: Actor, claim: Claim, out: Output): Promise<Timed<Granted>> {
  const { intents, ttlMs, waitMs, purpose, givenUp, conflictCode = exitCodes.notGranted } = claim;
  const waiting = new WaitingNote(out);
  const options = {
    timeoutMs: waitMs,
    signal: givenUp,
    ...(ttlMs !== null && { ttlMs }),
    ...(purpose !== null && { purpose }),
    onWait: (verdict: Waiting | Standby | Died) => waiting.begin(verdict),
  };
  try {
    return await acquireLeases(actor, intents, options, {
      rollBack: (died) => rollBack(actor, died),
      // A wait without a limit goes on through a restart of the server.
      outlasts: waitMs === Number.POSITIVE_INFINITY,
    });
  } catch (error) {
    if (!givenUp.aborted) throw notGranted(error, conflictCode);
    await leaveNothing(actor, claim.isNew);
    const signal = givenUp.reason as NodeJS.Signals;
    throw new Failure(`given up because of ${signal}`, signalCode(constants.signals[signal]), { cause: error });
  } finally {
    waiting.end();
  }
}

/** W8: for leases that no keeper sends heartbeats for. The grant of a wait is collected before it is shown. */
export async function collect(actor: Actor, granted: Granted): Promise<Granted> {
  const { claim_within_ms: withinMs, ...collected } = granted;
  if (withinMs === undefined) return granted;
  const input = { agent_id: actor.agentId, lease_ids: granted.leases.map(({ id }) => id) };
  const { answer } = await askAs(actor, "heartbeat_all", input);
  if (answer.lost.length > 0) throw new Failure("the grant lapsed before its answer arrived", exitCodes.notGranted);
  return collected;
}

/**
 * W5: nothing is retried while the agent holds something, which older work may wait for. What it holds belongs to a command
 * around this one, or to a script, and only they can undo what they did under it: so this one ends, and says when to
 * come back.
 */
async function rollBack({ client, agentId, token }: Actor, died: Died): Promise<void> {
  const { leases } = await client.call("verify_all", { agent_id: agentId }, { token });
  const held = leases.filter(({ state }) => state === "ACTIVE" || state === "BINDING" || state === "HELD").length;
  if (held > 0) throw new HeldMeanwhile(died, held);
}

class HeldMeanwhile extends Died {
  constructor({ code, detail, status, body }: Died, held: number) {
    const hint = (body as { readonly retry_after_ms?: unknown }).retry_after_ms;
    const leases = held === 1 ? "a lease" : `${held} leases`;
    super({
      code,
      detail: `DIE: ${detail} The agent holds ${leases}: release, and try again in ${hint} ms.`,
      status,
      body,
    });
  }
}

/** Says once what is waited for: at once on a terminal, and elsewhere after some silence. */
class WaitingNote {
  private readonly out: Output;
  private timer: NodeJS.Timeout | null = null;
  private wasSaid = false;

  constructor(out: Output) {
    this.out = out;
  }

  begin(verdict: Waiting | Standby | Died): void {
    if (this.wasSaid) return;
    this.wasSaid = true;
    const blockers = verdict instanceof Died ? verdict.blockedBy : verdict.blocked_by;
    const words = waitingWords(blockers, verdict instanceof Died ? undefined : verdict.units_back_in_ms);
    if (process.stderr.isTTY) this.out.note(words);
    else this.timer = setTimeout(() => this.out.note(words), silenceMs);
  }

  end(): void {
    if (this.timer !== null) clearTimeout(this.timer);
  }
}

/** Nobody is in the way of units that come back with time (G15), and of a lease that its cell is setting up (G6). */
function waitingWords(blockers: readonly Blocker[], unitsBackInMs: number | undefined): string {
  if (blockers.length > 0) return `waits: ${blockedWords(blockers)}`;
  return unitsBackInMs === undefined
    ? "waits for its cell"
    : `waits: units come back in ${showDuration(unitsBackInMs)}`;
}

/** Something in the way ends with the code that the caller chose, and names it; all else as ever. */
export function notGranted(error: unknown, code: number): unknown {
  if (!(error instanceof LeaseholdError) || serverErrorCode(error) !== exitCodes.notGranted) return error;
  const { blockedBy, detail, body } = error;
  const isToRelease = error instanceof HeldMeanwhile;
  const why = blockedBy.length === 0 ? detail : `${blockedWords(blockedBy)}${isToRelease ? `. ${detail}` : ""}`;
  return new Failure(`not granted: ${why}`, code, { cause: error, body });
}

/** An agent that was made for this ends with it, and with it whatever it was granted meanwhile (A1). */
async function leaveNothing({ client, agentId, token }: Actor, isNew: boolean): Promise<void> {
  // An older one's wait is cancelled by the SDK, for which there must be time.
  if (!isNew) return sleep(300);
  const ended = { agent_id: agentId, to: "ABORTED" } as const;
  await client.call("transition_agent", ended, { token, timeoutMs: 2_000, retries: 0 }).catch(() => undefined);
}
