/**
 * Commands whose answers carry a credential: registering and resuming, with the new instance's token (A3), renewing that
 * token, and creating or rotating a key; and those that change what a credential allows, or
 * how often.
 */
import type { Decision } from "../../engine/engine-types.ts";
import type {
  AssignName,
  Command,
  CreateKey,
  DeleteKey,
  DeletePolicy,
  RotateKey,
  SetPolicy,
  SetTenantQuotas,
} from "../../kernel/contract/commands.ts";
import type { AnswerContext } from "../../protocol/answers/answer.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import type { Caller } from "../service.ts";
import { hashSecret, newKeyId, newSecret } from "./credentials.ts";

export function runRegister({ service, operation, command, caller, respond }: RunRequest<Command>): null {
  service.engine.submit(command, new RegisterRun(service, operation, command, respond, caller));
  return null;
}

class RegisterRun extends CommandRun {
  private readonly caller: Caller;

  constructor(
    ...[service, operation, command, respond, caller]: [...ConstructorParameters<typeof CommandRun>, Caller]
  ) {
    super(service, operation, command, respond);
    this.caller = caller;
  }

  override send(decided: Decision): void {
    const { reply, now } = decided;
    if (reply.type !== "agent" && reply.type !== "resumed") return super.send(decided);
    const { id, epoch } = reply.agent;
    this.answer(reply, now, { agentToken: this.service.agentTokens.mint(this.caller, this.command.tenant, id, epoch) });
  }
}

/** The secret is in this answer and nowhere else. */
export function runCreateKey({ service, operation, command, respond }: RunRequest<CreateKey>): null {
  const keySecret = newSecret();
  const key = { ...command.key, id: newKeyId(), hash: hashSecret(keySecret) };
  const warnings = service.keys.isEmpty ? firstKey(key.role === "operator") : [];
  service.engine.submit({ ...command, key }, new KeyRun(service, operation, command, respond, { keySecret, warnings }));
  return null;
}

/** S5: what the first key changes for everybody. */
export function firstKey(isOperators: boolean): readonly string[] {
  const closed =
    "This is the first key: from now on every request needs a credential. Agents, workers and cells that were registered " +
    "without one belong to operators and supervisors, until an operator assigns them to a key; their tokens have ended.";
  if (isOperators) return [closed];
  return [closed, "It is not an operator's key, so no other key can be made over the wire; use `keys create --data`."];
}

export function runRotateKey({ service, operation, command, respond }: RunRequest<RotateKey>): null {
  const keySecret = newSecret();
  const rotating = { ...command, hash: hashSecret(keySecret) };
  service.engine.submit(rotating, new KeyRun(service, operation, command, respond, { keySecret }));
  return null;
}

export function runKeyChange({ service, operation, command, respond }: RunRequest<DeleteKey | AssignName>): null {
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
  private readonly shown: Partial<AnswerContext>;

  constructor(
    ...[service, operation, command, respond, shown]: [
      ...ConstructorParameters<typeof CommandRun>,
      Partial<AnswerContext>,
    ]
  ) {
    super(service, operation, command, respond);
    this.shown = shown;
  }

  override send({ reply, now }: Decision): void {
    this.service.counts.note(reply);
    this.service.keys.noteChange();
    this.answer(reply, now, this.shown);
  }
}

/** S4: from its answer on the new rate counts. */
export function runSetQuotas({ service, operation, command, respond }: RunRequest<SetTenantQuotas>): null {
  service.engine.submit(command, new QuotasRun(service, operation, command, respond));
  return null;
}

class QuotasRun extends CommandRun {
  override send(decided: Decision): void {
    const { reply } = decided;
    if (reply.type === "tenant") this.service.meters.noteQuotas(reply.tenant.id);
    super.send(decided);
  }
}
