/** What is known about a server before anything is sent: its address, and what the environment says of it. */
import { defaultUrl } from "../names/defaults.ts";
import { type ClientTls, clientTlsFiles, readClientTls } from "../trust/client-tls.ts";
import { isLoopback } from "../trust/loopback.ts";

/** Node's, where there is one. */
const environment: Readonly<Record<string, string | undefined>> =
  (globalThis as { process?: { env?: Record<string, string> } }).process?.env ?? {};

export function tlsOfEnvironment(): ClientTls | null {
  return readClientTls(clientTlsFiles(environment));
}

export function isInsecureEnvironment(): boolean {
  const { LEASEHOLD_INSECURE } = environment;
  return LEASEHOLD_INSECURE === "1" || LEASEHOLD_INSECURE === "true";
}

/** Files can be read, and the server is on this machine. */
export function mayHaveOwner(url: string): boolean {
  const { process } = globalThis as { process?: { getBuiltinModule?: unknown } };
  return typeof process?.getBuiltinModule === "function" && isLoopback(new URL(url).hostname);
}

export function addressOf(url: string): string {
  let parsed: URL;
  try {
    parsed = new URL(url);
  } catch {
    throw new TypeError(`The server's address is not a URL: ${url}; write it like ${defaultUrl}.`);
  }
  if (parsed.protocol !== "http:" && parsed.protocol !== "https:")
    throw new TypeError(`The server's address is not one of HTTP: ${url}; write it like ${defaultUrl}.`);
  return parsed.href.replace(/\/+$/, "");
}
