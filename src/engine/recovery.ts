/** From what is stored to a kernel that serves: open, load, restore, and what a first start or a restore adds. */
import { randomBytes } from "node:crypto";
import { unstamped } from "../kernel/contract/commands.ts";
import { limits } from "../kernel/contract/limits.ts";
import type { Millis } from "../kernel/contract/records.ts";
import {
  apply,
  beginRestore,
  type EndedLeases,
  endRestore,
  findStoredConflict,
  type Handle,
  jumpAhead,
  type LostHistory,
  liveHandles,
  numberBeyond,
  type RestoredRecord,
  type Restoring,
  restoreLeases,
  type State,
  withoutContext,
} from "../kernel/kernel.ts";
import { holdsLeases, receiptCounts, tenantsIn } from "../kernel/views.ts";
import { createLedgerKey, type LedgerKey, type PublicLedgerKey } from "../ledger/keys.ts";
import { StoreFault } from "../store/faults.ts";
import type { AuditRow, LedgerHead, LiveRow, Opened, Store } from "../store/store.ts";
import {
  type BootTime,
  type Clock,
  ClockJump,
  clockJumpMsMax,
  describeWallOffset,
  type Resumed,
  resumeTime,
  startClock,
  type TimeSources,
} from "./clock.ts";
import { leaseLists, readLease, readLeases, readRecord, recordText } from "./codec/record-text.ts";
import type { EngineLog, EngineOptions } from "./engine-types.ts";
import { v8Heap } from "./v8-heap.ts";

export const defaultTenant = "default";

/** What the engine itself remembers, in a row of its own beside the kernel's records. */
export interface EngineRecord {
  readonly secret: string;
  readonly restores: number;
  readonly restoredAt: Millis;
  readonly boot?: BootTime | null;
}

/** The public half of a key that signs heads. It stays when another takes over, so that old heads can be checked. */
interface LedgerKeyRecord extends PublicLedgerKey {
  readonly firstUsedAt: Millis;
}

export interface Recovered {
  readonly state: State;
  readonly secret: string;
  readonly clock: Clock;
  readonly resumed: Resumed;
  readonly lastSeq: number;
  readonly lastRow: number;
  readonly ledgerKey: LedgerKey;
  readonly ledgerKeys: readonly PublicLedgerKey[];
  readonly ledgerHeads: readonly LedgerHead[];
  /** What is wrong with the ledger at first sight, as sentences. */
  readonly auditHeads: readonly AuditRow[];
  readonly ledgerFaults: readonly string[];
}

/** The store keeps what is large and not decided with (S4). */
function awayIn(stored: RestoredRecord): RestoredRecord {
  return stored.kind === "digest" ? { ...stored, record: withoutContext(stored.record) } : stored;
}

interface Own {
  readonly n: number;
  readonly record: EngineRecord;
}

export interface Recovering {
  readonly time: TimeSources;
  /** The clock of this process, which goes on after a failed commit; null at its start. */
  readonly running: Clock | null;
  /** The key that this process has signed with; null: it is opened when the data is ours. */
  readonly key: LedgerKey | null;
}

/** What fails lets go of the data, so that it can be tried again. */
export async function recover(options: EngineOptions, recovering: Recovering): Promise<Recovered> {
  const { store, ledgerKey: openKey = createLedgerKey } = options;
  const opened = options.opened ?? (await store.open());
  try {
    return await recoverFrom(opened, recovering.key ?? openKey(), options, recovering);
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

async function recoverFrom(
  opened: Opened,
  ledgerKey: LedgerKey,
  options: EngineOptions,
  recovering: Recovering,
): Promise<Recovered> {
  const { store, heap = v8Heap } = options;
  const { time } = recovering;
  const others: RestoredRecord[] = [];
  const ledgerKeys: PublicLedgerKey[] = [];
  let own: Own | null = null;
  let restoring: Restoring | null = null;
  let restored = 0;
  // The reader's thread finds it while the writer's loads what is alive.
  const past = readPast(store);
  past.catch(() => undefined);
  const note = (count: number): void => {
    restored += count;
    heap.noteRestored(restored, opened.liveCount);
  };
  try {
    await store.load({
      onRows(rows) {
        for (const { n, kind, body } of rows) {
          if (kind === "engine") own = { n, record: openRecord(JSON.parse(body) as EngineRecord, options.secrets) };
          else if (kind === "ledger_key") ledgerKeys.push(readKey(body));
          else others.push(awayIn(readRecord(kind, body, n)));
        }
        note(rows.length);
      },
      lists: leaseLists,
      onLists(leases) {
        restoring ??= beginRestore(others);
        restoreLeases(restoring, readLeases(leases), leases.n);
        note(leases.n.length);
      },
    });
  } finally {
    heap.endRestore();
  }
  restoring ??= beginRestore(others);
  const state = endRestore(restoring, await past);
  const resumed = resumedTime(opened, own, state, recovering, options.clockJumpMsMax);
  assertNoConflict(restoring, resumed.now);
  const ledgerHeads = await store.ledgerHeads();
  const auditHeads = await store.auditHeads();
  const ledgerFaults = compareLedger(state, ledgerHeads);
  const clock = startClock(resumed.now, time);
  const isKeyNew = !isListed(ledgerKeys, ledgerKey);
  return {
    ...(await begin(options, state, opened, own, isKeyNew ? ledgerKey : null, resumed, Math.floor(time.wall()))),
    state,
    clock,
    resumed,
    ledgerKey,
    ledgerKeys: isKeyNew ? [...ledgerKeys, publicPart(ledgerKey)] : ledgerKeys,
    ledgerHeads,
    ledgerFaults,
    auditHeads,
  };
}

export function openRecord(record: EngineRecord, secrets: EngineOptions["secrets"]): EngineRecord {
  return secrets === undefined ? record : { ...record, secret: secrets.open(record.secret) };
}

/** C1, S2: two holders of one thing are worse than no service. It heals itself when the first of the two has run out. */
function assertNoConflict(restoring: Restoring, now: Millis): void {
  const conflict = findStoredConflict(restoring, now);
  if (conflict === null) return;
  const [one, other] = conflict.map(
    ({ id, predicate, resource, agentId, fence, expiresAt }) =>
      `${id} (${predicate} ${resource}, ${agentId}, fence ${fence}, until ${new Date(expiresAt).toISOString()})`,
  );
  throw new StoreFault(
    `two holders have conflicting leases, which only a bug or another hand can have stored: ${one} and ${other}; restore a backup, or start again when one of them has run out`,
  );
}

/** A4: the youngest ended leases, as many as the kernel remembers, and since when that is all. */
async function readPast(store: Store): Promise<EndedLeases> {
  const bodies = await store.youngestEnded(limits.endsRememberedMax);
  const leases = bodies.map(readLease);
  const oldest = leases.length < limits.endsRememberedMax ? undefined : leases.at(-1);
  const from = oldest === undefined ? 0 : (oldest.endedAt ?? oldest.expiresAt) + 1;
  // Asked after the rest, so that what is pruned in between is not taken for all there was.
  return { leases, from: Math.max(from, await store.earliestEnded()) };
}

/** L7: the time at which the service goes on. Where leases are alive, a jump ahead may end them only if it is believable. */
function resumedTime(
  { now: stored, passedMs }: Opened,
  own: Own | null,
  state: State,
  { time, running }: Recovering,
  jumpMsMax = clockJumpMsMax,
): Resumed {
  if (passedMs !== null) {
    // Servers that share data go on by the clock that they share, and none of their own decides.
    const wall = Math.floor(time.wall());
    const now = stored === 0 ? wall : stored + passedMs;
    return { now, boot: null, isSameBoot: true, wallAheadMs: wall - now };
  }
  const boot = own?.record.boot ?? null;
  const before = running?.now() ?? 0;
  // The process that stored it runs on, and knows best.
  if (before > 0 && before >= stored) return { now: before, boot, isSameBoot: true, wallAheadMs: 0 };
  const resumed = resumeTime(stored, boot, time);
  if (!resumed.isSameBoot && resumed.wallAheadMs > jumpMsMax && holdsLeases(state))
    throw new ClockJump(resumed.wallAheadMs);
  return resumed;
}

/** What an operator should know of what was found. */
export function logFindings({ resumed, ledgerFaults }: Recovered, log: EngineLog): void {
  const offset = describeWallOffset(resumed);
  if (offset !== null) log.warn({ time: new Date(resumed.now).toISOString() }, offset);
  for (const fault of ledgerFaults) log.error({}, fault);
}

function readKey(text: string): PublicLedgerKey {
  return publicPart(JSON.parse(text) as LedgerKeyRecord);
}

function publicPart({ keyId, publicKey }: PublicLedgerKey): PublicLedgerKey {
  return { keyId, publicKey };
}

function isListed(keys: readonly PublicLedgerKey[], { keyId }: PublicLedgerKey): boolean {
  return keys.some((one) => one.keyId === keyId);
}

/**
 * The counters and the ledger are written together, so they agree unless somebody had a hand in it. Where receipts are
 * missing the service goes on and says so; where there are too many it cannot, because a number would be given twice.
 */
function compareLedger(state: State, heads: readonly LedgerHead[]): string[] {
  const ends = new Map(heads.map(({ tenant, sequence }) => [tenant, sequence]));
  const faults: string[] = [];
  for (const [id, receipts] of receiptCounts(state)) {
    const stored = ends.get(id) ?? 0;
    if (stored > receipts) {
      throw new StoreFault(
        `the ledger of tenant ${id} has ${stored} receipts, but ${receipts} were given: restore a backup`,
      );
    }
    if (stored < receipts) {
      faults.push(
        `the ledger of tenant ${id} ends at ${stored}, but ${receipts} receipts were given: run ledger verify`,
      );
    }
  }
  return faults;
}

/**
 * The first start makes the default tenant and the secret. Where the data was restored since, history may have been lost:
 * numbers jump, leases are re-issued, and with another secret every older token is stale (L11, S6). All in one commit.
 */
async function begin(
  { store, secrets, makesDefaultTenant = true }: Pick<EngineOptions, "store" | "secrets" | "makesDefaultTenant">,
  state: State,
  opened: Opened,
  own: Own | null,
  newKey: LedgerKey | null,
  { now, boot }: Resumed,
  wall: Millis,
): Promise<Pick<Recovered, "lastSeq" | "secret" | "lastRow">> {
  const { restores, restoredAt } = opened;
  let { lastN: lastRow, lastSeq } = opened;
  const known = own?.record ?? null;
  const isRestored = known !== null && (known.restores !== restores || known.restoredAt !== restoredAt);
  const isBootKnown =
    known !== null && (known.boot?.id ?? null) === (boot?.id ?? null) && known.boot?.zeroAt === boot?.zeroAt;
  if (isBootKnown && !isRestored && newKey === null) return { lastSeq, secret: known.secret, lastRow };
  const puts: LiveRow[] = [];
  const put = (handle: Handle): void => {
    if (handle.row === 0) handle.row = ++lastRow;
    puts.push({ n: handle.row, kind: handle.kind, body: recordText(handle.kind, handle.record) });
  };
  if (newKey !== null) {
    const record: LedgerKeyRecord = { ...publicPart(newKey), firstUsedAt: now };
    puts.push({ n: ++lastRow, kind: "ledger_key", body: JSON.stringify(record) });
  }
  if (makesDefaultTenant && !tenantsIn(state).has(defaultTenant)) {
    createDefaultTenant(state, now);
    for (const handle of liveHandles(state)) if (handle.row === 0) put(handle);
  }
  if (isRestored) {
    const lost: LostHistory = { wall, losses: Math.max(restores - known.restores, 1) };
    lastSeq = numberBeyond(lastSeq, lost);
    for (const handle of new Set(jumpAhead(state, lost, now).changes)) put(handle);
  }
  const secret = known === null || isRestored ? randomBytes(32).toString("base64url") : known.secret;
  const record: EngineRecord = { secret: secrets?.seal(secret) ?? secret, restores, restoredAt, boot };
  puts.push({ n: own?.n ?? ++lastRow, kind: "engine", body: JSON.stringify(record) });
  const nothing = {
    removes: [],
    payloads: [],
    payloadRemoves: [],
    events: null,
    ended: [],
    endedTasks: [],
    endedRequests: [],
    receipts: [],
    heads: [],
    audits: [],
  };
  await store.commit({ ...nothing, now, puts, lastSeq });
  return { lastSeq, secret, lastRow };
}

function createDefaultTenant(state: State, now: Millis): void {
  const actor = { role: "operator", agentId: null, epoch: null } as const;
  const asked = { tenant: defaultTenant, actor, entropy: unstamped };
  apply(state, { type: "create_tenant", tenantId: defaultTenant, ...asked }, now);
}

const waitMsMin = 50;
const waitMsMax = 5_000;

/**
 * After a failed commit or step (S2): opens the store again, with growing pauses, until that works or is not wanted any
 * more. `failures` are the recoveries before it that led to nothing.
 */
export async function reopen(
  open: () => Promise<void>,
  isWanted: () => boolean,
  failures: number,
  time: TimeSources,
  log: EngineLog,
): Promise<void> {
  const { setTimeout: start = setTimeout } = time;
  const first = Math.min(waitMsMin * 2 ** Math.min(failures, 10), waitMsMax);
  for (let wait = first; isWanted(); wait = Math.min(wait * 2, waitMsMax)) {
    await new Promise<void>((resolve) => start(resolve, wait));
    if (!isWanted()) return;
    try {
      await open();
      log.info({}, "the store is open again; the service goes on from what is stored");
      return;
    } catch (fault) {
      log.warn({ err: fault, retryInMs: Math.min(wait * 2, waitMsMax) }, "the store cannot be opened yet");
    }
  }
}
