/**
 * Whether a token opens this operation (G5). The sum is checked first; then the claims are held against what is alive,
 * and the caveats against the operation. What the caller does not tell cannot satisfy a caveat.
 */
import { encodeBase64url } from "./base64url.ts";
import { type Caveat, isPlainPath, isWithin } from "./caveats.ts";
import { caveatFailed, failed, malformed, type TokenFailure } from "./failure.ts";
import type { TokenKeys } from "./mint.ts";
import { equalBytes, type HmacKey, hmacSha256, hmacStep, sha256 } from "./sha256.ts";
import { type Decoded, decodeToken, type TokenClaims } from "./token.ts";

/** The operation, and the lease as it is alive at the moment. */
export interface Presented {
  readonly now: number;
  readonly tenant: string;
  readonly cell: string;
  readonly resource: string;
  readonly lease?: string;
  readonly generation?: number;
  readonly fence?: number;
  /** When the live lease ends: a token that ends earlier can be replaced, and is stale rather than expired. */
  readonly leaseExpiresAt?: number;
  readonly operation?: string;
  /** Within the resource, plain: "/", "/a/b". */
  readonly path?: string;
  /** May be costly to find out, and is asked for only by a caveat. */
  readonly program?: () => string | null;
  /** The labels of the hardware that the operation runs on. */
  readonly hardware?: readonly string[];
  /** What the operation moves, with all that was moved under the token before. */
  readonly bytes?: number;
}

export interface Verified {
  readonly claims: TokenClaims;
  readonly caveats: readonly Caveat[];
  /** The earliest end of the caveats; infinite if none names one. */
  readonly caveatExpiresAt: number;
  readonly budgets: readonly Budget[];
}

/**
 * A limit on bytes, by a name that stays the same however the token is narrowed further: else a holder that has used a
 * budget up would add a caveat and start again.
 */
export interface Budget {
  readonly id: string;
  readonly bytesMax: number;
}

export function verify(token: string, keys: TokenKeys, presented: Presented): Verified | TokenFailure {
  const decoded = decodeToken(token);
  return decoded === null ? malformed : verifyDecoded(decoded, keys, presented);
}

/** The budgets that a token's chain of sums has; null if the sum is not the one that was sent. */
export type CheckSum = (decoded: Decoded, key: HmacKey) => readonly Budget[] | null;

/**
 * For callers that have decoded the token already, to find the lease that it names; `sum` for those that remember which
 * tokens were good with which key.
 */
export function verifyDecoded(
  decoded: Decoded,
  keys: TokenKeys,
  presented: Presented,
  sum: CheckSum = checkSum,
): Verified | TokenFailure {
  const { claims } = decoded;
  // These two choose the key, so that they are compared before there is anything to check a sum with.
  if (claims.cell !== presented.cell) return failed("token_invalid", "The token is for another cell.");
  if (claims.tenant !== presented.tenant) return failed("token_invalid", "The token is of another tenant.");
  const key = keys.find(claims.keyId, claims.tenant, claims.cell, presented.now);
  const budgets = key === null ? null : sum(decoded, key);
  if (budgets === null) return failed("token_invalid", "The token was not made with a key of this cell.");
  const failure = checkClaims(claims, presented);
  if (failure !== null) return failure;
  return checkCaveats(decoded, presented, budgets);
}

export function checkSum(decoded: Decoded, key: HmacKey): readonly Budget[] | null {
  const { bytes, caveats } = decoded;
  let sum = hmacSha256(key, bytes.subarray(decoded.claimsFrom, decoded.claimsEnd));
  const budgets: Budget[] = [];
  for (const { caveat, from, end } of caveats) {
    sum = hmacStep(sum, bytes.subarray(from, end));
    // Hashed, because the sum itself is a token's secret.
    if (caveat.type === "bytes") budgets.push({ id: encodeBase64url(sha256(sum)), bytesMax: caveat.bytesMax });
  }
  return equalBytes(sum, decoded.sum) ? budgets : null;
}

function checkClaims(claims: TokenClaims, presented: Presented): TokenFailure | null {
  const { now, resource, lease, generation, fence, leaseExpiresAt } = presented;
  if (claims.resource !== resource) return failed("token_invalid", "The token is for another resource.");
  if (lease !== undefined && claims.lease !== lease) return failed("token_invalid", "The token is of another lease.");
  // Stale before expired: a lease that was renewed lives on, and its holder has to fetch the present token (G8).
  const isStale =
    (generation !== undefined && claims.generation < generation) || (fence !== undefined && claims.fence < fence);
  if (isStale) return failed("stale_token", "The lease was issued again; use its present token.");
  const isAhead =
    (generation !== undefined && claims.generation > generation) || (fence !== undefined && claims.fence > fence);
  if (isAhead) return failed("token_invalid", "The token is of a generation that is not known here.");
  if (now < claims.expiresAt) return null;
  return leaseExpiresAt !== undefined && now < leaseExpiresAt
    ? failed("stale_token", "The token has ended before its lease; fetch a fresh one.")
    : failed("lease_expired", "The lease has ended.");
}

function checkCaveats(decoded: Decoded, presented: Presented, budgets: readonly Budget[]): Verified | TokenFailure {
  const caveats: Caveat[] = [];
  let caveatExpiresAt = Number.POSITIVE_INFINITY;
  for (const { caveat } of decoded.caveats) {
    if (caveat.type === "unknown") return caveatFailed("unknown", "The token has a caveat that is not known here.");
    const problem = problemWith(caveat, presented);
    if (problem !== null) return caveatFailed(caveat.type, problem);
    if (caveat.type === "expiry") caveatExpiresAt = Math.min(caveatExpiresAt, caveat.expiresAt);
    caveats.push(caveat);
  }
  return { claims: decoded.claims, caveats, caveatExpiresAt, budgets };
}

function problemWith(caveat: Caveat, { now, operation, path, program, hardware, bytes }: Presented): string | null {
  switch (caveat.type) {
    case "expiry":
      return now < caveat.expiresAt ? null : "The token was narrowed to an earlier end, which has passed.";
    case "path":
      return path !== undefined && isPlainPath(path) && isWithin(path, caveat.path)
        ? null
        : "The token does not reach this path.";
    case "operations":
      return operation !== undefined && caveat.operations.includes(operation)
        ? null
        : `The token is for ${caveat.operations.join(", ")} only.`;
    case "program":
      return program?.() === caveat.program
        ? null
        : "The token is for another program, or the program cannot be determined.";
    case "hardware":
      return hardware?.includes(caveat.hardware) === true ? null : "The token is for other hardware.";
    case "bytes":
      return bytes !== undefined && bytes <= caveat.bytesMax ? null : "The token's bytes are used up.";
  }
}
