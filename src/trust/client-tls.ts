/** What a client trusts, and what it shows, over TLS: read in one place for the SDK, the CLI, guards and cells. */
import { TrustProblem } from "./loopback.ts";

/** In PEM, as tls.connect takes them. */
export interface ClientTls {
  /** Trusted in place of the platform's authorities. */
  readonly ca?: string | undefined;
  /** Shown to a server that asks for one, with its key. */
  readonly cert?: string | undefined;
  readonly key?: string | undefined;
}

export interface ClientTlsFiles {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** `given` goes before the environment. LEASEHOLD_CA is for clients alone; the others are also the server's names. */
export function clientTlsFiles(environment: Environment, given: Partial<ClientTlsFiles> = {}): ClientTlsFiles {
  const { LEASEHOLD_CA, LEASEHOLD_TLS_CA, LEASEHOLD_TLS_CERT, LEASEHOLD_TLS_KEY } = environment;
  return {
    ca: given.ca ?? (LEASEHOLD_CA || LEASEHOLD_TLS_CA || null),
    cert: given.cert ?? (LEASEHOLD_TLS_CERT || null),
    key: given.key ?? (LEASEHOLD_TLS_KEY || null),
  };
}

/** null where nothing is named: then the platform decides. Throws a TrustProblem where a file cannot be read. */
export function readClientTls({ ca, cert, key }: ClientTlsFiles): ClientTls | null {
  if (ca === null && cert === null && key === null) return null;
  if ((cert === null) !== (key === null)) {
    throw new TrustProblem("a client's certificate and its key go together; give both --tls-cert and --tls-key");
  }
  return {
    ...(ca !== null && { ca: readPem(ca, "CA") }),
    ...(cert !== null && { cert: readPem(cert, "certificate") }),
    ...(key !== null && { key: readPem(key, "key") }),
  };
}

/** The names under which a command that is started finds the same files. */
export function clientTlsEnvironment({ ca, cert, key }: ClientTlsFiles): Readonly<Record<string, string>> {
  return {
    ...(ca !== null && { LEASEHOLD_CA: ca }),
    ...(cert !== null && { LEASEHOLD_TLS_CERT: cert }),
    ...(key !== null && { LEASEHOLD_TLS_KEY: key }),
  };
}

function readPem(file: string, what: string): string {
  const { readFileSync } = process.getBuiltinModule("node:fs");
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    throw new TrustProblem(`the TLS ${what} ${file} cannot be read: ${(error as NodeJS.ErrnoException).code}`);
  }
  if (!text.includes("-----BEGIN ")) throw new TrustProblem(`the TLS ${what} ${file} is not in PEM`);
  return text;
}
