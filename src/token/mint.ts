/** New tokens, minted with the cell's key (G3). */
import { ByteWriter } from "./encoding.ts";
import { type HmacKey, hmacSha256 } from "./sha256.ts";
import { encodeClaims, type TokenClaims, tokenLimits, tokenText } from "./token.ts";

export interface SigningKey {
  readonly keyId: string;
  readonly key: HmacKey;
}

/** By key id, tenant and cell; null for a key that is unknown or retired. */
export interface TokenKeys {
  find(keyId: string, tenant: string, cell: string, now: number): HmacKey | null;
}

export interface SigningKeys extends TokenKeys {
  current(tenant: string, cell: string): SigningKey;
}

/** Ends with the lease, and in any case within 300 s (G3). */
export function mint(keys: SigningKeys, granted: Omit<TokenClaims, "keyId">, now: number): string {
  const { keyId, key } = keys.current(granted.tenant, granted.cell);
  const expiresAt = Math.min(granted.expiresAt, now + tokenLimits.lifeMsMax);
  const claims = encodeClaims({ ...granted, keyId, expiresAt });
  const bytes = new ByteWriter().short(claims.length).raw(claims).raw(hmacSha256(key, claims)).bytes();
  // The names in a lease are bounded by the control plane; one that is not is a fault of the caller's.
  if (bytes.length > tokenLimits.bytesMax) throw new Error("The names of the lease do not fit into a token.");
  return tokenText(bytes);
}
