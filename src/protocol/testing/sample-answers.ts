/** For the encoders' tests: what an operation answers to a reply, held to what it declares. */
import assert from "node:assert/strict";
import { type Answer, type AnswerContext, bodyObject, bodyText } from "../answers/answer.ts";
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
      | "failed"
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

export const sampleContext: AnswerContext = {
  now: sampleNow,
  agentToken: { token: "agent-token", expiresInMs: 86_400_000 },
  keySecret: "secret",
};

export function answerOf(
  name: string,
  reply: QueryReply,
  context: AnswerContext = sampleContext,
): Omit<Answer, "value"> & { readonly body: string; readonly value: SampleBody } {
  const operation = findOperation(name);
  assert.ok(operation !== undefined && operation.kind !== "edge", name);
  const answer = operation.encode(reply, context);
  const body = sampleBody(answer);
  assert.equal(findAnswerFault(operation, { ...answer, body }), null);
  return { ...answer, body, value: (body === "" ? {} : JSON.parse(body)) as SampleBody };
}

/** The body as HTTP sends it, which says the same as the object that MCP gets. */
export function sampleBody(answer: Answer): string {
  if (answer.status === 204) return "";
  const text = bodyText(answer);
  assert.equal(text, JSON.stringify(bodyObject(answer)));
  return text;
}
