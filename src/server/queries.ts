import type { Millis } from "../kernel/records.ts";
import type { Query, QueryReply } from "../protocol/queries.ts";
import type { Service } from "./service.ts";
export async function runQuery(_service: Service, _query: Query): Promise<{ reply: QueryReply; now: Millis }> {
  throw new Error("not yet");
}
