/** Where each tenant's audit log ends (S7). What was sealed and not stored is forgotten with the rest of memory (S2). */
import type { AuditEntry } from "../kernel/contract/audit-records.ts";
import { audit } from "../kernel/kernel.ts";
import { type AuditHead, emptyAuditLog, sealAudit } from "../ledger/audit.ts";
import type { AuditRow } from "../store/store.ts";
import type { Engine } from "./engine.ts";

export class AuditChain {
  private readonly heads: Map<string, AuditHead>;

  constructor(heads: readonly AuditRow[]) {
    this.heads = new Map(heads.map((row) => [row.tenant, row]));
  }

  seal(entry: AuditEntry): AuditRow {
    const row = sealAudit(entry, this.heads.get(entry.tenant) ?? emptyAuditLog);
    this.heads.set(entry.tenant, row);
    return row;
  }
}

/** Notes a change that the kernel has no command for; resolves when that is durable. */
export async function noteChange(engine: Engine, entry: AuditEntry): Promise<void> {
  await engine.ask((_state, now) => engine.step("auditing", now, (state) => audit(state, entry)));
}
