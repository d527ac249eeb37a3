/**
 * From an operation and its decoded input to an answer, the same for HTTP, the stream and MCP: authorise, run, encode. What
 * is right is decided in the kernel.
 */
import { errorAnswer } from "../protocol/answers/answer.ts";
import type { Decoding, Operation } from "../protocol/operation.ts";
import type { Respond } from "./answering/command-run.ts";
import { answerForFault } from "./answering/faults.ts";
import { runQuery } from "./queries/queries.ts";
import { run } from "./runs.ts";
import type { Caller, Service } from "./service.ts";

/** Answers once. Returns how to drop a held answer when its client goes away, or null where nothing is held. */
export function dispatch(
  service: Service,
  operation: Operation,
  { input, command, query }: Decoding,
  caller: Caller,
  respond: Respond,
): (() => void) | null {
  const { name, roles } = operation;
  if (roles !== "anyone" && !roles.includes(caller.actor.role)) {
    service.counts.refuse("forbidden");
    respond(errorAnswer("forbidden", `A key with the role ${caller.actor.role} may not do this.`));
    return null;
  }
  if (operation.kind === "command" && command !== null) {
    return run({ service, operation, input, command, respond });
  }
  if (operation.kind === "query" && query !== null) {
    runQuery(service, operation, query, caller).then(respond, (fault: unknown) =>
      respond(answerForFault(service, fault)),
    );
    return null;
  }
  respond(errorAnswer("not_found", `${name} is not a command; see /openapi.json.`));
  return null;
}
