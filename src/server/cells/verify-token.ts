/**
 * Whether a token is good at this moment (G5), for data planes without a cell of their own. The lease is looked at as
 * it is durable (S1); the caller learns nothing about a token that was not made here, or is another tenant's.
 */
import { endedLeases } from "../../engine/history.ts";
import type { Lease, Millis, Resource } from "../../kernel/contract/records.ts";
import { findRecord, namesOverlap, parseResourceName } from "../../kernel/views.ts";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import type { QueryOf } from "../../protocol/answers/queries.ts";
import { readOnlyFailure, readOperation } from "../../protocol/resources/reading.ts";
import {
  type Decoded,
  decodeToken,
  type Presented,
  type TokenFailure,
  type Verified,
  verifyDecoded,
} from "../../token/index.ts";
import { Refused } from "../answering/faults.ts";
import { isRefusal, type QueryResult, read } from "../queries/scan.ts";
import type { Service } from "../service.ts";
import { endCodeOf } from "./orders.ts";
import { controlCell, type LeaseTokens } from "./tokens.ts";

interface Found {
  readonly lease: Lease | null;
  readonly resource: Resource | null;
}

export async function verifyToken({ engine, tokens }: Service, query: QueryOf<"verify_token">): Promise<QueryResult> {
  const decoded = decodeToken(query.token);
  if (decoded === null) throw refused({ code: "token_invalid", detail: "This is not a token, or only part of one." });
  const { claims } = decoded;
  const { found, now } = await read(engine, query, (state) => ({
    lease: findRecord(state, query.tenant, "lease", claims.lease) ?? null,
    resource: findRecord(state, query.tenant, "resource", claims.resource) ?? null,
  }));
  if (isRefusal(found)) return { reply: found, now };
  const lease = found.lease ?? (await endedLeases(engine.store, query.tenant, [claims.lease]))[0] ?? null;
  const verified = check(decoded, tokens, query, { ...found, lease }, now);
  if ("code" in verified) throw refused(verified);
  if (lease === null) throw refused({ code: "token_invalid", detail: "The lease of the token is not known here." });
  return { reply: { type: "token_verified", tenant: claims.tenant, lease, caveats: verified.caveats }, now };
}

type Failure = Omit<TokenFailure, "code"> & {
  readonly code: TokenFailure["code"] | "lease_released" | "lease_revoked" | "resource_fenced";
};

/** The sum before all else; then how the lease stands, because that is final; then generation, end and caveats. */
function check(
  decoded: Decoded,
  { keys }: LeaseTokens,
  query: QueryOf<"verify_token">,
  { lease, resource }: Found,
  now: Millis,
): Verified | Failure {
  const { claims } = decoded;
  const presented: Presented = {
    now,
    tenant: query.tenant,
    // The lease is forgotten, so only the signature can be checked.
    cell: lease === null ? claims.cell : (lease.cell ?? controlCell),
    resource: isCovered(query.resource, claims.resource) ? claims.resource : (query.resource ?? ""),
    ...(query.operation !== null && { operation: query.operation }),
    ...(query.resource !== null && { path: pathOf(query.resource) }),
    ...(resource !== null && { hardware: resource.hardware }),
  };
  const result = verifyDecoded(decoded, keys, presented);
  const isForged = "code" in result && result.code === "token_invalid";
  if (isForged || lease === null) return result;
  const ended = endOf(lease, resource);
  if (ended !== null) return ended;
  const { generation, fence, expiresAt, predicate } = lease;
  const verified = verifyDecoded(decoded, keys, { ...presented, generation, fence, leaseExpiresAt: expiresAt });
  if ("code" in verified || query.operation === null) return verified;
  return readOnlyFailure(claims.predicate, predicate, query.operation === readOperation) ?? verified;
}

/** null: it is to be honoured. One that is HELD is not (L9). */
function endOf(lease: Lease, resource: Resource | null): Failure | null {
  if (lease.state === "ACTIVE") return null;
  if (lease.state === "HELD") {
    return { code: "lease_expired", detail: "The lease is held for its agent, which must verify it first." };
  }
  if (lease.state === "BINDING") return { code: "token_invalid", detail: "The lease is not granted yet." };
  const code = endCodeOf(lease);
  // An operator who has reset the resource since has lifted the fence, but not brought the lease back.
  if (code === "resource_fenced" && resource?.fenced !== true) {
    return { code: "lease_revoked", detail: "The lease was taken away." };
  }
  return { code, detail: endDetails[code] };
}

const endDetails = {
  lease_expired: "The lease has ended.",
  lease_released: "The lease was given back.",
  lease_revoked: "The lease was taken away.",
  resource_fenced: "The resource is fenced until an operator has reset it.",
} as const;

/** A lease on a pattern is a lease on every name that it matches. */
function isCovered(asked: string | null, leased: string): boolean {
  if (asked === null || asked === leased) return true;
  const [name, by] = [parseResourceName(asked), parseResourceName(leased)];
  if ("problem" in name || "problem" in by) return false;
  return name.text === by.text || (!name.wild && namesOverlap(by, name));
}

function pathOf(resource: string): string {
  const name = parseResourceName(resource);
  const text = "problem" in name ? resource : name.text;
  return text.slice(text.indexOf(":") + 1);
}

function refused({ code, detail, caveat }: Failure): Refused {
  return new Refused(errorAnswer(code, detail, caveat === undefined ? {} : { caveat }));
}
