/** The master keys, as an operator sees and rotates them. */
import { noteChange } from "../../engine/audit-chain.ts";
import { auditEntryOf } from "../../kernel/kernel.ts";
import type { RotateTokenKeys, TokenAnswer } from "../../protocol/answers/queries.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import type { LeaseTokens } from "./tokens.ts";

export function tokenKeys({ keys }: LeaseTokens): TokenAnswer {
  return { type: "token_keys", keys: keys.list() };
}

/** The new key is on disk before it is used or answered; connected cells get theirs at once. */
export function runRotate({ service, operation, command, respond }: RunRequest<RotateTokenKeys>): null {
  const { tokens, cells, engine, log } = service;
  const now = engine.now();
  try {
    const keyId = tokens.keys.rotate(now, command.overlapMs ?? undefined);
    cells.pushKeys();
    log.info({ keyId }, "tokens are signed with a new key from now on");
    const entry = auditEntryOf(command.tenant, command.actor, operation.name, keyId, {}, now);
    const stored = tokens.store?.() ?? Promise.resolve();
    stored
      .then(() => noteChange(engine, entry))
      .then(
        () => respond(operation.encode(tokenKeys(tokens), { now })),
        (fault: unknown) => respond(answerForFault(service, fault)),
      );
  } catch (fault) {
    respond(answerForFault(service, fault));
  }
  return null;
}
