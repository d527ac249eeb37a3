/** Capability tokens, as far as they need no file and no secret store: the same code in a cell, a client, a browser. */
export type { Caveat, CaveatType, FoundCaveat } from "./caveats.ts";
export { caveatLimits, isPlainPath, isWithin } from "./caveats.ts";
export type { TokenFailure, TokenFailureCode } from "./failure.ts";
export { mint, type SigningKey, type SigningKeys, type TokenKeys } from "./mint.ts";
export { type Inspected, inspect, narrow } from "./narrow.ts";
export type { HmacKey } from "./sha256.ts";
export { type Decoded, decodeToken, type TokenClaims, tokenLimits, tokenPrefix } from "./token.ts";
export { type Budget, checkSum, type Presented, type Verified, verify, verifyDecoded } from "./verify.ts";
