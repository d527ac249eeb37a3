/**
 * From an operation and its checked input to an answer, the same for HTTP, the stream and MCP: authorise, decode, run,
 * encode. Every rule is decided in the kernel.
 */
import { type Command, unstamped } from "../kernel/contract/commands.ts";
import { type Answer, errorAnswer } from "../protocol/answers/answer.ts";
import type { Decoded, Input, Operation } from "../protocol/operation.ts";
import { limits } from "../protocol/schema/limits.ts";
import { CommandRun, type Respond, type Run, type RunRequest, runHeld } from "./answering/command-run.ts";
import { answerForFault } from "./answering/faults.ts";
import {
  runCreateKey,
  runKeyChange,
  runPolicyChange,
  runRegister,
  runRotateKey,
  runSetQuotas,
} from "./auth/issuing.ts";
import { runLeaseChange, runReset, runTaskHeartbeat, runTaskHeartbeats } from "./cells/through-cells.ts";
import { runRotate } from "./cells/token-keys.ts";
import { directoryOperations, tenantOperations } from "./cluster/shards.ts";
import { runBulkTasks } from "./operating/bulk-tasks.ts";
import { runQuery } from "./queries/queries.ts";
import { runReceipt, runReceipts } from "./receipts/receipts.ts";
import type { Caller, Place, Service } from "./service.ts";
import { runCreateTask, runCreateTasks } from "./tasks/creating-tasks.ts";
import { runPoll } from "./tasks/polls.ts";

/** Writes an answer, and returns its size in bytes, or about. */
export type Send = (answer: Answer) => number;

/** Answers once. Returns how to drop a held answer when its client goes away, or null where nothing is held. */
export function dispatch(
  service: Service,
  operation: Operation,
  input: Input,
  caller: Caller,
  send: Send,
): (() => void) | null {
  const began = performance.now();
  const endSpan = service.tracing === null ? null : service.tracing.request(operation.name, input["traceparent"]);
  const respond: Respond = (answer) => {
    const ms = performance.now() - began;
    service.counts.onAnswered?.(operation.name, answer.status, ms);
    if (endSpan !== null) endSpan(answer.status);
    const bytes = send(answer);
    if (bytes >= limits.bytesPerRequest) service.limiter.charge(caller.meter, bytes);
  };
  const { name, roles } = operation;
  const { tenant, actor } = caller;
  if (roles !== "anyone" && !roles.includes(actor.role)) {
    service.counts.refuse("forbidden");
    respond(errorAnswer("forbidden", `A key with the role ${actor.role} may not do this.`));
    return null;
  }
  if (operation.counted !== null) {
    const { length } = input[operation.counted] as readonly unknown[];
    // The request itself was counted when it came.
    const tooMany = length > 1 ? service.limiter.take(caller.meter, length - 1) : null;
    if (tooMany !== null) {
      service.counts.refuse("rate_limited");
      respond(tooMany);
      return null;
    }
  }
  const { place } = service;
  if (place !== null) {
    if (place.whyElsewhere(operation, input, caller) !== null) {
      const asked = place.ask(service.sessions, operation, input, caller);
      asked.then(respond, (fault: unknown) => respond(answerForFault(service, fault)));
      return null;
    }
  }
  const { address } = caller;
  const isNoted = operation.isAudited && address !== undefined;
  const sender = { tenant, actor: isNoted ? { ...actor, address } : actor, entropy: unstamped };
  if (operation.kind === "query") {
    const query = operation.decode(input, sender);
    runQuery(service, operation, query, caller).then(respond, (fault: unknown) =>
      respond(answerForFault(service, fault)),
    );
    return null;
  }
  if (operation.kind === "edge") {
    respond(errorAnswer("not_found", `${name} is not a command; see /openapi.json.`));
    return null;
  }
  const command = operation.decode(input, sender);
  if (place !== null && (directoryOperations.has(name) || tenantOperations.has(name)))
    return run({
      service,
      operation,
      input,
      command,
      caller,
      respond: (answer) => void spread(service, place, respond, answer),
    });
  return run({ service, operation, input, command, caller, respond });
}

/** Who was answered may act on it at once, in another shard too. */
async function spread({ engine }: Service, place: Place, respond: Respond, answer: Answer): Promise<void> {
  if (answer.status < 400) await place.spread(engine.store);
  respond(answer);
}

function run({ service, operation, input, command, caller, respond }: RunRequest): (() => void) | null {
  // The table gives each type the run for it.
  const own = runs[command.type] as Run | undefined;
  if (own !== undefined) return own({ service, operation, input, command, caller, respond });
  // The table has a run for each that is not a command of the kernel.
  const plain = command as Command;
  service.engine.submit(plain, new CommandRun(service, operation, plain, respond));
  return null;
}

type RunOf<T extends Decoded["type"]> = (request: RunRequest<Extract<Decoded, { type: T }>>) => ReturnType<Run>;

/** The commands that take more than submitting and encoding, each with its own run beside its noun. */
const runs: { readonly [T in Exclude<Decoded["type"], Command["type"]>]: RunOf<T> } & {
  readonly [T in Command["type"]]?: RunOf<T>;
} = {
  acquire: runHeld,
  collect_request: runHeld,
  register_agent: runRegister,
  resume_agent: runRegister,
  create_key: runCreateKey,
  renew_agent_token: runRegister,
  delete_key: runKeyChange,
  assign_name: runKeyChange,
  rotate_key: runRotateKey,
  set_policy: runPolicyChange,
  delete_policy: runPolicyChange,
  set_tenant_quotas: runSetQuotas,
  poll_tasks: runPoll,
  heartbeat_task: runTaskHeartbeat,
  heartbeat_tasks: runTaskHeartbeats,
  create_task: runCreateTask,
  create_tasks: runCreateTasks,
  submit_receipt: runReceipt,
  submit_receipts: runReceipts,
  renew_lease: runLeaseChange,
  transfer_lease: runLeaseChange,
  downgrade_lease: runLeaseChange,
  reset_resource: runReset,
  rotate_token_keys: runRotate,
  bulk_tasks: runBulkTasks,
};
