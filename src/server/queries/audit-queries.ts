/** The audit log, from the store (S7). */
import { shownAudit } from "../../ledger/audit.ts";
import type { QueryOf } from "../../protocol/answers/queries.ts";
import type { Service } from "../service.ts";
import { cursorFor, readCursor } from "./paging.ts";
import { answerFromStore, type QueryResult } from "./scan.ts";

export function listAudit({ engine }: Service, query: QueryOf<"list_audit">): Promise<QueryResult> {
  const { tenant, since, by: actor, action, limit } = query;
  return answerFromStore(engine, query, async () => {
    const after = Number(readCursor("audit", query.cursor) ?? 0);
    const rows = await engine.store.auditPage({ tenant, after, since, actor, action, limit });
    const last = rows.length < limit ? undefined : rows.at(-1);
    const nextCursor = last === undefined ? null : cursorFor("audit", String(last.sequence));
    return { type: "audit_page", entries: rows.map(shownAudit), nextCursor };
  });
}
