/** Queries on the audit log by the read-only connection (S7). */
import type { DatabaseSync } from "node:sqlite";
import { auditRow } from "./rows.ts";
import type { Handlers } from "./sqlite-calls.ts";

export type AuditCalls = "auditPage" | "auditHeads";

export function prepareAuditQueries(db: DatabaseSync): Handlers<AuditCalls> {
  const page = db.prepare(`
    SELECT * FROM audit
    WHERE tenant = ?1 AND sequence > ?2 AND (?3 IS NULL OR at >= ?3) AND (?4 IS NULL OR actor = ?4)
      AND (?5 IS NULL OR action = ?5)
    ORDER BY sequence LIMIT ?6`);
  const heads = db.prepare(`
    SELECT a.* FROM (SELECT tenant, max(sequence) AS sequence FROM audit GROUP BY tenant) AS last
    JOIN audit AS a ON a.tenant = last.tenant AND a.sequence = last.sequence ORDER BY a.tenant`);
  return {
    auditPage: ({ tenant, after, since, actor, action, limit }) =>
      page.all(tenant, after, since, actor, action, limit).map(auditRow.read),
    auditHeads: () => heads.all().map(auditRow.read),
  };
}
