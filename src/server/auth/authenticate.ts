/** From what a caller shows to who it is (S5): a key, an agent's token, or nothing at all. */
import { keysIn } from "../../kernel/views.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { Caller, Service } from "../service.ts";
import { ownOperator } from "./owner.ts";

/** With which an operator chooses the tenant that a request is about. */
export const tenantHeader = "leasehold-tenant";

/** The headers of a request, as far as they say who sends it. */
export interface Credentials {
  readonly authorization?: string | undefined;
  /** Where a browser shows its session. */
  readonly cookie?: string | undefined;
  /** The tenant that is asked for, if one is. */
  readonly [tenantHeader]?: string | readonly string[] | undefined;
  /** What proxies add: the request may come from anywhere. */
  readonly forwarded?: string | undefined;
  readonly via?: string | undefined;
  readonly "x-forwarded-for"?: string | readonly string[] | undefined;
  readonly "x-forwarded-host"?: string | readonly string[] | undefined;
  readonly "x-forwarded-proto"?: string | readonly string[] | undefined;
  readonly "x-real-ip"?: string | readonly string[] | undefined;
}

/**
 * A credential that is shown is always checked. Without one, a server that listens on loopback and has no keys takes
 * the caller for its operator; but not one that a proxy has let in, nor where only its owner is (M6).
 */
export function authenticate(service: Service, shown: Credentials, isLoopback: boolean): Caller | Answer {
  const { engine, keys } = service;
  // Without its records the server knows no key, and would take anybody for anything.
  if (!engine.isServing) return unavailable;
  const { authorization } = shown;
  // Node joins a repeated header into one text.
  const tenant = shown[tenantHeader] as string | undefined;
  const isInBrowser = authorization === undefined && shown.cookie !== undefined;
  const session = isInBrowser ? service.sessions.find(shown.cookie) : null;
  if (session === false) return sessionOver;
  if (session !== null) return inTenant(session, tenant);
  if (authorization === undefined) {
    if (!isLoopback || engine.peek(keysIn).size > 0) return missing;
    if (service.owner !== null) return service.owner.missing;
    if (shown.forwarded ?? shown.via ?? shown["x-forwarded-for"] ?? shown["x-forwarded-host"]) return throughProxy;
    if (shown["x-forwarded-proto"] ?? shown["x-real-ip"]) return throughProxy;
    return tenant === undefined ? ownOperator : { ...ownOperator, tenant };
  }
  const scheme = authorization.slice(0, 7);
  if (scheme !== "Bearer " && scheme.toLowerCase() !== "bearer ") return invalid;
  const secret = authorization.slice(7).trim();
  const caller = service.agentTokens.find(secret) ?? keys.find(secret) ?? service.owner?.find(secret) ?? null;
  if (caller === null) return invalid;
  return tenant === undefined ? caller : inTenant(caller, tenant);
}

function inTenant(caller: Caller, tenant: string | undefined): Caller | Answer {
  if (tenant === undefined || tenant === caller.tenant) return caller;
  // Only an operator has more than one tenant.
  return caller.actor.role === "operator" ? { ...caller, tenant } : otherTenant;
}

export function isCaller(found: Caller | Answer): found is Caller {
  return "actor" in found;
}

const unavailable = errorAnswer(
  "database_unavailable",
  "The database is not available; try again, with the same request_id.",
  { retry_after_ms: 1_000 },
);
const missing = errorAnswer(
  "unauthorized",
  "This needs a credential: send `Authorization: Bearer <key or agent token>`.",
);
const throughProxy = errorAnswer(
  "unauthorized",
  "This request came through a proxy, so that it may be anybody's: create a key (`leasehold keys create`), and send it.",
);
/** The same for one that never was, has expired, was deleted, or was drawn from such a key. */
const invalid = errorAnswer(
  "unauthorized",
  "The credential is not valid: it is unknown here, has expired, or its key was deleted or replaced. Send " +
    "`Authorization: Bearer <key or agent token>` with one that is valid.",
);
const sessionOver = errorAnswer(
  "unauthorized",
  "The session is over, or its key was deleted or replaced; sign in again.",
);
const otherTenant = errorAnswer(
  "forbidden",
  "The credential is for another tenant; leave the Leasehold-Tenant header out.",
);
