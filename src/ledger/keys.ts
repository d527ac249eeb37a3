/** The key that signs heads (Ed25519). It never leaves the process that holds it; its public half is published. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
} from "node:crypto";

/** What is needed to verify a signature. */
export interface PublicLedgerKey {
  /** The first 16 hex digits of the SHA-256 of the public key, so that an id cannot name another key. */
  readonly keyId: string;
  /** SPKI in DER, in base64. */
  readonly publicKey: string;
}

export interface LedgerKey extends PublicLedgerKey {
  /** In base64. */
  readonly sign: (text: string) => string;
}

/** A key in memory, which ends with the process. */
export function createLedgerKey(): LedgerKey {
  return keyOf(generateKeyPairSync("ed25519").privateKey);
}

export function readLedgerKey(pem: string): LedgerKey {
  const key = createPrivateKey(pem);
  if (key.asymmetricKeyType !== "ed25519") throw new Error(`it is a key for ${key.asymmetricKeyType}, not for Ed25519`);
  return keyOf(key);
}

/** Only for the file that stores the key. */
export function newKeyPem(): string {
  return String(generateKeyPairSync("ed25519").privateKey.export({ format: "pem", type: "pkcs8" }));
}

function keyOf(privateKey: KeyObject): LedgerKey {
  const der = createPublicKey(privateKey).export({ format: "der", type: "spki" });
  return {
    keyId: keyIdOf(der),
    publicKey: der.toString("base64"),
    sign: (text) => sign(null, Buffer.from(text), privateKey).toString("base64"),
  };
}

function keyIdOf(der: Uint8Array): string {
  return createHash("sha256").update(der).digest("hex").slice(0, 16);
}

export type SignatureCheck = (text: string, signature: string) => boolean;

/** Null if the text is not a key, or not the key of that id. */
export function signatureCheck({ keyId, publicKey }: PublicLedgerKey): SignatureCheck | null {
  const der = fromBase64(publicKey);
  if (der === null || keyIdOf(der) !== keyId) return null;
  try {
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    if (key.asymmetricKeyType !== "ed25519") return null;
    return (text, signature) => {
      const bytes = fromBase64(signature);
      return bytes !== null && verify(null, Buffer.from(text), key, bytes);
    };
  } catch {
    return null;
  }
}

/** Accepts canonical base64 only: decoders accept more, and then a changed byte would not be found. */
function fromBase64(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : null;
}
