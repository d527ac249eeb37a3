/** S7: the audit log is chained as the ledger is. Each entry holds the hash of the one before, and is hashed itself. */
import type { AuditEntry } from "../kernel/contract/audit-records.ts";
import type { AuditRow } from "../store/store.ts";
import { asciiJson, jsonIn, quoted, timeOf } from "./ledger-json.ts";
import { genesisHash, hashOf } from "./seal.ts";

/** Where a tenant's chain ends. */
export interface AuditHead {
  readonly sequence: number;
  readonly hash: string;
}

export const emptyAuditLog: AuditHead = { sequence: 0, hash: genesisHash };

/** Members that are null are left out; the others have a fixed order. */
export function sealAudit(entry: AuditEntry, before: AuditHead): AuditRow {
  const { tenant, at, actor, role, address, action, target, detail } = entry;
  const sequence = before.sequence + 1;
  const from = address === null ? "" : `,"address":${quoted(address)}`;
  const to = target === null ? "" : `,"target":${quoted(target)}`;
  const body = `{"sequence":${sequence},"previous_hash":"${before.hash}","tenant_id":${quoted(tenant)},"at":${asciiJson(timeOf(at))},"actor":${quoted(actor)},"role":"${role}"${from},"action":${quoted(action)}${to},"detail":${asciiJson(detail)}}`;
  return { tenant, sequence, at, actor, action, hash: hashOf(body), body };
}

/** An entry as it is shown: its members and its own hash. */
export type ShownAudit = Readonly<Record<string, unknown>>;

export function shownAudit({ body, hash }: AuditRow): ShownAudit {
  return { ...(jsonIn(body) as ShownAudit), hash };
}

/** The hash that an entry must have, from its members as they are shown. */
export function hashOfShown({ hash: _hash, ...members }: ShownAudit): string {
  return hashOf(asciiJson(members));
}
