/** A command on its way through the engine and back: what all of them share, and what most of them consist of. */
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { completeReply, needsHistory } from "../../engine/history.ts";
import type { Command } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Answer, AnswerContext } from "../../protocol/answers/answer.ts";
import type { QueryReply } from "../../protocol/answers/queries.ts";
import type { CommandOperation, Decoded, Input } from "../../protocol/operation.ts";
import type { Service } from "../service.ts";
import { answerForFault } from "./faults.ts";

export type Respond = (answer: Answer) => void;

/** What a `run` of an operation's own gets. */
export interface RunRequest<C extends Decoded = Decoded> {
  readonly service: Service;
  readonly operation: CommandOperation;
  readonly input: Input;
  readonly command: C;
  readonly respond: Respond;
}

/** Answers once. Returns how to drop a held answer when its client goes away, or null where nothing is held. */
export type Run = (request: RunRequest) => (() => void) | null;

/** Submits, asks history where the kernel has to, and encodes. */
export class CommandRun implements Outlet {
  readonly encode = null;
  protected readonly service: Service;
  protected readonly operation: CommandOperation;
  protected readonly command: Command;
  protected readonly respond: Respond;

  constructor(service: Service, operation: CommandOperation, command: Command, respond: Respond) {
    this.service = service;
    this.operation = operation;
    this.command = command;
    this.respond = respond;
  }

  send({ reply, now }: Decision): void {
    const { service, command } = this;
    service.counts.note(reply);
    if (!needsHistory(reply)) return this.answer(reply, now);
    completeReply(service.engine.store, command, reply).then(
      (completed) => this.answer(completed, now),
      (fault: unknown) => this.fail(fault),
    );
  }

  fail(fault: unknown): void {
    this.respond(answerForFault(this.service, fault));
  }

  protected answer(reply: QueryReply, now: Millis, more?: Partial<AnswerContext>): void {
    const shown = showTokens.has(this.operation.name) ? { now, tokenOf: this.service.tokens.tokenOf } : { now };
    this.respond(this.operation.encode(reply, more === undefined ? shown : { ...shown, ...more }));
  }
}

/** Operations whose reply carries the holder's tokens. Transfer is not among them: the giver no longer holds the lease. */
const showTokens: ReadonlySet<string> = new Set([
  "acquire",
  "get_request",
  "heartbeat",
  "heartbeat_all",
  "renew_lease",
  "downgrade_lease",
  "heartbeat_task",
]);
