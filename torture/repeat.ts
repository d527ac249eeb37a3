/** W10: commands sent again with their request_id. This settles unknown outcomes, and nothing is granted twice. */
import type { Random } from "../sim/random.ts";
import type { Connection } from "./connections.ts";
import { type AckedLease, learnLease, type Model, type PendingAcquire } from "./model.ts";
import { inParallel } from "./verify.ts";
import type { Violations } from "./violations.ts";
import type { Answer, WireLease } from "./wire.ts";

export interface Repeats {
  /** Acquires with a lost reply that turned out to be granted. */
  settled: number;
  repeated: number;
}

/** Sends every acquire of unknown outcome again, twice: both replies must be the same. */
export async function settlePending(
  model: Model,
  connection: Connection,
  violations: Violations,
  repeats: Repeats,
): Promise<void> {
  await inParallel([...model.pending.values()], async (pending) => {
    await checkPromisedWait(pending, connection, violations);
    const first = await sendAgain(pending, connection);
    repeats.settled++;
    if (first.status === 200) {
      const second = await sendAgain(pending, connection);
      compareGrants(first, second, pending, violations);
      for (const lease of first.body.leases ?? []) {
        learnLease(model.leases, lease, pending.input, model.tally, violations);
      }
    } else if (first.status >= 500)
      violations.add("S2", "a repetition was answered with a server error", { pending, first });
  });
  model.pending.clear();
}

/** W2: it got WAIT, so the request exists and has not died; it may have been granted, and the lease may be over. */
async function checkPromisedWait(
  { requestId, input }: PendingAcquire,
  connection: Connection,
  violations: Violations,
): Promise<void> {
  if (requestId === null) return;
  const answer = await connection.call("get_request", { request_id: requestId });
  const { status, body } = answer;
  const isKept = status === 200 || status === 202 || body.error === "wait_timeout" || isOverAnswer(answer);
  if (!isKept) violations.add("W2", "an acknowledged WAIT is lost", { requestId, input, answer });
}

/** A repetition that has to wait is canceled: the agent goes on with other work. */
async function sendAgain({ input }: PendingAcquire, connection: Connection): Promise<Answer> {
  const answer = await connection.call("acquire", { ...input });
  if (answer.status !== 202) return answer;
  await connection.call("cancel_request", { request_id: answer.body.request_id ?? "" });
  return answer;
}

function compareGrants(first: Answer, second: Answer, pending: PendingAcquire, violations: Violations): void {
  const grants = ({ body }: Answer): string => JSON.stringify((body.leases ?? []).map(idAndFence));
  if (second.status === 200 && grants(first) === grants(second)) return;
  if (isOverAnswer(second)) return;
  violations.add("W10", "a request was granted twice", { pending, first, second });
}

const idAndFence = ({ id, fence }: WireLease): readonly [string, number] => [id, fence];

/** Repeats acknowledged requests, live and ended ones: each request_id still names the same leases. */
export async function repeatAcknowledged(
  { leases }: Model,
  connection: Connection,
  random: Random,
  violations: Violations,
  repeats: Repeats,
): Promise<void> {
  const chosen = chooseToRepeat([...leases.values()], random);
  await inParallel(chosen, async (known) => {
    const answer = await connection.call("acquire", { ...known.input });
    repeats.repeated++;
    if (isOver(known, answer)) return;
    const lease = answer.body.leases?.find(({ id }) => id === known.id);
    const isSame = answer.status === 200 && lease?.fence === known.fence;
    if (!isSame) return violations.add("W10", "a repeated request shows another grant", { known, answer });
    if (known.end !== null && lease.state !== known.end) {
      violations.add("W10", "a repeated request brought a lease back", { known, answer });
    }
  });
}

/** All leases of the grant have ended: 410 says how, and nothing is granted again. */
function isOver({ end, doubts, expiresAt }: AckedLease, answer: Answer): boolean {
  if (!isOverAnswer(answer)) return false;
  return end !== null || doubts.size > 0 || expiresAt <= Date.now() + clocksApartMs;
}

function isOverAnswer({ status, body }: Answer): boolean {
  return status === 410 && overCodes.includes(body.error ?? "");
}

const overCodes = ["lease_released", "lease_expired", "lease_revoked"];
/** How far the server's time may be ahead of the wall clock here. */
const clocksApartMs = 1_000;
const repeatedLiveMax = 60;
/** Each is remembered for ten minutes. */
const repeatedEndedPerAgent = 3;

function chooseToRepeat(leases: readonly AckedLease[], random: Random): AckedLease[] {
  const live = leases.filter(({ end }) => end === null);
  const chosen = live.filter(() => random.chance(repeatedLiveMax / Math.max(live.length, repeatedLiveMax)));
  const ended = Map.groupBy(
    leases.filter(({ end, isOld }) => end === "RELEASED" && !isOld),
    ({ agentId }) => agentId,
  );
  // In the order of their grants, which for the last few is close enough to the order of their ends.
  for (const ofAgent of ended.values()) chosen.push(...ofAgent.slice(-repeatedEndedPerAgent));
  return chosen;
}
