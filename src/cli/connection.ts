/** Which server, and with which key. A wrong address or key is reported before anything is sent. */
import { type NamedServer, SettingsProblem, serverFor } from "../guard/settings.ts";
import { defaultUrl } from "../names/defaults.ts";
import { NamingProblem, type Project, readProject } from "../names/project-file.ts";
import { findRepository } from "../names/repository.ts";
import type { Client } from "../sdk/client.ts";
import { joinAddresses } from "../trust/addresses.ts";
import { type ClientTlsFiles, clientTlsEnvironment, clientTlsFiles, readClientTls } from "../trust/client-tls.ts";
import { insecureWords, isLoopback, mayCarrySecret } from "../trust/loopback.ts";
import type { Call, Environment } from "./command.ts";
import { readDurationMs } from "./durations.ts";
import { readKeyFile } from "./key-file.ts";
import { UsageProblem } from "./problem.ts";

export interface Address {
  /** The first of the servers. */
  readonly url: string;
  /** All of one cluster, in the order in which they are tried. */
  readonly urls: readonly string[];
  readonly key: string | null;
  readonly tenant: string | null;
  readonly timeoutMs: number | null;
  /** What a client trusts and shows over TLS; read when it connects. */
  readonly tls: ClientTlsFiles;
  readonly isInsecure: boolean;
  /** Why it is not known which server is meant; said when one is needed, since many commands need none. */
  readonly problem: UsageProblem | null;
}

/** A user is waiting: a missing server is reported in a second, not in ten. */
const retries = 3;

type AddressLine = Pick<Call, "text" | "texts" | "isSet">;

export function readAddress(line: AddressLine, environment: Environment, cwd: string): Address {
  const { LEASEHOLD_TENANT, LEASEHOLD_TIMEOUT, LEASEHOLD_INSECURE } = environment;
  const { server, problem } = findServer(line, environment, cwd);
  const { isOwn, profile } = server;
  const urls = server.urls.map(checkUrl);
  const [url = defaultUrl] = urls;
  const mayHaveKey = isOwn || urls.every((one) => isLoopback(new URL(one).hostname));
  const key = line.text("key") ?? readKey(line, mayHaveKey ? environment : {}, profile?.key_file ?? null);
  const tenant = line.text("tenant") ?? (profile?.tenant || LEASEHOLD_TENANT || null);
  const timeout = line.text("timeout") ?? (LEASEHOLD_TIMEOUT || null);
  const timeoutMs = timeout === null ? null : readDurationMs(timeout);
  if (timeout !== null && timeoutMs === null) {
    throw new UsageProblem(`--timeout is "${timeout.slice(0, 80)}"; give a duration such as 500ms, 30s or 5m`);
  }
  const tls = clientTlsFiles(environment, {
    ca: line.text("tls-ca") ?? profile?.tls_ca ?? null,
    cert: line.text("tls-cert") ?? profile?.tls_cert ?? null,
    key: line.text("tls-key") ?? profile?.tls_key ?? null,
  });
  const isInsecure = line.isSet("insecure") || LEASEHOLD_INSECURE === "1" || LEASEHOLD_INSECURE === "true";
  return { url, urls, key: checkKey(key), tenant: checkTenant(tenant), timeoutMs, tls, isInsecure, problem };
}

/** What a flag says goes before the environment, and that before the repository's `.leasehold.json`. */
function findServer(
  line: AddressLine,
  environment: Environment,
  cwd: string,
): { readonly server: NamedServer; readonly problem: UsageProblem | null } {
  const url = line.isSet("url") ? joinAddresses(line.texts("url")) : null;
  const profile = line.text("profile");
  if (url !== null && profile !== null) throw new UsageProblem("give --url or --profile, not both");
  const said =
    url !== null
      ? { ...environment, LEASEHOLD_URL: url }
      : profile !== null
        ? { ...environment, LEASEHOLD_URL: undefined, LEASEHOLD_PROFILE: profile }
        : environment;
  try {
    const isSaid = Boolean(said["LEASEHOLD_URL"] || said["LEASEHOLD_PROFILE"]);
    return { server: serverFor(isSaid ? {} : projectAt(cwd), said), problem: null };
  } catch (error) {
    if (!(error instanceof SettingsProblem || error instanceof NamingProblem)) throw error;
    return { server: serverFor({}, {}), problem: new UsageProblem(error.message) };
  }
}

function projectAt(cwd: string): Project {
  const root = findRepository(cwd)?.root;
  return (root === undefined ? null : readProject(root)) ?? {};
}

/** For commands that need no server. */
export const nowhere: Address = {
  url: defaultUrl,
  urls: [defaultUrl],
  key: null,
  tenant: null,
  timeoutMs: null,
  tls: { ca: null, cert: null, key: null },
  isInsecure: false,
  problem: null,
};

/** M10: before a key is sent, and not for commands that need no server. */
export function checkMaySend({ urls, key, isInsecure, problem }: Address): void {
  if (problem !== null) throw problem;
  const readable = urls.find((url) => !mayCarrySecret(url));
  if (key !== null && !isInsecure && readable !== undefined) throw new UsageProblem(insecureWords(readable));
}

function readKey(line: Pick<Call, "text">, environment: Environment, profileFile: string | null): string | null {
  const { LEASEHOLD_KEY, LEASEHOLD_KEY_FILE } = environment;
  const file = line.text("key-file") ?? (LEASEHOLD_KEY ? null : LEASEHOLD_KEY_FILE || null);
  if (file !== null) return readKeyFile(file, environment);
  return LEASEHOLD_KEY || (profileFile === null ? null : readKeyFile(profileFile, {}));
}

/** For a command that is started: how to reach the servers, where flags said so. */
export function addressEnvironment({ urls, tls, isInsecure }: Address): NodeJS.ProcessEnv {
  return {
    LEASEHOLD_URL: joinAddresses(urls),
    ...clientTlsEnvironment(tls),
    ...(isInsecure && { LEASEHOLD_INSECURE: "1" }),
  };
}

export async function connect(address: Address): Promise<Client> {
  checkMaySend(address);
  const { urls, key, tenant, timeoutMs, tls, isInsecure } = address;
  const { createClient } = await import("../sdk/client.ts");
  const certificates = readClientTls(tls);
  return createClient({
    urls,
    retries,
    // One call after the other: a stream would not pay, and trying to open one takes longer than a call.
    transport: "http",
    ...(key !== null && { key }),
    ...(certificates !== null && { tls: certificates }),
    insecure: isInsecure,
    ...(tenant !== null && { tenant }),
    ...(timeoutMs !== null && { timeoutMs }),
  });
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url === null || (url.protocol !== "http:" && url.protocol !== "https:")) {
    throw new UsageProblem(`"${text}" is not the address of a server; give one such as ${defaultUrl} with --url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw new UsageProblem("an address takes no user and password; give a key with --key or in LEASEHOLD_KEY");
  }
  return url.href.replace(/\/$/, "");
}

/** A line break in it would end the header that carries it. */
function checkKey(key: string | null): string | null {
  if (key === null || /^[\x21-\x7e]{1,4096}$/.test(key)) return key;
  throw new UsageProblem("the key has characters that keys do not have; give it as `keys create` printed it");
}

function checkTenant(tenant: string | null): string | null {
  if (tenant === null || /^[a-z0-9_-]{1,63}$/.test(tenant)) return tenant;
  throw new UsageProblem(`"${tenant.slice(0, 80)}" is not a tenant id; use lower-case letters, digits, _ and -`);
}
