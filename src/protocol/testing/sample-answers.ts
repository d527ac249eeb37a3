/** For the encoders' tests: what an operation answers to a reply, held to what it declares. */
import assert from "node:assert/strict";
import type { Answer, AnswerContext } from "../answers/answer.ts";
import type { QueryReply } from "../answers/queries.ts";
import { findOperation } from "../operations.ts";
import { findAnswerFault } from "./conformance.ts";
import { sampleNow } from "./sample-records.ts";

/** The fields that tests look at one by one. */
export type SampleBody = Readonly<
  Partial<
    Record<
      | "attempt"
      | "blocked_by"
      | "blocked_by_total"
      | "error"
      | "expires_in_ms"
      | "from"
      | "id"
      | "key"
      | "lease_id"
      | "leases"
      | "lost"
      | "now"
      | "observation_update"
      | "priority_timestamp"
      | "request_id"
      | "retry_after_ms"
      | "returns_to"
      | "state"
      | "to"
      | "verdict"
      | "warnings",
      unknown
    >
  >
>;

export const sampleContext: AnswerContext = { now: sampleNow, agentToken: "agent-token", keySecret: "secret" };

export function answerOf(
  name: string,
  reply: QueryReply,
  context: AnswerContext = sampleContext,
): Answer & { readonly value: SampleBody } {
  const operation = findOperation(name);
  assert.ok(operation !== undefined && operation.kind !== "edge", name);
  const answer = operation.encode(reply, context);
  assert.equal(findAnswerFault(operation, answer), null);
  return { ...answer, value: (answer.body === "" ? {} : JSON.parse(answer.body)) as SampleBody };
}
