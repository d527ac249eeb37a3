/** Tokens made narrower by those who hold them: offline, without a key, wherever JavaScript runs (G4). */
import { type Caveat, encodeCaveat, type FoundCaveat } from "./caveats.ts";
import { ByteWriter } from "./encoding.ts";
import { failed, malformed, type TokenFailure } from "./failure.ts";
import { digestBytes, hmacStep } from "./sha256.ts";
import { decodeToken, type TokenClaims, tokenLimits, tokenText } from "./token.ts";

/** The same token with more caveats, in the order given. */
export function narrow(token: string, caveats: readonly Caveat[]): string | TokenFailure {
  const decoded = decodeToken(token);
  if (decoded === null) return malformed;
  const count = decoded.caveats.length + caveats.length;
  if (count > tokenLimits.caveatsMax) {
    return failed("token_invalid", `A token has at most ${tokenLimits.caveatsMax} caveats; this would be ${count}.`);
  }
  const writer = new ByteWriter().raw(decoded.bytes.subarray(0, decoded.bytes.length - digestBytes));
  let sum: Uint8Array = decoded.sum;
  for (const caveat of caveats) {
    const body = encodeCaveat(caveat);
    if ("problem" in body) return failed("token_invalid", body.problem);
    writer.short(body.length).raw(body);
    sum = hmacStep(sum, body);
  }
  const bytes = writer.raw(sum).bytes();
  if (bytes.length > tokenLimits.bytesMax) {
    return failed("token_invalid", `A token has at most ${tokenLimits.bytesMax} bytes; this would be ${bytes.length}.`);
  }
  return tokenText(bytes);
}

export interface Inspected {
  readonly claims: TokenClaims;
  readonly caveats: readonly FoundCaveat[];
  /** The earliest end that it names; after it the token is of no use. */
  readonly expiresAt: number;
}

/** What a token says of itself. Only who has the key knows whether it is true. */
export function inspect(token: string): Inspected | TokenFailure {
  const decoded = decodeToken(token);
  if (decoded === null) return malformed;
  const caveats = decoded.caveats.map(({ caveat }) => caveat);
  const ends = caveats.map((caveat) => (caveat.type === "expiry" ? caveat.expiresAt : Number.POSITIVE_INFINITY));
  return { claims: decoded.claims, caveats, expiresAt: Math.min(decoded.claims.expiresAt, ...ends) };
}
