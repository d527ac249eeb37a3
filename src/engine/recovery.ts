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
  jumpFences,
  liveHandles,
  type RestoredRecord,
  type Restoring,
  restoreLeases,
  type State,
} from "../kernel/kernel.ts";
import { receiptCounts, tenantsIn } from "../kernel/views.ts";
import type { LedgerKey, PublicLedgerKey } from "../ledger/keys.ts";
import { StoreFault } from "../store/faults.ts";
import type { LedgerHead, LiveRow, Opened, Store } from "../store/store.ts";
import { describeWallOffset, type TimeSources } from "./clock.ts";
import { leaseLists, readLease, readLeases, readRecord, recordText } from "./codec/record-text.ts";
import type { EngineLog } from "./engine-types.ts";
import type { V8Heap } from "./v8-heap.ts";

export const defaultTenant = "default";

/** What the engine itself remembers, in a row of its own beside the kernel's records. */
interface EngineRecord {
  readonly secret: string;
  readonly restores: number;
  readonly restoredAt: Millis;
}

/** The public half of a key that signs heads. It stays when another takes over, so that old heads can be checked. */
interface LedgerKeyRecord extends PublicLedgerKey {
  readonly firstUsedAt: Millis;
}

export interface Recovered {
  readonly state: State;
  readonly secret: string;
  readonly now: Millis;
  readonly lastSeq: number;
  readonly lastRow: number;
  readonly ledgerKey: LedgerKey;
  readonly ledgerKeys: readonly PublicLedgerKey[];
  readonly ledgerHeads: readonly LedgerHead[];
  /** What is wrong with the ledger at first sight, as sentences. */
  readonly ledgerFaults: readonly string[];
}

interface Own {
  readonly n: number;
  readonly record: EngineRecord;
}

/** `openKey` is called when the data is ours. What fails lets go of the data, so that it can be tried again. */
export async function recover(store: Store, wall: Millis, openKey: () => LedgerKey, heap: V8Heap): Promise<Recovered> {
  const opened = await store.open();
  try {
    return await recoverFrom(store, opened, wall, openKey(), heap);
  } catch (error) {
    await store.close().catch(() => undefined);
    throw error;
  }
}

async function recoverFrom(
  store: Store,
  opened: Opened,
  wall: Millis,
  ledgerKey: LedgerKey,
  heap: V8Heap,
): Promise<Recovered> {
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
          if (kind === "engine") own = { n, record: JSON.parse(body) as EngineRecord };
          else if (kind === "ledger_key") ledgerKeys.push(readKey(body));
          else others.push(readRecord(kind, body, n));
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
  assertNoConflict(restoring, Math.max(Math.floor(wall), opened.now));
  const ledgerHeads = await store.ledgerHeads();
  const ledgerFaults = compareLedger(state, ledgerHeads);
  return {
    ...(await begin(store, state, opened, own, ledgerKey, ledgerKeys, wall)),
    state,
    ledgerKey,
    ledgerKeys: isListed(ledgerKeys, ledgerKey) ? ledgerKeys : [...ledgerKeys, publicPart(ledgerKey)],
    ledgerHeads,
    ledgerFaults,
  };
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

/** What an operator should know of what was found. */
export function logFindings({ now, ledgerFaults }: Recovered, wall: Millis, log: EngineLog): void {
  const offset = describeWallOffset(now, wall);
  if (offset !== null) log.warn({ storedTime: new Date(now).toISOString() }, offset);
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

/** The first start makes the default tenant and the secret; a restored backup makes all that is older stale (S6). */
async function begin(
  store: Store,
  state: State,
  opened: Opened,
  own: Own | null,
  key: LedgerKey,
  keys: readonly PublicLedgerKey[],
  wall: Millis,
): Promise<Pick<Recovered, "now" | "lastSeq" | "secret" | "lastRow">> {
  const { restores, restoredAt, lastSeq } = opened;
  let lastRow = opened.lastN;
  const isKnown = own !== null && own.record.restores === restores && own.record.restoredAt === restoredAt;
  const isKeyKnown = isListed(keys, key);
  if (isKnown && isKeyKnown) return { now: opened.now, lastSeq, secret: own.record.secret, lastRow };
  const now = Math.max(Math.floor(wall), opened.now);
  const puts: LiveRow[] = [];
  if (!isKeyKnown) {
    const record: LedgerKeyRecord = { ...publicPart(key), firstUsedAt: now };
    puts.push({ n: ++lastRow, kind: "ledger_key", body: JSON.stringify(record) });
  }
  let secret = own?.record.secret ?? "";
  if (!isKnown) {
    if (!tenantsIn(state).has(defaultTenant)) createDefaultTenant(state, now);
    if (own !== null) jumpFences(state);
    for (const handle of liveHandles(state)) {
      if (handle.row !== 0 && handle.kind !== "counters") continue;
      if (handle.row === 0) handle.row = ++lastRow;
      puts.push({ n: handle.row, kind: handle.kind, body: recordText(handle.kind, handle.record) });
    }
    secret = randomBytes(32).toString("base64url");
    const record: EngineRecord = { secret, restores, restoredAt };
    puts.push({ n: own?.n ?? ++lastRow, kind: "engine", body: JSON.stringify(record) });
  }
  await store.commit({ now, puts, removes: [], events: null, ended: [], endedTasks: [], receipts: [], heads: [] });
  return { now, lastSeq, secret, lastRow };
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
