/** The control plane for MCP tools within the same process, as the caller of the request or as its agent. */
import { tenantsIn } from "../../kernel/views.ts";
import type { Body, ControlPlane, Depot, Reply } from "../../mcp/control-plane.ts";
import { limits } from "../../mcp/limits.ts";
import { type Answer, bodyObject, errorAnswer } from "../../protocol/answers/answer.ts";
import { acting } from "../../protocol/operating/roles.ts";
import type { Input, Operation } from "../../protocol/operation.ts";
import type { CallerFor } from "../artifacts/depot.ts";
import { authenticate, isCaller } from "../auth/authenticate.ts";
import { dispatch } from "../dispatch.ts";
import type { Caller, Service } from "../service.ts";
import type { LostAnswers } from "./lost-answers.ts";
import type { Presence } from "./presence.ts";

export interface ControlPlaneOptions {
  readonly service: Service;
  readonly depotFor: (callerFor: CallerFor) => Depot;
  readonly caller: Caller;
  readonly isLoopback: boolean;
  readonly presence: Presence;
  readonly lostAnswers: LostAnswers;
  /** Fires if the client goes away before its answer has left. */
  readonly gone: AbortSignal;
}

/** For one request: nothing is kept between two of them. */
export function controlPlaneFor({
  service,
  depotFor,
  caller,
  isLoopback,
  presence,
  lostAnswers,
  gone,
}: ControlPlaneOptions): ControlPlane {
  const callerFor = (agentToken: string | null): Caller | Answer => {
    if (agentToken === null) return caller;
    const found = authenticate(service, { authorization: `Bearer ${agentToken}` }, isLoopback);
    if (!isCaller(found)) return found;
    return found.tenant === caller.tenant ? found : otherTenant;
  };
  const { ttlMsMax, waitTimeoutMsMax } = boundsOf(service, caller);
  let asks = 0;

  return {
    depot: depotFor(callerFor),
    tenant: caller.tenant,
    defaults: {
      ttlMs: Math.min(limits.ttlMsDefault, ttlMsMax),
      waitTimeoutMs: Math.min(limits.waitTimeoutMsDefault, waitTimeoutMsMax),
    },
    async agentId(agentToken) {
      const found = callerFor(agentToken);
      return isCaller(found) ? found.actor.agentId : null;
    },
    workerId: async () => null,
    async ask(operation, input, { agentId, agentToken }, signal) {
      const found = callerFor(agentToken);
      if (!isCaller(found)) return answeredBy(found);
      // The first came with the request; a batch of calls counts by its calls (S4).
      const tooMany = asks++ > 0 ? service.limiter.take(caller.meter) : null;
      if (tooMany !== null) return answeredBy(tooMany);
      const agent = agentCalling(operation, input, found, agentId);
      const leave = agent === null ? null : presence.enter(found, agent);
      try {
        const answered = answeredBy(await asked(service, operation, input, found, AbortSignal.any([signal, gone])));
        const { verdict, request_id: request } = answered.body;
        const waits = verdict === "WAIT" || verdict === "STANDBY";
        if (agent !== null && waits && typeof request === "string") presence.attend(found, agent, request);
        return answered;
      } finally {
        leave?.();
      }
    },
    keyFor(tool, input) {
      const { key, wasLost } = lostAnswers.keyFor(caller, tool, input);
      if (gone.aborted) wasLost();
      else gone.addEventListener("abort", wasLost, { once: true });
      return key;
    },
    notices: () => [],
  };

  /** Whose sign of life this is. Looking at somebody, or acting on somebody from above, is not theirs. */
  function agentCalling(operation: Operation, input: Input, { actor }: Caller, named: string | null): string | null {
    if (takesUp.has(operation.name)) return null;
    if (actor.agentId !== null) return actor.agentId;
    if (operation.roles !== acting) return null;
    const { request_id: requestId, lease_id: leaseId } = input;
    const isRequest = operation.name === "get_request" || operation.name === "cancel_request";
    return named ?? presence.agentOf(caller, isRequest ? { requestId } : { leaseId });
  }
}

/** Of these the caller is not yet, or no longer, the instance that could beat. */
const takesUp: ReadonlySet<string> = new Set(["register_agent", "resume_agent", "restart_agent", "verify_all"]);

function asked(
  service: Service,
  operation: Operation,
  input: Input,
  caller: Caller,
  signal: AbortSignal,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const drop = dispatch(service, operation, input, caller, (answer) => {
      resolve(answer);
      // Encoded later, as a part of another answer.
      return 0;
    });
    const leave = (): void => {
      drop?.();
      reject(new Error("the client went away"));
    };
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  });
}

function answeredBy(answer: Answer): Reply {
  return { status: answer.status, body: bodyObject(answer) as Body };
}

function boundsOf({ engine }: Service, { tenant }: Caller) {
  return (
    engine.peek(tenantsIn).get(tenant)?.record.settings ?? {
      ttlMsMax: limits.ttlMsDefault,
      waitTimeoutMsMax: limits.waitTimeoutMsDefault,
    }
  );
}

const otherTenant = errorAnswer(
  "forbidden",
  "The token is not one of this tenant; send the agent_token that register_agent gave.",
);
