/**
 * The server's settings: from a flag, else from the environment, else from a file, else the default. One table has every
 * setting with its names, bounds and words, so that help and checks cannot differ.
 */
import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { dirname } from "node:path";
import { defaultPort, homeFolder } from "../../names/defaults.ts";
import { isLoopback } from "../../trust/loopback.ts";

export interface Setting<T> {
  /** Stands for the value in the help; null: a switch, whose flag takes no value. */
  readonly sign: string | null;
  readonly usual: T;
  readonly read: Reader<T>;
  readonly words: string;
}

const shardsMax = 128;
const mebibyte = 2 ** 20;
const secondMs = 1_000;
const hourMs = 3_600 * secondMs;
const dayMs = 24 * hourMs;
const yearMs = 366 * dayMs;
/** The longest that a timer can be set for. */
const timerMsMax = 2 ** 31 - 1;

/** Reads a value: text from a flag or the environment, JSON from a file. */
export type Reader<T> = (value: unknown) => { readonly value: T } | { readonly problem: string };

const text: Reader<string> = (value) =>
  typeof value === "string" && value !== "" ? { value } : { problem: "is empty, or not text" };

/** `~/` is the user's home: shells expand it in flags, and nobody does in files and in the environment of services. */
const folder: Reader<string> = (value) => {
  const found = text(value);
  return "problem" in found ? found : { value: found.value.replace(/^~(?=\/)/, dirname(homeFolder())) };
};

function integer(min: number, max: number): Reader<number> {
  return (value) => {
    const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max)
      return { value: number };
    return { problem: `is ${shown(value)}; give a whole number from ${min} to ${max}` };
  };
}

/** May be left out. */
const shardsCount: Reader<number | null> = (value) => (value === null ? { value } : integer(1, shardsMax)(value));

function choice<const T extends string>(values: readonly T[]): Reader<T> {
  return (value) => {
    const found = values.find((one) => one === value);
    return found === undefined ? { problem: `is ${shown(value)}; give one of ${values.join(", ")}` } : { value: found };
  };
}

/** sqlite, memory, or an address. */
const storeKind: Reader<string> = (value) =>
  typeof value === "string" && /^(sqlite|memory|postgres(ql)?:\/\/\S+)$/.test(value)
    ? { value }
    : {
        problem: `is ${shown(value).replaceAll(/\/\/.*@/g, "//…@")}; give one of sqlite, memory, postgres://user:password@host/database`,
      };

const onOrOff: Reader<boolean> = (value) => {
  if (value === true || value === "true" || value === "1") return { value: true };
  if (value === false || value === "false" || value === "0") return { value: false };
  return { problem: `is ${shown(value)}; give true or false` };
};

/** A file that may be left out. */
const file: Reader<string | null> = (value) => (value === null ? { value } : text(value));

/** Repeated, separated by commas, or a JSON array. */
const list: Reader<readonly string[]> = (value) => {
  const parts = typeof value === "string" ? value.split(",") : value;
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === "string"))
    return { problem: "is not a list of texts" };
  return {
    value: parts
      .flatMap((part) => part.split(","))
      .map((part) => part.trim())
      .filter(Boolean),
  };
};

/** Names as they stand in a Host header, with or without a port. */
const hosts = listOf(/^(\*|\[[0-9a-f:.]+\](:\d+)?|[a-z0-9._-]+(:\d+)?)$/i, "give names such as leases.example.com");

/** As a browser sends them: scheme, host and port, and no more. */
const origins = listOf(/^https?:\/\/[^\s/,]+$/i, "give origins such as https://ops.example.com");

/** Of proxies: an address, or a network. */
const networks: Reader<readonly string[]> = (value) => {
  const found = list(value);
  if ("problem" in found) return found;
  const wrong = found.value.find((one) => !isNetwork(one));
  return wrong === undefined
    ? found
    : { problem: `has ${shown(wrong)}; give addresses such as 10.0.0.5 or 10.0.0.0/8` };
};

function isNetwork(one: string): boolean {
  const [address = "", bits, ...rest] = one.split("/");
  const bitsMax = isIP(address) === 4 ? 32 : 128;
  return (
    isIP(address) !== 0 && rest.length === 0 && (bits === undefined || (/^\d{1,3}$/.test(bits) && +bits <= bitsMax))
  );
}

function listOf(pattern: RegExp, hint: string): Reader<readonly string[]> {
  return (value) => {
    const found = list(value);
    if ("problem" in found) return found;
    const wrong = found.value.find((one) => !pattern.test(one));
    return wrong === undefined ? found : { problem: `has ${shown(wrong)}; ${hint}` };
  };
}

function shown(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 80) ?? String(value);
}

function setting<T>(sign: string | null, usual: NoInfer<T>, read: Reader<T>, words: string): Setting<T> {
  return { sign, usual, read, words };
}

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
const timerMs = integer(100, timerMsMax);
const ageMs = integer(0, 100 * yearMs);
const keptMax = integer(0, 1_000_000_000);
const keptBytes = integer(mebibyte, 2 ** 50);

const table = {
  host: setting("ADDRESS", "127.0.0.1", text, "listen here; beyond loopback only with keys, and TLS or a proxy"),
  port: setting("N", defaultPort, integer(0, 65_535), "listen on this port; 0 takes a free one"),
  data: setting("DIR", "~/.leasehold/data", folder, "the data folder; it is created if need be"),
  store: setting(
    "KIND",
    "sqlite",
    storeKind,
    "sqlite; memory, which keeps nothing; or postgres://…, which servers can share",
  ),
  masterKeyFile: setting("FILE", null, file, "with PostgreSQL: the key that the service's secrets are encrypted under"),
  advertiseUrl: setting(
    "URL",
    null,
    file,
    "with PostgreSQL: where other servers reach this one; its own address if absent",
  ),
  shards: setting(
    "N",
    null,
    shardsCount,
    "with PostgreSQL: how many shards a new database gets, for good; 16 if absent",
  ),
  noLead: setting(null, false, onOrOff, "with PostgreSQL: never lead, only pass requests on"),
  leaderLeaseMs: setting(
    "MS",
    2 * secondMs,
    integer(secondMs, 60 * secondMs),
    "with PostgreSQL: how long a leader's lease lasts",
  ),
  acceptVolatile: setting(null, false, onOrOff, "with PostgreSQL: run though it may lose what it has acknowledged"),
  logLevel: setting("LEVEL", "info", choice(logLevels), "from fatal over info to trace, or silent; logs go to stderr"),
  allowedHosts: setting("NAME", [], hosts, "a host name of this server beside its address; * for any"),
  allowedOrigins: setting("URL", [], origins, "web pages of this origin may call it"),
  tlsCert: setting("FILE", null, file, "speak TLS with this certificate, in PEM; read again when it changes"),
  tlsKey: setting("FILE", null, file, "the certificate's private key, in PEM"),
  tlsCa: setting("FILE", null, file, "certificates of clients are checked against this CA; cells must have one"),
  tlsCellNames: setting(null, false, onOrOff, "a cell's certificate must name it: its CN or a DNS name"),
  behindProxy: setting("ADDRESS", [], networks, "a proxy at this address does TLS; others are refused"),
  ownerOnly: setting(
    null,
    false,
    onOrOff,
    "on loopback, only with the token in a file of the user that runs the server",
  ),
  rateLimit: setting("N", 5_000, integer(0, 1e7), "requests a second for each key and agent; 0 for no limit"),
  rateBurst: setting("N", 10_000, integer(1, 1e8), "how many of them may come at once"),
  tenantRateLimit: setting("N", 50_000, integer(0, 1e8), "requests a second of a whole tenant; 0 for no limit"),
  authFailureLimit: setting("N", 20, integer(0, 1e6), "failed authentications a second from an address; 0: no limit"),
  agentTokenMs: setting(
    "MS",
    dayMs,
    integer(60 * secondMs, yearMs),
    "how long an agent's token is good; clients renew it",
  ),
  connectionsMax: setting("N", 20_000, integer(1, 1e6), "connections at once; more are refused"),
  unreadBytesMax: setting("N", 256 * mebibyte, keptBytes, "bytes that wait for slow readers, of all tenants together"),
  slowReaderMs: setting("MS", 20 * secondMs, timerMs, "a reader that takes nothing for this long is cut off"),
  requestTimeoutMs: setting("MS", 30 * secondMs, timerMs, "a request must have arrived by then"),
  signOfLifeMs: setting("MS", 15 * secondMs, timerMs, "the longest pause of an event stream; then it sends a comment"),
  shutdownTimeoutMs: setting(
    "MS",
    10 * secondMs,
    integer(0, timerMsMax),
    "how long requests under way may take at shutdown",
  ),
  eventsKeepMs: setting("MS", 7 * dayMs, ageMs, "how long events can be read again"),
  eventsKeepMax: setting("N", 100_000_000, keptMax, "and at most N of them"),
  eventsKeepBytes: setting("N", 512 * mebibyte, keptBytes, "and at most N bytes of them, compressed as they are"),
  endedKeepMs: setting("MS", dayMs, ageMs, "how long ended leases can be looked up"),
  endedKeepMax: setting("N", 10_000_000, keptMax, "and at most N of them"),
  endedKeepBytes: setting("N", 1_024 * mebibyte, keptBytes, "and about N bytes of them"),
  endedTasksKeepMs: setting("MS", 30 * dayMs, ageMs, "how long ended tasks can be looked up"),
  endedTasksKeepMax: setting("N", 10_000_000, keptMax, "and at most N of them; receipts are kept forever"),
  endedTasksKeepBytes: setting("N", 1_024 * mebibyte, keptBytes, "and about N bytes of them"),
  pruneEveryMs: setting("MS", 10 * secondMs, timerMs, "how often older ones are deleted, and events are compressed"),
  artifactBytesMax: setting("N", 64 * mebibyte, integer(1, 2 ** 40), "bytes of one artifact"),
  artifactsKeepMs: setting("MS", 30 * dayMs, ageMs, "how long artifacts are kept that no task or receipt points to"),
  artifactsSweepMs: setting("MS", hourMs, timerMs, "how often they are deleted, and artifacts are counted again"),
  artifactsTotalBytesMax: setting("N", 10_240 * mebibyte, integer(1, 2 ** 50), "bytes of all artifacts together"),
};

export type Config = {
  readonly [K in keyof typeof table]: (typeof table)[K] extends Setting<infer T> ? T : never;
};

export const settings: { readonly [K in keyof Config]: Setting<Config[K]> } = table;
export const names = Object.keys(settings) as readonly (keyof Config)[];

/** `rateLimit` is --rate-limit, and `allowedHosts` is --allowed-host, which can be given several times. */
export function flagName(name: keyof Config): string {
  const flag = fileName(name).replaceAll("_", "-");
  return Array.isArray(settings[name].usual) ? flag.replace(/s$/, "") : flag;
}

/** Its name in the environment and in the file: `allowedHosts` is LEASEHOLD_ALLOWED_HOSTS, and `allowed_hosts`. */
export function environmentName(name: keyof Config): string {
  return `LEASEHOLD_${fileName(name).toUpperCase()}`;
}

export function fileName(name: keyof Config): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** A wrong setting, as one sentence. */
export class ConfigProblem extends Error {
  override readonly name = "ConfigProblem";
}

export type Flags = Readonly<Record<string, string | boolean | readonly (string | boolean)[] | undefined>>;
export type Environment = Readonly<Record<string, string | undefined>>;

export function loadConfig(flags: Flags, environment: Environment): Config {
  const { config } = flags;
  const { LEASEHOLD_CONFIG } = environment;
  const path = config ?? LEASEHOLD_CONFIG;
  const file = typeof path === "string" && path !== "" ? readConfigFile(path) : {};
  return Object.fromEntries(names.map((name) => [name, find(name, flags, environment, file)])) as unknown as Config;
}

function find<K extends keyof Config>(name: K, flags: Flags, environment: Environment, file: Values): Config[K] {
  const { usual, read } = settings[name];
  const flag = flagName(name);
  const variable = environmentName(name);
  const places: readonly (readonly [place: string, value: unknown])[] = [
    [`--${flag}`, flags[flag]],
    [variable, environment[variable] === "" ? undefined : environment[variable]],
    [`"${fileName(name)}" in the config file`, file[fileName(name)] ?? undefined],
  ];
  for (const [place, value] of places) {
    if (value === undefined) continue;
    const found = read(value);
    if ("problem" in found) throw new ConfigProblem(`${place} ${found.problem}`);
    return found.value;
  }
  const found = read(usual);
  return "value" in found ? found.value : usual;
}

type Values = Readonly<Record<string, unknown>>;

function readConfigFile(path: string): Values {
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new ConfigProblem(
      `the config file ${path} cannot be read: ${error instanceof Error ? error.message : error}`,
    );
  }
  if (typeof read !== "object" || read === null || Array.isArray(read)) {
    throw new ConfigProblem(`the config file ${path} does not hold a JSON object`);
  }
  const known = names.map(fileName);
  const unknown = Object.keys(read).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new ConfigProblem(`"${unknown}" in the config file is not a setting; known are ${known.join(", ")}`);
  }
  return read as Values;
}

type Places = Pick<Config, "host" | "tlsCert" | "tlsKey" | "tlsCa" | "tlsCellNames" | "behindProxy" | "ownerOnly">;

/** Settings that only make sense together, before anything is opened. */
export function checkPlaces(config: Places): void {
  const { host, tlsCert, tlsKey, tlsCa, tlsCellNames, behindProxy, ownerOnly } = config;
  const onLoopback = isLoopback(host);
  if ((tlsCert === null) !== (tlsKey === null)) {
    const [given, missing] = tlsCert === null ? ["--tls-key", "--tls-cert"] : ["--tls-cert", "--tls-key"];
    throw new ConfigProblem(`${given} is given without ${missing}; give both`);
  }
  if (tlsCa !== null && tlsCert === null) throw new ConfigProblem("--tls-ca needs --tls-cert and --tls-key");
  if (tlsCellNames && tlsCa === null) throw new ConfigProblem("--tls-cell-names needs --tls-ca");
  if (ownerOnly && !onLoopback) {
    throw new ConfigProblem(`--owner-only is for loopback, and ${host} is not; there, every request needs a key`);
  }
  if (onLoopback || tlsCert !== null || behindProxy.length > 0) return;
  throw new ConfigProblem(
    `${host} is not loopback, and keys would be readable on the way: give --tls-cert and --tls-key, or ` +
      "--behind-proxy ADDRESS if a proxy at that address does TLS",
  );
}

/** S5: a server that others can reach lets nobody in without a key, so there must be one. */
export class NoKeys extends Error {
  constructor(why: string) {
    super(`${why}, and there are no keys yet: make one with \`keys create --role operator\``);
    this.name = "NoKeys";
  }
}
