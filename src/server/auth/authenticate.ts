/** From what a caller shows to who it is (S5): a key, an agent's token, or nothing at all. */

import type { IncomingMessage } from "node:http";
import { defaultTenant } from "../../engine/recovery.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { Caller, Service } from "../service.ts";

export { hashSecret } from "./keys.ts";

/** With which an operator chooses the tenant that a request is about. */
export const tenantHeader = "leasehold-tenant";

export interface Credentials {
  readonly authorization: string | undefined;
  /** The tenant that is asked for, if one is. */
  readonly tenant: string | undefined;
}

export function shownIn({ headers }: IncomingMessage): Credentials {
  return { authorization: headers.authorization, tenant: headers[tenantHeader] as string | undefined };
}

/**
 * A credential that is shown is always checked. Without one, a server that listens on loopback and has no keys takes
 * the caller for its operator.
 */
export function authenticate(service: Service, shown: Credentials, isLoopback: boolean): Caller | Answer {
  const { engine, keys } = service;
  // Without its records the server knows no key, and would take anybody for anything.
  if (!engine.isServing) return unavailable;
  const { authorization } = shown;
  if (authorization === undefined) {
    if (!isLoopback || !keys.isEmpty) return missing;
    return shown.tenant === undefined ? ownOperator : { ...ownOperator, tenant: shown.tenant };
  }
  const secret = bearerOf(authorization);
  const caller = secret === null ? null : (service.agentTokens.find(secret) ?? keys.find(secret));
  if (caller === null) return invalid;
  return shown.tenant === undefined || shown.tenant === caller.tenant ? caller : inTenant(caller, shown.tenant);
}

export function isCaller(found: Caller | Answer): found is Caller {
  return "actor" in found;
}

/** Only an operator has more than one tenant. */
function inTenant(caller: Caller, tenant: string): Caller | Answer {
  return caller.actor.role === "operator" ? { ...caller, tenant } : otherTenant;
}

function bearerOf(authorization: string): string | null {
  const scheme = authorization.slice(0, 7);
  if (scheme !== "Bearer " && scheme.toLowerCase() !== "bearer ") return null;
  return authorization.slice(7).trim();
}

const ownOperator: Caller = {
  tenant: defaultTenant,
  actor: { role: "operator", agentId: null, epoch: null },
  meter: null,
};

const unavailable = errorAnswer(
  "database_unavailable",
  "The database is not available; try again, with the same request_id.",
  { retry_after_ms: 1_000 },
);
const missing = errorAnswer(
  "unauthorized",
  "This needs a credential: send `Authorization: Bearer <key or agent token>`.",
);
const invalid = errorAnswer(
  "unauthorized",
  "The credential is not known here; send `Authorization: Bearer <key or agent token>` with one that is valid.",
);
const otherTenant = errorAnswer(
  "forbidden",
  "The credential is for another tenant; leave the Leasehold-Tenant header out.",
);
