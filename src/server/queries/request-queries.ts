/** Questions about requests that are not decided yet: who waits, and for whom. */
import type { Engine } from "../../engine/engine.ts";
import type { Request } from "../../kernel/contract/records.ts";
import { describeOpen, isOpen, type OpenRequest, recordsOf } from "../../kernel/views.ts";
import type { QueryOf } from "../../protocol/answers/queries.ts";
import type { Service } from "../service.ts";
import { listPage, type QueryResult } from "./scan.ts";

/** This many are described between two turns of the loop; each may have thousands of others in its way. */
const describedAtOnce = 16;

export async function listRequests({ engine }: Service, query: QueryOf<"list_requests">): Promise<QueryResult> {
  const { tenant, agentId } = query;
  const { reply } = await listPage(engine, query, {
    reader: query,
    name: "requests",
    items: (state) => recordsOf(state, tenant, "request"),
    // In order of arrival, which as text takes leading zeros.
    keyOf: ({ arrival }) => String(arrival).padStart(16, "0"),
    isWanted: (request) => isOpen(request) && (agentId === null || request.agentId === agentId),
    reply: async (found, nextCursor) => {
      const requests: OpenRequest[] = [];
      for (let done = 0; done < found.length; done += describedAtOnce) {
        requests.push(...(await describe(engine, tenant, found.slice(done, done + describedAtOnce))));
      }
      return { type: "request_page", requests, nextCursor };
    },
  });
  return { reply, now: engine.now() };
}

/** Those that were decided since they were found are left out: a granted one may only be asked for by its agent (W8). */
function describe(engine: Engine, tenant: string, requests: readonly Request[]): Promise<OpenRequest[]> {
  return engine.ask((state) => requests.flatMap(({ id }) => describeOpen(state, tenant, id) ?? []));
}
