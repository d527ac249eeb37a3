/**
 * What a server can be told: by a flag, by the environment, by a file; in this order, the first that says something
 * counts. One table has every setting with its names, its bounds and its words, so that help and checks cannot differ.
 */
import { readFileSync } from "node:fs";
import { choice, hosts, integer, origins, type Reader, text } from "./config-values.ts";

export interface Config {
  readonly host: string;
  readonly port: number;
  readonly data: string;
  readonly store: "sqlite" | "memory";
  readonly logLevel: "fatal" | "error" | "warn" | "info" | "debug" | "trace" | "silent";
  readonly allowedHosts: readonly string[];
  readonly allowedOrigins: readonly string[];
  readonly rateLimit: number;
  readonly rateBurst: number;
  readonly connectionsMax: number;
  readonly requestTimeoutMs: number;
  readonly signOfLifeMs: number;
  readonly shutdownTimeoutMs: number;
  readonly eventsKeepMs: number;
  readonly endedKeepMs: number;
  readonly endedKeepMax: number;
  readonly endedTasksKeepMs: number;
  readonly endedTasksKeepMax: number;
  readonly pruneEveryMs: number;
  readonly artifactBytesMax: number;
  readonly artifactsTotalBytesMax: number;
}

export interface Setting<T> {
  readonly flag: string;
  /** Stands for the value in the help. */
  readonly sign: string;
  readonly usual: T;
  readonly read: Reader<T>;
  readonly words: string;
}

const mebibyte = 2 ** 20;
const secondMs = 1_000;
const hourMs = 3_600 * secondMs;
const dayMs = 24 * hourMs;
const yearMs = 366 * dayMs;
/** The longest that a timer can be set for. */
const timerMsMax = 2 ** 31 - 1;

export const settings: { readonly [K in keyof Config]: Setting<Config[K]> } = {
  host: {
    flag: "host",
    sign: "ADDRESS",
    usual: "127.0.0.1",
    read: text,
    words: "listen here; anywhere but on loopback only with keys",
  },
  port: {
    flag: "port",
    sign: "N",
    usual: 7117,
    read: integer(0, 65_535),
    words: "listen on this port; 0 takes a free one",
  },
  data: { flag: "data", sign: "DIR", usual: "./data", read: text, words: "keep the data here; it is made if need be" },
  store: {
    flag: "store",
    sign: "KIND",
    usual: "sqlite",
    read: choice(["sqlite", "memory"]),
    words: "sqlite, or memory to forget all at the end",
  },
  logLevel: {
    flag: "log-level",
    sign: "LEVEL",
    usual: "info",
    read: choice(["fatal", "error", "warn", "info", "debug", "trace", "silent"]),
    words: "from fatal over info to trace, or silent; logs go to stderr",
  },
  allowedHosts: {
    flag: "allowed-host",
    sign: "NAME",
    usual: [],
    read: hosts,
    words: "a name it goes by beside its address; * for any",
  },
  allowedOrigins: {
    flag: "allowed-origin",
    sign: "URL",
    usual: [],
    read: origins,
    words: "web pages of this origin may call it",
  },
  rateLimit: {
    flag: "rate-limit",
    sign: "N",
    usual: 5_000,
    read: integer(0, 10_000_000),
    words: "requests a second for each key and agent; 0 for no limit",
  },
  rateBurst: {
    flag: "rate-burst",
    sign: "N",
    usual: 10_000,
    read: integer(1, 100_000_000),
    words: "how many of them may come at once",
  },
  connectionsMax: {
    flag: "connections-max",
    sign: "N",
    usual: 20_000,
    read: integer(1, 1_000_000),
    words: "connections at once; more are turned away",
  },
  requestTimeoutMs: {
    flag: "request-timeout-ms",
    sign: "MS",
    usual: 30 * secondMs,
    read: integer(100, timerMsMax),
    words: "a request must have arrived by then",
  },
  signOfLifeMs: {
    flag: "sign-of-life-ms",
    sign: "MS",
    usual: 15 * secondMs,
    read: integer(100, timerMsMax),
    words: "how often an event stream says something, if only that",
  },
  shutdownTimeoutMs: {
    flag: "shutdown-timeout-ms",
    sign: "MS",
    usual: 10 * secondMs,
    read: integer(0, timerMsMax),
    words: "what is under way may take so long at the end",
  },
  eventsKeepMs: {
    flag: "events-keep-ms",
    sign: "MS",
    usual: 7 * dayMs,
    read: integer(0, 100 * yearMs),
    words: "events can be read again for so long",
  },
  endedKeepMs: {
    flag: "ended-keep-ms",
    sign: "MS",
    usual: dayMs,
    read: integer(0, 100 * yearMs),
    words: "ended leases stay answerable for so long",
  },
  endedKeepMax: {
    flag: "ended-keep-max",
    sign: "N",
    usual: 10_000_000,
    read: integer(0, 1_000_000_000),
    words: "and at most so many of them",
  },
  endedTasksKeepMs: {
    flag: "ended-tasks-keep-ms",
    sign: "MS",
    usual: 30 * dayMs,
    read: integer(0, 100 * yearMs),
    words: "tasks that are over stay answerable for so long",
  },
  endedTasksKeepMax: {
    flag: "ended-tasks-keep-max",
    sign: "N",
    usual: 10_000_000,
    read: integer(0, 1_000_000_000),
    words: "and at most so many of them; receipts are never forgotten",
  },
  pruneEveryMs: {
    flag: "prune-every-ms",
    sign: "MS",
    usual: hourMs,
    read: integer(100, timerMsMax),
    words: "how often the rest is forgotten",
  },
  artifactBytesMax: {
    flag: "artifact-bytes-max",
    sign: "N",
    usual: 64 * mebibyte,
    read: integer(1, 2 ** 40),
    words: "bytes of one artifact",
  },
  artifactsTotalBytesMax: {
    flag: "artifacts-total-bytes-max",
    sign: "N",
    usual: 10_240 * mebibyte,
    read: integer(1, 2 ** 50),
    words: "bytes of all artifacts together",
  },
};

export const names = Object.keys(settings) as readonly (keyof Config)[];

/** How the environment and the file call it: `allowedHosts` is LEASEHOLD_ALLOWED_HOSTS, and `allowed_hosts`. */
export function environmentName(name: keyof Config): string {
  return `LEASEHOLD_${fileName(name).toUpperCase()}`;
}

export function fileName(name: keyof Config): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** What the user got wrong, as one sentence. */
export class ConfigProblem extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ConfigProblem";
  }
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
  const { flag, usual, read } = settings[name];
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
  return usual;
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
