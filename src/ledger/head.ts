/** Heads: signed statements of a tenant's last receipt. One that is saved elsewhere proves that nothing was cut off. */
import type { SignedHead } from "../store/store.ts";
import type { LedgerKey } from "./keys.ts";
import { asciiJson, jsonIn, quoted, readTime, timeOf } from "./ledger-json.ts";

export type Head = Pick<SignedHead, "tenant" | "sequence" | "hash" | "at">;

/** What is signed. */
export function headText({ tenant, sequence, hash, at, keyId }: Omit<SignedHead, "signature">): string {
  return `{"tenant_id":${quoted(tenant)},"sequence":${sequence},"hash":"${hash}","at":${asciiJson(timeOf(at))},"key_id":"${keyId}"}`;
}

export function signHead(head: Head, key: LedgerKey): SignedHead {
  const named = { ...head, keyId: key.keyId };
  return { ...named, signature: key.sign(headText(named)) };
}

/** For export: the signed text, with the signature and the key as its last members. */
export function headJson(head: SignedHead, publicKey: string): string {
  return `${headText(head).slice(0, -1)},"signature":"${head.signature}","public_key":"${publicKey}"}`;
}

export interface ReadHead {
  readonly head: SignedHead;
  readonly publicKey: string | null;
}

/** Reads a saved head; null if it is not one. The tenant may be absent. */
export function readHead(text: string, tenant: string): ReadHead | null {
  const read = jsonIn(text);
  if (typeof read !== "object" || read === null) return null;
  const { tenant_id, sequence, hash, at, key_id, signature, public_key } = read as Readonly<Record<string, unknown>>;
  if (!Number.isSafeInteger(sequence) || typeof hash !== "string") return null;
  if (typeof key_id !== "string" || typeof signature !== "string") return null;
  return {
    head: {
      tenant: typeof tenant_id === "string" ? tenant_id : tenant,
      sequence: Number(sequence),
      hash,
      at: readTime(at),
      keyId: key_id,
      signature,
    },
    publicKey: typeof public_key === "string" ? public_key : null,
  };
}
