/**
 * Certificates for tests, made when they are needed: Node can read X.509 but not write it, and not every machine has
 * `openssl`. Only as much of DER as a certificate needs.
 */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";

export interface TestCertificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateRequest {
  readonly name: string;
  /** DNS names and addresses. */
  readonly alt?: readonly string[];
  /** Left out: it signs itself. */
  readonly by?: TestCertificate & { readonly name: string };
  readonly isAuthority?: boolean;
  readonly from?: Date;
  readonly until?: Date;
}

const dayMs = 86_400_000;

export function makeCertificate(request: CertificateRequest): TestCertificate & { readonly name: string } {
  const { name, alt = [], by, isAuthority = false } = request;
  const { from = new Date(Date.now() - dayMs), until = new Date(Date.now() + 60 * dayMs) } = request;
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const signer: KeyObject = by === undefined ? privateKey : createPrivateKey(by.key);
  const body = sequence(
    explicit(0, integer(Buffer.from([2]))),
    integer(Buffer.concat([Buffer.from([1]), randomBytes(15)])),
    ecdsaWithSha256,
    nameOf(by?.name ?? name),
    sequence(time(from), time(until)),
    nameOf(name),
    publicKey.export({ type: "spki", format: "der" }),
    explicit(3, sequence(...extensions(alt, isAuthority))),
  );
  const signature = sign("sha256", body, signer);
  const der = sequence(body, ecdsaWithSha256, bits(signature));
  const lines = der.toString("base64").match(/.{1,64}/g) ?? [];
  return {
    name,
    cert: `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
  };
}

/** An authority, and what it signs: for a server on loopback, and for clients. */
export function testAuthority(name = "Test CA") {
  const authority = makeCertificate({ name, isAuthority: true });
  return {
    ...authority,
    issue: (request: Omit<CertificateRequest, "by">) => makeCertificate({ ...request, by: authority }),
    server: (more: Partial<CertificateRequest> = {}) =>
      makeCertificate({ name: "localhost", alt: ["localhost", "127.0.0.1", "::1"], ...more, by: authority }),
  };
}

function extensions(alt: readonly string[], isAuthority: boolean): readonly Buffer[] {
  const found: Buffer[] = [];
  // Basic constraints; an end certificate has the default, which is written as nothing.
  found.push(extension([2, 5, 29, 19], true, sequence(...(isAuthority ? [tagged(0x01, Buffer.from([0xff]))] : []))));
  if (alt.length > 0) {
    const names = alt.map((one) =>
      isIP(one) === 0 ? tagged(0x82, Buffer.from(one)) : tagged(0x87, addressBytes(one)),
    );
    found.push(extension([2, 5, 29, 17], false, sequence(...names)));
  }
  return found;
}

function extension(id: readonly number[], isCritical: boolean, value: Buffer): Buffer {
  return sequence(oid(id), ...(isCritical ? [tagged(0x01, Buffer.from([0xff]))] : []), tagged(0x04, value));
}

function addressBytes(address: string): Buffer {
  if (isIP(address) === 4) return Buffer.from(address.split(".").map(Number));
  const [head = "", tail = ""] = address.split("::");
  const groups = (text: string): readonly number[] =>
    text
      .split(":")
      .filter(Boolean)
      .map((group) => Number.parseInt(group, 16));
  const [first, last] = [groups(head), groups(tail)];
  const all = [...first, ...Array.from({ length: 8 - first.length - last.length }, () => 0), ...last];
  return Buffer.from(all.flatMap((group) => [group >> 8, group & 0xff]));
}

function tagged(tag: number, content: Buffer): Buffer {
  const size = content.length;
  const long = size < 0x100 ? [0x81, size] : [0x82, size >> 8, size & 0xff];
  return Buffer.concat([Buffer.from([tag, ...(size < 0x80 ? [size] : long)]), content]);
}

function sequence(...parts: readonly Buffer[]): Buffer {
  return tagged(0x30, Buffer.concat(parts));
}

function explicit(number: number, content: Buffer): Buffer {
  return tagged(0xa0 + number, content);
}

function integer(bytes: Buffer): Buffer {
  return tagged(0x02, bytes);
}

function bits(bytes: Buffer): Buffer {
  return tagged(0x03, Buffer.concat([Buffer.from([0]), bytes]));
}

function oid([first = 0, second = 0, ...rest]: readonly number[]): Buffer {
  const parts = rest.flatMap((part) => {
    const digits = [part & 0x7f];
    for (let left = part >> 7; left > 0; left >>= 7) digits.unshift((left & 0x7f) | 0x80);
    return digits;
  });
  return tagged(0x06, Buffer.from([first * 40 + second, ...parts]));
}

/** UTCTime: two digits of the year, for dates before 2050. */
function time(date: Date): Buffer {
  const text = date.toISOString().replaceAll(/[-:T]|\.\d+/g, "");
  return tagged(0x17, Buffer.from(text.slice(2)));
}

function nameOf(name: string): Buffer {
  return sequence(tagged(0x31, sequence(oid([2, 5, 4, 3]), tagged(0x0c, Buffer.from(name)))));
}

const ecdsaWithSha256 = sequence(oid([1, 2, 840, 10_045, 4, 3, 2]));
