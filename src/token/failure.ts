/** Why a token is not taken. A closed list; each code is one of the wire's (G9). */
import type { CaveatType } from "./caveats.ts";

export type TokenFailureCode = "token_invalid" | "stale_token" | "caveat_failed" | "lease_expired";

export interface TokenFailure {
  readonly code: TokenFailureCode;
  /** A sentence for people. It never repeats the token. */
  readonly detail: string;
  /** Of caveat_failed: which. */
  readonly caveat?: CaveatType | "predicate" | "unknown";
}

export function failed(code: TokenFailureCode, detail: string): TokenFailure {
  return { code, detail };
}

export function caveatFailed(caveat: CaveatType | "unknown", detail: string): TokenFailure {
  return { code: "caveat_failed", detail, caveat };
}

export const malformed: TokenFailure = failed("token_invalid", "This is not a token, or only part of one.");
