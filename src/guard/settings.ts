/** What a repository's `.leasehold.json` and the environment say about its guards. */

import { join } from "node:path";
import { defaultPort, defaultUrl } from "../names/defaults.ts";
import { type Project, projectFile, readProject } from "../names/project-file.ts";
import { splitAddresses } from "../trust/addresses.ts";
import { type ClientTls, clientTlsFiles, readClientTls } from "../trust/client-tls.ts";
import { keyOfEnvironment, readKeyFile } from "../trust/key-file.ts";
import { insecureWords, isLoopback, mayCarrySecret, TrustProblem } from "../trust/loopback.ts";
import { stateFolder } from "../trust/owner-token.ts";
import { type Profile, profileNamed } from "../trust/profiles.ts";
import { appendPrivate, readPrivate } from "./private-files.ts";

export interface Settings {
  /** The first of the servers. */
  readonly url: string;
  /** All of one cluster, in the order in which they are tried. */
  readonly urls: readonly string[];
  readonly key: string | null;
  readonly tenant: string | null;
  /** null: what the platform trusts. */
  readonly tls: ClientTls | null;
  /** Where files of the user are looked for. */
  readonly environment: Environment;
  /** What happens to writes while the server does not answer. */
  readonly unreachable: "closed" | "open";
  /** A lease outlives an agent's thinking by this; each call of a hook renews it. The server caps it. */
  readonly ttlMs: number;
  /** A session that gives no sign for this long is not renewed. */
  readonly quietMs: number;
  /** How long a hook stands in line for a lease before it denies. */
  readonly waitMs: number;
  /** When a session's leases end: with each turn of the agent, or with the session. */
  readonly hold: "turn" | "session";
  /** What a session releases after DIE (W5): what it has not edited, all, or nothing. */
  readonly onDie: "unedited" | "release" | "keep";
  /** What others read as its purpose: only the tool's name, or the first line of the prompt, which may hold secrets. */
  readonly purpose: "tool" | "prompt";
}

/** The file says something that cannot be meant; the message says what to write. */
export class SettingsProblem extends Error {
  override name = "SettingsProblem";
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Together the longest time for which a session that was cancelled blocks others. */
const ttlMsDefault = 60_000;
const quietMsDefault = 30_000;
/** A tool gives up on its hook at some time; the installed ones give it 30 s. */
const waitMsMax = 20_000;

export function readSettings(root: string | null, environment: Environment): Settings {
  const { LEASEHOLD_TENANT, LEASEHOLD_INSECURE } = environment;
  const file = (root === null ? null : readProject(root)) ?? {};
  const choose = <T extends string>(field: string, values: readonly [T, ...(readonly T[])]): T => {
    const value = file[field] ?? values[0];
    const found = values.find((one) => one === value);
    if (found === undefined) throw problem(field, `one of ${values.map((one) => `"${one}"`).join(", ")}`);
    return found;
  };
  const count = (field: string, usual: number, min: number, max: number): number => {
    const value = file[field] ?? usual;
    if (typeof value === "number" && Number.isSafeInteger(value) && value >= min && value <= max) return value;
    throw problem(field, `a whole number of milliseconds from ${min} to ${max}`);
  };
  const { url, urls, isOwn, profile } = serverFor(file, environment);
  if (!urls.every(isAddress))
    throw new SettingsProblem(`LEASEHOLD_URL is not an address; give one such as ${defaultUrl}`);
  const key = isOwn || urls.every(isHere) ? readKey(environment, profile) : null;
  const isInsecure = LEASEHOLD_INSECURE === "1" || LEASEHOLD_INSECURE === "true";
  const readable = urls.find((one) => !mayCarrySecret(one));
  if (key !== null && !isInsecure && readable !== undefined) throw new SettingsProblem(insecureWords(readable));
  return {
    url,
    urls,
    key,
    tls: urls.some((one) => one.startsWith("https:")) ? readTls(environment, profile) : null,
    tenant: (profile?.tenant ?? LEASEHOLD_TENANT) || null,
    environment,
    unreachable: choose("unreachable", ["closed", "open"]),
    ttlMs: count("ttl_ms", ttlMsDefault, 1_000, 86_400_000),
    quietMs: count("quiet_ms", quietMsDefault, 0, 86_400_000),
    waitMs: count("wait_ms", 0, 0, waitMsMax),
    hold: choose("hold", ["turn", "session"]),
    onDie: choose("on_die", ["unedited", "release", "keep"]),
    purpose: choose("purpose", ["tool", "prompt"]),
  };
}

export interface NamedServer {
  /** The first of them. */
  readonly url: string;
  readonly urls: readonly string[];
  /** Named by the user. A repository is not to be trusted with a key: one that names another server does not get ours. */
  readonly isOwn: boolean;
  readonly profile: Profile | null;
}

/**
 * Which server is used in a repository, for its guards and for the command line: LEASEHOLD_URL, else the profile that
 * LEASEHOLD_PROFILE names, else what `.leasehold.json` says, else the one on this machine.
 */
export function serverFor(project: Project, environment: Environment): NamedServer {
  const { LEASEHOLD_URL, LEASEHOLD_PORT, LEASEHOLD_PROFILE } = environment;
  const own = (text: string, profile: Profile | null): NamedServer => ({ ...named(text), isOwn: true, profile });
  if (LEASEHOLD_URL) return own(LEASEHOLD_URL, null);
  if (LEASEHOLD_PROFILE) {
    const profile = readTrusted(() => profileNamed(LEASEHOLD_PROFILE, environment));
    return own(profile.url, profile);
  }
  const { url: text = null } = project;
  if (text === null) return own(`http://127.0.0.1:${LEASEHOLD_PORT || defaultPort}`, null);
  const found = typeof text === "string" ? named(text) : null;
  if (found === null || !found.urls.every(isAddress)) {
    throw problem("url", `an address such as "http://127.0.0.1:${defaultPort}", or several with commas between`);
  }
  const unknown = found.urls.find((one) => !isHere(one) && !isAllowed(one, environment));
  if (unknown !== undefined) {
    throw new SettingsProblem(
      `${projectFile} names a server that is not on this machine (${originOf(unknown)}), and nothing is sent there before its user allows it, once: run \`leasehold guard allow ${originOf(unknown)}\` in a terminal of your own, or set LEASEHOLD_URL`,
    );
  }
  return { ...found, isOwn: false, profile: null };
}

function named(text: string): Pick<NamedServer, "url" | "urls"> {
  const urls = splitAddresses(text);
  const [url = ""] = urls;
  return { url, urls: urls.length === 0 ? [url] : urls };
}

function isHere(url: string): boolean {
  return isLoopback(new URL(url).hostname);
}

/** One line for each server that this user has allowed repositories to name. */
function allowedFile(environment: Environment): string {
  return join(stateFolder(environment), "allowed-servers");
}

function isAllowed(url: string, environment: Environment): boolean {
  return (readPrivate(allowedFile(environment)) ?? "").split("\n").includes(originOf(url));
}

/** L5: what is checked in may name any server, and its answers reach a model; so a person allows it first. */
export function allowServer(url: string, environment: Environment): string {
  if (!isAddress(url))
    throw new SettingsProblem(`"${url}" is not an address; give one such as https://leases.example.com`);
  if (!isAllowed(url, environment)) appendPrivate(allowedFile(environment), originOf(url));
  return originOf(url);
}

function originOf(url: string): string {
  return new URL(url).origin;
}

function readKey(environment: Environment, profile: Profile | null): string | null {
  const file = profile?.key_file;
  return readTrusted(() => keyOfEnvironment(environment) ?? (file === undefined ? null : readKeyFile(file)));
}

/** A fault in a file of the user is one of the settings. */
function readTrusted<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof TrustProblem ? new SettingsProblem(error.message) : error;
  }
}

function isAddress(text: string): boolean {
  const url = URL.parse(text);
  return url !== null && (url.protocol === "http:" || url.protocol === "https:") && url.username === "";
}

function readTls(environment: Environment, profile: Profile | null): ClientTls | null {
  const { tls_ca: ca = null, tls_cert: cert = null, tls_key: key = null } = profile ?? {};
  return readTrusted(() => readClientTls(clientTlsFiles(environment, { ca, cert, key })));
}

function problem(field: string, wanted: string): SettingsProblem {
  return new SettingsProblem(`"${field}" in ${projectFile} is not what it can be; write ${wanted}`);
}
