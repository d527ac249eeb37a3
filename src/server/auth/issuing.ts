/**
 * Commands whose answers carry a credential: registering and resuming, with the new instance's token (A3), and creating a
 * key; and those that change what a credential allows.
 */
import type { Decision } from "../../engine/engine-types.ts";
import type { Command, CreateKey, DeleteKey, DeletePolicy, SetPolicy } from "../../kernel/contract/commands.ts";
import type { Agent } from "../../kernel/contract/records.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import { hashSecret, mintAgentToken, newKeyId, newSecret } from "./authenticate.ts";

export function runRegister({ service, operation, command, respond }: RunRequest<Command>): null {
  service.engine.submit(command, new RegisterRun(service, operation, command, respond));
  return null;
}

class RegisterRun extends CommandRun {
  override send(decided: Decision): void {
    const { reply, now } = decided;
    if (reply.type !== "agent" && reply.type !== "resumed") return super.send(decided);
    this.answer(reply, now, { agentToken: this.tokenFor(reply.agent) });
  }

  protected tokenFor({ id, epoch }: Agent): string {
    const { service, command } = this;
    return mintAgentToken(service.engine.secret, { tenant: command.tenant, agentId: id, epoch });
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

/** Polls that are held were matched with tasks by the policies before: their workers ask again. */
export function runPolicyChange({ service, operation, command, respond }: RunRequest<SetPolicy | DeletePolicy>): null {
  service.engine.submit(command, new PolicyRun(service, operation, command, respond));
  return null;
}

class PolicyRun extends CommandRun {
  override send(decided: Decision): void {
    if (decided.reply.type === "policy") this.service.polls.wakeAll();
    super.send(decided);
  }
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
