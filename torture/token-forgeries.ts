/**
 * Tokens that must be refused, made from good ones in every way that is open to the owner of a token. Used by the tests
 * and, in large numbers, by `npm run torture:tokens`.
 */
import { encodeBase64url } from "../src/token/base64url.ts";
import { type Caveat, encodeCaveat } from "../src/token/caveats.ts";
import { ByteWriter } from "../src/token/encoding.ts";
import { mint, type SigningKeys } from "../src/token/mint.ts";
import { narrow } from "../src/token/narrow.ts";
import { digestBytes, hmacKey, hmacSha256 } from "../src/token/sha256.ts";
import { decodeToken, encodeClaims, type TokenClaims, tokenPrefix, tokenText } from "../src/token/token.ts";
import type { Presented } from "../src/token/verify.ts";

/** Whole numbers from 0 to below the bound; the same seed gives the same ones (mulberry32). */
export type Chance = (below: number) => number;

export function chanceFrom(seed: number): Chance {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

export const forgeryKinds = [
  "flipped",
  "truncated",
  "extended",
  "respelled",
  "caveat dropped",
  "reordered",
  "widened",
  "caveat from another",
  "claims rewritten",
  "own key",
  "cross-tenant",
  "cross-cell",
  "cross-resource",
  "stale",
  "expired",
  "unknown caveat",
  "noise",
] as const;
export type ForgeryKind = (typeof forgeryKinds)[number];

export interface Attempt {
  readonly token: string;
  readonly presented: Presented;
}

/** A good token with three caveats, and an operation that it allows. */
export function goodAttempt(keys: SigningKeys, presented: Presented, chance: Chance): Attempt {
  const claims = claimsFor(presented);
  const caveats: Caveat[] = [
    { type: "expiry", expiresAt: presented.now + 1 + chance(50_000) },
    { type: "operations", operations: ["read"] },
    { type: "path", path: `/a/${chance(1_000)}` },
  ];
  const path = caveats[2]?.type === "path" ? caveats[2].path : "/";
  const token = must(narrow(mint(keys, claims, presented.now), caveats));
  return { token, presented: { ...presented, operation: "read", path } };
}

/** One forgery of this kind; null if the random change gave a valid token. */
export function forge(kind: ForgeryKind, keys: SigningKeys, good: Attempt, chance: Chance): Attempt | null {
  const { token, presented } = good;
  const text = forgeText(kind, keys, good, chance);
  if (kind === "stale") return { token, presented: renewed(presented, chance) };
  if (kind === "expired") return { token, presented: { ...presented, now: presented.now + 300_000 + chance(1_000) } };
  return text === token ? null : { token: text, presented };
}

function forgeText(kind: ForgeryKind, keys: SigningKeys, { token, presented }: Attempt, chance: Chance): string {
  const decoded = decodeToken(token);
  if (decoded === null) throw new Error("The good token cannot be decoded.");
  const { bytes, claims, caveats, sum } = decoded;
  const bodies: readonly Uint8Array[] = caveats.map(({ from, end }) => bytes.slice(from, end));
  const claimBytes = bytes.slice(decoded.claimsFrom, decoded.claimsEnd);
  switch (kind) {
    case "flipped": {
      const flipped = bytes.slice();
      const at = chance(bytes.length);
      flipped[at] = (flipped[at] ?? 0) ^ (1 << chance(8));
      return tokenText(flipped);
    }
    case "truncated":
      return chance(2) === 0
        ? token.slice(0, chance(token.length))
        : tokenText(bytes.slice(0, Math.max(0, bytes.length - 1 - chance(bytes.length))));
    case "extended":
      return chance(2) === 0
        ? token + "A".repeat(1 + chance(8))
        : tokenText(joined(bytes, randomBytes(1 + chance(40), chance)));
    case "respelled": {
      const at = tokenPrefix.length + chance(token.length - tokenPrefix.length);
      const foreign = ["=", " ", "+", "/", "\n", ".", "%41", "\u0000", "é"];
      return token.slice(0, at) + (foreign[chance(foreign.length)] ?? "=") + token.slice(at);
    }
    case "caveat dropped":
      return assemble(claimBytes, bodies.toSpliced(chance(bodies.length), 1), sum);
    case "reordered": {
      const at = chance(bodies.length - 1);
      return assemble(claimBytes, bodies.toSpliced(at, 2, bodies[at + 1] ?? sum, bodies[at] ?? sum), sum);
    }
    case "widened":
      return assemble(claimBytes, bodies.toSpliced(chance(bodies.length), 1, body(wider(presented, chance))), sum);
    case "caveat from another":
      // The owner of a narrow token cannot compute the signature of a wider one; that of a narrower one is of no use.
      return assemble(claimBytes, bodies.slice(0, -1), hmacSha256(hmacKey(sum), bodies.at(-1) ?? sum));
    case "claims rewritten":
      return assemble(encodeClaims(rewritten(claims, chance)), chance(2) === 0 ? bodies : [], sum);
    case "own key": {
      const made = hmacKey(randomBytes(32, chance));
      return assemble(claimBytes, [], hmacSha256(made, claimBytes));
    }
    case "cross-tenant":
      return mint(keys, { ...claims, tenant: `other-${chance(1_000)}` }, presented.now);
    case "cross-cell":
      return mint(keys, { ...claims, cell: `other-${chance(1_000)}` }, presented.now);
    case "cross-resource":
      return mint(keys, { ...claims, resource: `${claims.resource}/${chance(1_000)}` }, presented.now);
    case "stale":
    case "expired":
      return token;
    case "unknown caveat": {
      const unknown = joined(Uint8Array.of(7 + chance(248)), randomBytes(chance(20), chance));
      return assemble(claimBytes, [...bodies, unknown], hmacSha256(hmacKey(sum), unknown));
    }
    case "noise":
      return tokenPrefix + encodeBase64url(randomBytes(chance(400), chance));
  }
}

function claimsFor({ tenant, cell, resource, lease, generation, fence, now }: Presented): Omit<TokenClaims, "keyId"> {
  return {
    tenant,
    cell,
    resource,
    lease: lease ?? "l-1",
    generation: generation ?? 1,
    fence: fence ?? 1,
    expiresAt: now + 60_000,
    predicate: "CONSUMES",
  };
}

function renewed(presented: Presented, chance: Chance): Presented {
  return {
    ...presented,
    generation: (presented.generation ?? 1) + 1 + chance(3),
    fence: (presented.fence ?? 1) + 1 + chance(1_000),
  };
}

function rewritten(claims: TokenClaims, chance: Chance): TokenClaims {
  const changes: readonly Partial<TokenClaims>[] = [
    { expiresAt: claims.expiresAt + 1 + chance(1_000_000) },
    { fence: claims.fence + 1 + chance(1_000) },
    { generation: claims.generation + 1 },
    { tenant: `${claims.tenant}x` },
    { cell: `${claims.cell}x` },
    { resource: claims.resource.slice(0, -1) },
    { lease: `${claims.lease}0` },
    { keyId: "000000000000" },
    { predicate: "MUTATES" },
    { predicate: null },
  ];
  return { ...claims, ...changes[chance(changes.length)] };
}

function wider(presented: Presented, chance: Chance): Caveat {
  const choices: readonly Caveat[] = [
    { type: "expiry", expiresAt: presented.now + 10_000_000 + chance(1_000) },
    { type: "operations", operations: ["read", "write"] },
    { type: "path", path: "/" },
    { type: "bytes", bytesMax: Number.MAX_SAFE_INTEGER },
  ];
  return choices[chance(choices.length)] ?? { type: "path", path: "/" };
}

function assemble(claims: Uint8Array, bodies: readonly Uint8Array[], sum: Uint8Array): string {
  const writer = new ByteWriter().short(claims.length).raw(claims);
  for (const one of bodies) writer.short(one.length).raw(one);
  return tokenText(writer.raw(sum.slice(0, digestBytes)).bytes());
}

function body(caveat: Caveat): Uint8Array {
  const encoded = encodeCaveat(caveat);
  if ("problem" in encoded) throw new Error(encoded.problem);
  return encoded;
}

function must(result: ReturnType<typeof narrow>): string {
  if (typeof result !== "string") throw new Error(result.detail);
  return result;
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  return Uint8Array.from([...a, ...b]);
}

function randomBytes(length: number, chance: Chance): Uint8Array {
  return Uint8Array.from({ length }, () => chance(256));
}
