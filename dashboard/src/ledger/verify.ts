/**
 * R6, in the browser: the text of a receipt is put together from what the API shows, hashed, and compared; a chain is
 * followed from receipt to receipt, and its head's signature is checked. Nothing of the server's own checks is used.
 */
import type { LedgerHead, Receipt } from "../../../src/sdk/wire.ts";
import { sha256 } from "../../../src/token/sha256.ts";
import { receiptMembers } from "./receipt-members.gen.ts";

export const genesisHash = "0".repeat(64);

/** Whether its hash is that of its content. */
export async function verifyReceipt(receipt: Receipt): Promise<boolean> {
  for (const text of textsOf(receipt)) if ((await hashOf(text)) === receipt.hash) return true;
  return false;
}

/**
 * The API shows a mark for what is absent ("NA", "TBD", {}, 0, false, null), and the text leaves it out. Whether an empty
 * object is one or a mark cannot be seen, so both are tried.
 */
function* textsOf(receipt: Receipt): Generator<string> {
  const members = Object.entries(receiptMembers).map(
    ([name, isOptional]) => [name, receipt[name as keyof Receipt], isOptional] as const,
  );
  const unclear = members.filter(([, value, isOptional]) => isOptional && isEmpty(value)).map(([name]) => name);
  for (let kept = 0; kept < 2 ** unclear.length; kept++) {
    const keeps = (name: string): boolean => (kept & (1 << unclear.indexOf(name))) !== 0;
    const written = members.filter(
      ([name, value, isOptional]) => !isOptional || (unclear.includes(name) ? keeps(name) : !isMark(value)),
    );
    yield asciiJson(Object.fromEntries(written.map(([name, value]) => [name, value])));
  }
}

function isEmpty(value: unknown): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

function isMark(value: unknown): boolean {
  return value === null || value === undefined || value === false || value === 0 || value === "NA" || value === "TBD";
}

function asciiJson(value: unknown): string {
  return JSON.stringify(value).replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Web Crypto exists on https and on loopback only; elsewhere our own SHA-256 does it. */
async function hashOf(text: string): Promise<string> {
  const bytes = new TextEncoder().encode(text);
  const hash = isSecureContext ? new Uint8Array(await crypto.subtle.digest("SHA-256", bytes)) : sha256(bytes);
  return [...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** null: this browser cannot check it here. */
export async function verifyHead(head: LedgerHead): Promise<boolean | null> {
  if (!isSecureContext) return null;
  const { tenant_id, sequence, hash, at, key_id } = head;
  const text = asciiJson({ tenant_id, sequence, hash, at, key_id });
  try {
    const key = await crypto.subtle.importKey("spki", bytesOf(head.public_key), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, bytesOf(head.signature), new TextEncoder().encode(text));
  } catch {
    return null;
  }
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (unit) => unit.charCodeAt(0));
}
