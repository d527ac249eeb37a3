/**
 * Commands whose answers carry a credential: registering and resuming, with the new instance's token (A3) and what happened
 * meanwhile (A4, A5), and creating a key.
 */
import type { Decision } from "../../engine/engine-types.ts";
import { failedAssumptions, observe } from "../../engine/history.ts";
import { type Command, type CreateKey, type DeleteKey, unstamped } from "../../kernel/contract/commands.ts";
import type { Agent, Millis } from "../../kernel/contract/records.ts";
import { assumptionsOf } from "../../protocol/agents/digests.ts";
import { assumptionFailedAnswer, type Resumed } from "../../protocol/answers/reply-json.ts";
import type { Input } from "../../protocol/operation.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import { hashSecret, mintAgentToken, newKeyId, newSecret } from "./authenticate.ts";

export function runRegister({ service, operation, command, respond }: RunRequest<Command>): null {
  service.engine.submit(command, new RegisterRun(service, operation, command, respond));
  return null;
}

export function runResume({ service, operation, command, input, respond }: RunRequest<Command>): null {
  const run = new ResumeRun(service, operation, command, respond);
  run.input = input;
  service.engine.submit(command, run);
  return null;
}

class RegisterRun extends CommandRun {
  override send(decided: Decision): void {
    const { reply, now } = decided;
    if (reply.type !== "agent") return super.send(decided);
    this.answer(reply, now, { agentToken: this.tokenFor(reply.agent) });
  }

  protected tokenFor({ id, epoch }: Agent): string {
    const { service, command } = this;
    return mintAgentToken(service.engine.secret, { tenant: command.tenant, agentId: id, epoch });
  }
}

class ResumeRun extends RegisterRun {
  input: Input = {};

  override send(decided: Decision): void {
    const { reply, now } = decided;
    if (reply.type !== "resumed") return super.send(decided);
    this.resume(reply, now).catch((fault: unknown) => this.fail(fault));
  }

  private async resume(reply: Resumed, now: Millis): Promise<void> {
    const { engine } = this.service;
    const { tenant } = this.command;
    const observation = await observe(engine.store, tenant, reply.observe);
    const more = { observation, agentToken: this.tokenFor(reply.agent) };
    const failed = failedAssumptions(assumptionsOf(this.input), observation);
    if (failed.length === 0) return this.answer(reply, now, more);
    const actor = { role: "supervisor", agentId: null, epoch: null } as const;
    await engine.command({ type: "drop_digest", tenant, actor, agentId: reply.agent.id, entropy: unstamped });
    this.respond(assumptionFailedAnswer(reply, failed, { now, ...more }));
  }
}

/** The secret is in this answer and nowhere else. */
export function runCreateKey({ service, operation, command, respond }: RunRequest<CreateKey>): null {
  const keySecret = newSecret();
  const key = { ...command.key, id: newKeyId(), hash: hashSecret(keySecret) };
  service.engine.submit({ ...command, key }, new KeyRun(service, operation, command, respond, { keySecret }));
  return null;
}

export function runDeleteKey({ service, operation, command, respond }: RunRequest<DeleteKey>): null {
  service.engine.submit(command, new KeyRun(service, operation, command, respond, {}));
  return null;
}

class KeyRun extends CommandRun {
  private readonly shown: { readonly keySecret?: string };

  constructor(...[service, operation, command, respond, shown]: [...ConstructorParameters<typeof CommandRun>, object]) {
    super(service, operation, command, respond);
    this.shown = shown;
  }

  override send({ reply, now }: Decision): void {
    this.service.counts.note(reply);
    this.service.keys.noteChange();
    this.answer(reply, now, this.shown);
  }
}
