/** From what is stored to a kernel that serves: open, load, restore, and what a first start or a restore adds. */
import { randomBytes } from "node:crypto";
import {
  apply,
  beginRestore,
  endRestore,
  jumpFences,
  liveHandles,
  type RestoredRecord,
  type Restoring,
  restoreLeases,
  type State,
} from "../kernel/kernel.ts";
import type { Millis } from "../kernel/records.ts";
import type { Batch, LiveRow, Opened, Store } from "../store/store.ts";
import { drawEntropy } from "./entropy.ts";
import { heapRoomFor } from "./heap-room.ts";
import { leaseLists, readLeases, readRecord, recordText } from "./record-text.ts";

export const defaultTenant = "default";

/** What the engine itself remembers, in a row of its own beside the kernel's records. */
interface EngineRecord {
  readonly secret: string;
  readonly restores: number;
  readonly restoredAt: Millis;
}

export interface Recovered {
  readonly state: State;
  readonly secret: string;
  readonly now: Millis;
  readonly lastSeq: number;
  readonly lastRow: number;
}

export async function recover(store: Store, wall: Millis): Promise<Recovered> {
  const opened = await store.open();
  const others: RestoredRecord[] = [];
  let own: { readonly n: number; readonly record: EngineRecord } | null = null;
  let restoring: Restoring | null = null;
  const room = heapRoomFor(opened.liveCount);
  let restored = 0;
  try {
    await store.load({
      onRows(rows) {
        for (const { n, kind, body } of rows) {
          if (kind === "engine") own = { n, record: JSON.parse(body) as EngineRecord };
          else others.push(readRecord(kind, body, n));
        }
      },
      lists: leaseLists,
      onLists(leases) {
        restoring ??= beginRestore(others);
        restoreLeases(restoring, readLeases(leases), leases.n);
        restored += leases.n.length;
        room.note(restored);
      },
    });
  } finally {
    room.close();
  }
  const state = endRestore(restoring ?? beginRestore(others));
  return begin(store, state, opened, own, wall);
}

/** The first start makes the default tenant and the secret; a restored backup makes all that is older stale (S6). */
async function begin(
  store: Store,
  state: State,
  opened: Opened,
  own: { readonly n: number; readonly record: EngineRecord } | null,
  wall: Millis,
): Promise<Recovered> {
  const { restores, restoredAt } = opened;
  let lastRow = opened.lastN;
  const recovered = { state, now: opened.now, lastSeq: opened.lastSeq };
  if (own !== null && own.record.restores === restores && own.record.restoredAt === restoredAt) {
    return { ...recovered, secret: own.record.secret, lastRow };
  }
  const now = Math.max(Math.floor(wall), opened.now);
  const puts: LiveRow[] = [];
  if (!state.tenants.has(defaultTenant)) {
    const operator = { role: "operator", agentId: null, epoch: null } as const;
    apply(
      state,
      {
        type: "create_tenant",
        tenant: defaultTenant,
        tenantId: defaultTenant,
        actor: operator,
        entropy: drawEntropy(),
      },
      now,
    );
  }
  if (own !== null) jumpFences(state);
  for (const handle of liveHandles(state)) {
    if (handle.row !== 0 && handle.kind !== "counters") continue;
    if (handle.row === 0) handle.row = ++lastRow;
    puts.push({ n: handle.row, kind: handle.kind, body: recordText(handle.kind, handle.record) });
  }
  const record: EngineRecord = { secret: randomBytes(32).toString("base64url"), restores, restoredAt };
  puts.push({ n: own?.n ?? ++lastRow, kind: "engine", body: JSON.stringify(record) });
  const batch: Batch = { now, puts, removes: [], events: null, ended: [] };
  await store.commit(batch);
  return { ...recovered, now, secret: record.secret, lastRow };
}
