/** Certificates in files, and requests over TLS by which tests see what the server shows and takes. */
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { type RequestOptions, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { TLSSocket } from "node:tls";
import { type TestCertificate, testAuthority } from "../../src/trust/testing/certificates.ts";

export function tlsFolder(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-tls-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const authority = testAuthority();
  const files = {
    tlsCert: join(folder, "cert.pem"),
    tlsKey: join(folder, "key.pem"),
    tlsCa: join(folder, "ca.pem"),
  };
  /** As tools do it: whole, by renaming. */
  const put = (file: string, text: string): void => {
    writeFileSync(`${file}.new`, text);
    renameSync(`${file}.new`, file);
  };
  const install = ({ cert, key }: TestCertificate): void => {
    put(files.tlsCert, cert);
    put(files.tlsKey, key);
  };
  install(authority.server());
  put(files.tlsCa, authority.cert);
  const { tlsCert, tlsKey } = files;
  return { folder, authority, files, server: { tlsCert, tlsKey }, put, install };
}

export interface SecureAnswer {
  readonly status: number;
  readonly text: string;
  /** Of the server's certificate. */
  readonly serial: string;
  readonly protocol: string | null;
}

export function secureGet(url: string, path: string, options: RequestOptions): Promise<SecureAnswer> {
  return new Promise((resolve, reject) => {
    const asked = request(`${url}${path}`, { agent: false, ...options }, (response) => {
      const socket = response.socket as TLSSocket;
      const serial = socket.getPeerX509Certificate()?.serialNumber ?? "";
      const protocol = socket.getProtocol();
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => (text += part));
      response.on("end", () => resolve({ status: response.statusCode ?? 0, text, serial, protocol }));
      response.on("error", reject);
    });
    asked.on("error", reject);
    asked.end();
  });
}

/** A log that keeps its messages. */
export function keptLog() {
  const messages: string[] = [];
  const note = (details: object | string, message?: string): void => void messages.push(message ?? String(details));
  return { messages, info: note, warn: note, error: note };
}
