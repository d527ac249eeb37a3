/**
 * From an operation and its checked input to an answer, the same for HTTP, the stream and MCP. It translates and waits;
 * what is right is decided in the kernel.
 */

import { drawEntropy } from "../engine/entropy.ts";
import { DatabaseUnavailable, ShuttingDown } from "../engine/faults.ts";
import { completeReply, failedAssumptions, needsHistory, observe } from "../engine/history.ts";
import type { Decided } from "../engine/terms.ts";
import type { Command } from "../kernel/contract/commands.ts";
import type { Millis } from "../kernel/contract/records.ts";
import type { Reply } from "../kernel/contract/replies.ts";
import type { PollTasks } from "../kernel/contract/task-commands.ts";
import { assumptionsOf } from "../protocol/agents/digests.ts";
import { type Answer, type AnswerContext, errorAnswer } from "../protocol/answers/answer.ts";
import { statusOf } from "../protocol/answers/errors.ts";
import type { QueryReply } from "../protocol/answers/queries.ts";
import { assumptionFailedAnswer } from "../protocol/answers/reply-json.ts";
import { type CommandOperation, holdMsOf, type Input, type Operation } from "../protocol/operation.ts";
import { StoreFault } from "../store/faults.ts";
import { mintAgentToken } from "./auth/agent-tokens.ts";
import { hashSecret, newKeyId, newSecret } from "./auth/key-ring.ts";
import { renewLease } from "./cells/renewing.ts";
import { resetResource } from "./cells/resetting.ts";
import { rotateTokenKeys } from "./cells/token-keys.ts";
import { Refused } from "./http/refused.ts";
import { runQuery } from "./queries/queries.ts";
import { submitReceipt, submitReceipts } from "./receipts/receiving.ts";
import { answerFromHistory, isForHistory } from "./receipts/task-history.ts";
import type { Caller, Service } from "./service.ts";
import { createTask, createTasks } from "./tasks/creating-tasks.ts";

export type Respond = (answer: Answer) => void;

/** Answers once. Returns how to drop a held answer when its client goes away, or null where nothing is held. */
export function dispatch(
  service: Service,
  operation: Operation,
  input: Input,
  caller: Caller,
  respond: Respond,
): (() => void) | null {
  if (operation.roles !== "anyone" && !operation.roles.includes(caller.actor.role)) {
    service.tally.refuse("forbidden");
    respond(errorAnswer("forbidden", `A key with the role ${caller.actor.role} may not do this.`));
    return null;
  }
  switch (operation.kind) {
    case "command":
      return runCommand(service, operation, input, caller, respond);
    case "query":
      runQuery(service, operation.decode(input, { ...caller, entropy: drawEntropy() })).then(
        ({ reply, now }) => {
          if (reply.type === "refused") service.tally.note(reply);
          respond(
            operation.encode(reply, isOwnLease(reply, caller) ? { now, tokenOf: service.tokens.at(now) } : { now }),
          );
        },
        (fault: unknown) => respond(faultAnswer(service, fault)),
      );
      return null;
    case "edge":
      respond(errorAnswer("not_found", `${operation.name} is not a command; see /openapi.json.`));
      return null;
  }
}

/** Its holder's own credential: those above it may act for it, but have no need of what it shows at the resource. */
function isOwnLease(reply: QueryReply, { actor }: Caller): boolean {
  return reply.type === "lease" && actor.role === "agent" && actor.agentId === reply.lease.agentId;
}

function runCommand(
  service: Service,
  operation: CommandOperation,
  input: Input,
  { tenant, actor }: Caller,
  respond: Respond,
): (() => void) | null {
  const { engine } = service;
  const failed = failureTo(service, respond);
  const keySecret = operation.name === "create_key" ? newSecret() : null;
  const minted = keySecret === null ? undefined : { id: newKeyId(), hash: hashSecret(keySecret) };
  const asked = { tenant, actor, entropy: drawEntropy() };
  const command = operation.decode(input, minted === undefined ? asked : { ...asked, minted });
  switch (command.type) {
    case "rotate_token_keys":
      try {
        respond(operation.encode(rotateTokenKeys(service), { now: engine.now() }));
      } catch (fault) {
        failed(fault);
      }
      return null;
    case "poll_tasks":
      return poll(service, operation, command, holdMsOf(input), respond, failed);
    case "create_task":
      createTask(
        engine,
        command,
        ({ reply, now }) =>
          () => {
            service.tally.note(reply);
            respond(operation.encode(reply, { now }));
          },
        failed,
      );
      return null;
    case "create_tasks":
      createTasks(service, command, respond, failed);
      return null;
    case "submit_receipt":
      submitReceipt(service, command, respond, failed);
      return null;
    case "submit_receipts":
      submitReceipts(service, command, respond, failed);
      return null;
  }

  const holdMs = holdMsOf(input);
  const held: Held = { until: holdMs === 0 ? 0 : engine.now() + holdMs, isGone: false, drop: null };
  const decided = ({ reply, now }: Decided): void => {
    const context = contextFor(service, command, now);
    if (reply.type === "waiting" && holdMs > 0 && !held.isGone) {
      return hold(service, command, reply, held, decided, failed);
    }
    service.tally.note(reply);
    if (reply.type === "granted" && reply.observe === null) return respond(operation.encode(reply, context));
    if (keySecret !== null) {
      service.keys.noteChange();
      return respond(operation.encode(reply, { ...context, keySecret }));
    }
    if (command.type === "delete_key") service.keys.noteChange();
    if (needsMore(reply)) {
      answerWithMore(service, operation, command, input, reply, context).then(respond, failed);
      return;
    }
    respond(operation.encode(reply, context));
  };
  switch (command.type) {
    case "renew_lease":
      renewLease(service, command).then(decided, failed);
      return null;
    case "reset_resource":
      resetResource(service, command).then(decided, failed);
      return null;
  }
  engine.submit(command, decided, failed);
  if (holdMs === 0) return null;
  return () => {
    held.isGone = true;
    held.drop?.();
  };
}

/** Apart, because what it is made in is kept in memory until the answer: here nothing of what was asked. */
function failureTo(service: Service, respond: Respond): (fault: unknown) => void {
  return (fault) => respond(faultAnswer(service, fault));
}

/** To the holder, of what it holds with this answer: whoever hands a lease on is shown no token of it any more. */
const showTokens: ReadonlySet<Command["type"]> = new Set([
  "acquire",
  "collect_request",
  "heartbeat",
  "heartbeat_all",
  "renew_lease",
  "downgrade_lease",
  "heartbeat_task",
]);

function contextFor({ tokens }: Service, command: Command, now: Millis): AnswerContext {
  const isShown = showTokens.has(command.type) && !(command.type === "acquire" && command.dryRun);
  return isShown ? { now, tokenOf: tokens.at(now) } : { now };
}

interface Held {
  /** By the engine's clock. */
  readonly until: Millis;
  isGone: boolean;
  drop: (() => void) | null;
}

/**
 * Waits for the request's end or the end of the hold, and then asks for the request: only that collects a grant (W8),
 * so a client that went away in between loses it to the next in line.
 */
function hold(
  { engine, requests }: Service,
  { tenant, actor }: Command,
  { requestId }: Extract<Reply, { type: "waiting" }>,
  held: Held,
  decided: (decided: Decided) => void,
  failed: (fault: Error) => void,
): void {
  let isOver = false;
  const ask = (isLast: boolean): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    stop();
    held.drop = null;
    if (held.isGone) return;
    // At the end of the hold what still waits is answered as such; before it, it is held on.
    if (isLast) held.isGone = true;
    engine.submit({ type: "collect_request", tenant, actor, requestId, entropy: drawEntropy() }, decided, failed);
  };
  const timer = setTimeout(() => ask(true), Math.max(held.until - engine.now(), 0));
  const stop = requests.watch(requestId, ask);
  held.drop = () => {
    isOver = true;
    clearTimeout(timer);
    stop();
  };
}

/** Dropped whenever its client goes away, held or not: an offer that nobody hears is given back (T2). */
function poll(
  { polls, tally, tokens }: Service,
  operation: CommandOperation,
  command: PollTasks,
  holdMs: number,
  respond: Respond,
  failed: (fault: unknown) => void,
): () => void {
  const answered = ({ reply, now }: Decided): void => {
    tally.note(reply);
    respond(operation.encode(reply, { now, inList: command.maxTasks > 1, tokenOf: tokens.at(now) }));
  };
  return polls.ask(command, holdMs, answered, failed);
}

/** Replies that take a look into history, or a credential, before they can be put into words. */
function needsMore(reply: Reply): boolean {
  if (reply.type === "agent" || reply.type === "resumed") return true;
  return needsHistory(reply) || isForHistory(reply) || (reply.type === "granted" && reply.observe !== null);
}

async function answerWithMore(
  { engine }: Service,
  operation: CommandOperation,
  command: Command,
  input: Input,
  reply: Reply,
  shown: AnswerContext,
): Promise<Answer> {
  const { tenant } = command;
  switch (reply.type) {
    case "agent":
      return operation.encode(reply, {
        ...shown,
        agentToken: mintAgentToken(engine.secret, { tenant, agentId: reply.agent.id, epoch: reply.agent.epoch }),
      });
    case "granted": {
      const observation = reply.observe === null ? undefined : await observe(engine.store, tenant, reply.observe);
      return operation.encode(reply, observation === undefined ? shown : { ...shown, observation });
    }
    case "resumed": {
      const observation = await observe(engine.store, tenant, reply.observe);
      const { id: agentId, epoch } = reply.agent;
      const context = { ...shown, observation, agentToken: mintAgentToken(engine.secret, { tenant, agentId, epoch }) };
      const failed = failedAssumptions(assumptionsOf(input), observation);
      if (failed.length === 0) return operation.encode(reply, context);
      const actor = { role: "supervisor", agentId: null, epoch: null } as const;
      await engine.command({ type: "drop_digest", tenant, actor, agentId, entropy: drawEntropy() });
      return assumptionFailedAnswer(reply, failed, context);
    }
    default: {
      const isForTasks = isForHistory(reply) || command.type === "heartbeat_task" || command.type === "release_task";
      const answered = isForTasks
        ? await answerFromHistory(engine, command, reply)
        : await completeReply(engine.store, command, reply);
      return operation.encode(answered, shown);
    }
  }
}

/** What the caller is told of a fault; of one that nobody expects, the log is told more. */
export function faultAnswer(service: Service, fault: unknown): Answer {
  const answered = answerFor(fault);
  service.tally.refuseWith(answered);
  if (answered.status === statusOf("internal_error"))
    service.log.error({ err: fault }, "a command failed for a reason that is not its own");
  return answered;
}

function answerFor(fault: unknown): Answer {
  if (fault instanceof Refused) return fault.answer;
  if (fault instanceof ShuttingDown) return errorAnswer("shutting_down", sentence(fault.message), soon);
  if (fault instanceof DatabaseUnavailable) return errorAnswer("database_unavailable", sentence(fault.message), soon);
  // The history is the same database, asked without the engine.
  if (fault instanceof StoreFault)
    return errorAnswer("database_unavailable", sentence(new DatabaseUnavailable().message), soon);
  return errorAnswer("internal_error", "Something is wrong with the server; its log says what.");
}

/** An engine that starts over is mostly back within a second. */
const soon = { retry_after_ms: 1_000 };

function sentence(message: string): string {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}.`;
}
