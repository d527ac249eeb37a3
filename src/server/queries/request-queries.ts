/** Questions about requests that are not decided yet: who waits, and for whom. */
import type { Engine } from "../../engine/engine.ts";
import type { Request } from "../../kernel/contract/records.ts";
import type { State } from "../../kernel/kernel.ts";
import { describeRequest, findTenantFor, type RequestEntry } from "../../kernel/views.ts";
import type { OpenRequest, QueryOf } from "../../protocol/answers/queries.ts";
import type { QueryResult } from "./lease-queries.ts";
import { cursorFor, PageBuilder, readCursor } from "./paging.ts";
import { scan } from "./scan.ts";

/** This many are described between two turns of the loop; each may have thousands of others in its way. */
const describedAtOnce = 16;

export async function listRequests(engine: Engine, query: QueryOf<"list_requests">): Promise<QueryResult> {
  const after = readCursor("requests", query.cursor);
  let page = new PageBuilder<Request>(query.limit, after);
  const begin = (state: State) => {
    page = new PageBuilder<Request>(query.limit, after);
    const tenant = findTenantFor(state, query);
    return "code" in tenant ? tenant : tenant.requests.values();
  };
  const { refusal, now } = await scan<RequestEntry>(engine, begin, ({ record }) => {
    if (isOpen(record) && (query.agentId === null || record.agentId === query.agentId)) {
      page.offer(keyOf(record), record);
    }
  });
  if (refusal !== null) return { reply: refusal, now };
  const { items, lastKey } = page.build();
  const requests: OpenRequest[] = [];
  for (let done = 0; done < items.length; done += describedAtOnce) {
    requests.push(...(await describe(engine, query, items.slice(done, done + describedAtOnce))));
  }
  const nextCursor = lastKey === null ? null : cursorFor("requests", lastKey);
  return { reply: { type: "request_page", requests, nextCursor }, now: engine.now() };
}

/** Those that were decided since they were found are left out: a granted one may only be asked for by its agent (W8). */
function describe(
  engine: Engine,
  query: QueryOf<"list_requests">,
  requests: readonly Request[],
): Promise<OpenRequest[]> {
  return engine.ask((state) => {
    const tenant = findTenantFor(state, query);
    if ("code" in tenant) return [];
    return requests.flatMap(({ id }) => {
      const entry = tenant.requests.get(id);
      if (entry === undefined || !isOpen(entry.record)) return [];
      const wait = describeRequest({ state, tenant, now: 0 }, entry);
      return wait.type === "waiting" ? [{ request: entry.record, wait }] : [];
    });
  });
}

function isOpen({ state }: Request): boolean {
  return state === "WAITING" || state === "BINDING";
}

/** In order of arrival, which as text takes leading zeros. */
function keyOf({ arrival }: Request): string {
  return String(arrival).padStart(16, "0");
}
