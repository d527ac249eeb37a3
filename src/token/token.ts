/**
 * The form of a token (G3): `lht1.` and base64url of
 *
 *   length of the claims · claims · (length · caveat)* · sum
 *
 * The sum is an HMAC-SHA256 over the claims with the cell's key for the tenant; each caveat replaces it by an HMAC over
 * the caveat with the sum so far as the key. So a holder can add caveats, and cannot remove any.
 */
import { decodeBase64url, encodeBase64url } from "./base64url.ts";
import { decodeCaveat, type FoundCaveat } from "./caveats.ts";
import { ByteReader, ByteWriter } from "./encoding.ts";
import { digestBytes } from "./sha256.ts";

export interface TokenClaims {
  /** Which key made the sum. */
  readonly keyId: string;
  readonly tenant: string;
  /** The audience: the cell that minted it, and the only one that takes it. */
  readonly cell: string;
  readonly resource: string;
  readonly lease: string;
  readonly generation: number;
  readonly fence: number;
  readonly expiresAt: number;
  /** What the lease is for. null in a token of version 0.1, which is good for 300 s at most: then the lease alone says. */
  readonly predicate: string | null;
}

export const tokenPrefix = "lht1.";

export const tokenLimits = {
  /** G3: no token lives longer, whatever its lease does. */
  lifeMsMax: 300_000,
  caveatsMax: 32,
  bytesMax: 6_144,
  /** What bytesMax comes to as text. */
  textLengthMax: tokenPrefix.length + (6_144 / 3) * 4,
} as const;

/** Where a caveat stands in the bytes, so that the chain is computed over what was sent and not over a copy. */
export interface PlacedCaveat {
  readonly caveat: FoundCaveat;
  readonly from: number;
  readonly end: number;
}

export interface Decoded {
  readonly bytes: Uint8Array;
  readonly claims: TokenClaims;
  readonly claimsFrom: number;
  readonly claimsEnd: number;
  readonly caveats: readonly PlacedCaveat[];
  readonly sum: Uint8Array;
}

export function encodeClaims(claims: TokenClaims): Uint8Array {
  const { keyId, tenant, cell, resource, lease, generation, fence, expiresAt, predicate } = claims;
  const writer = new ByteWriter()
    .text(keyId)
    .text(tenant)
    .text(cell)
    .text(resource)
    .text(lease)
    .number(generation)
    .number(fence)
    .number(expiresAt);
  return (predicate === null ? writer : writer.text(predicate)).bytes();
}

export function tokenText(bytes: Uint8Array): string {
  return tokenPrefix + encodeBase64url(bytes);
}

/** null: not a token, whatever it is. Nothing of it is believed until its sum was checked. */
export function decodeToken(text: string): Decoded | null {
  if (text.length > tokenLimits.textLengthMax || !text.startsWith(tokenPrefix)) return null;
  const bytes = decodeBase64url(text, tokenPrefix.length);
  if (bytes === null) return null;
  const end = bytes.length - digestBytes;
  if (end < 0) return null;
  const reader = new ByteReader(bytes, 0, end);
  const length = reader.short();
  const claimsFrom = reader.at;
  if (length === null || !reader.skip(length)) return null;
  const claimsEnd = reader.at;
  const claims = decodeClaims(new ByteReader(bytes, claimsFrom, claimsEnd));
  const caveats = claims === null ? null : decodeCaveats(reader);
  if (claims === null || caveats === null) return null;
  return { bytes, claims, claimsFrom, claimsEnd, caveats, sum: bytes.subarray(end) };
}

function decodeClaims(reader: ByteReader): TokenClaims | null {
  const keyId = reader.text();
  const tenant = reader.text();
  const cell = reader.text();
  const resource = reader.text();
  const lease = reader.text();
  const generation = reader.number();
  const fence = reader.number();
  const expiresAt = reader.number();
  const predicate = reader.done ? null : reader.text();
  if (keyId === null || tenant === null || cell === null || resource === null || lease === null) return null;
  if (generation === null || fence === null || expiresAt === null || predicate === "" || !reader.done) return null;
  return { keyId, tenant, cell, resource, lease, generation, fence, expiresAt, predicate };
}

function decodeCaveats(reader: ByteReader): readonly PlacedCaveat[] | null {
  const caveats: PlacedCaveat[] = [];
  while (!reader.done) {
    const length = reader.short();
    const from = reader.at;
    if (length === null || !reader.skip(length)) return null;
    const caveat = decodeCaveat(reader.bytes, from, reader.at);
    if (caveat === null || caveats.length === tokenLimits.caveatsMax) return null;
    caveats.push({ caveat, from, end: reader.at });
  }
  return caveats;
}
