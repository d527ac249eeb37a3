/** What can be learnt of a server from here, and of a folder's disk. */
import { closeSync, fdatasyncSync, openSync, readFileSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import { wallOffsetMsMax } from "../engine/clock.ts";
import type { Client } from "../sdk/client.ts";
import { version } from "../server/config/version.ts";
import { isLoopback } from "../trust/loopback.ts";
import { showDuration } from "./durations.ts";
import { startAdvice } from "./failure.ts";
import { isServerError, messageOf } from "./problem.ts";

export interface Check {
  readonly name: string;
  readonly status: "ok" | "warning" | "problem";
  /** What was found, and what to do about it. */
  readonly detail: string;
}

type Finding = Omit<Check, "name">;
const ok = (detail: string): Finding => ({ status: "ok", detail });
const warning = (detail: string): Finding => ({ status: "warning", detail });
const problem = (detail: string): Finding => ({ status: "problem", detail });

interface Reach {
  readonly found: Finding;
  readonly roundTripMs: number;
  /** By its own clock, in whole seconds; null where it does not say. */
  readonly serverMs: number | null;
  readonly askedMs: number;
}

const askings = 5;
/** Leases are counted in remaining times, so that only large differences make anything hard to read. */
const clockMsMax = 2_000;

export async function checkReach(client: Client): Promise<Reach> {
  let best: Reach | null = null;
  for (let asked = 0; asked < askings; asked++) {
    const askedMs = Date.now();
    const began = performance.now();
    let response: Response;
    try {
      response = await client.fetch("/healthz", {}, { signal: AbortSignal.timeout(5_000) });
      await response.arrayBuffer();
    } catch (error) {
      return { found: problem(silenceWords(client.url, error)), roundTripMs: 0, serverMs: null, askedMs };
    }
    const roundTripMs = performance.now() - began;
    if (best !== null && roundTripMs >= best.roundTripMs) continue;
    const date = Date.parse(response.headers.get("date") ?? "");
    const found =
      response.status === 200
        ? ok(`${client.url} answers in ${showDuration(roundTripMs)}`)
        : problem(`${client.url} answers ${response.status}; is it a Leasehold server?`);
    best = { found, roundTripMs, serverMs: Number.isNaN(date) ? null : date, askedMs };
  }
  if (best === null) throw new TypeError("it was asked at least once");
  return best;
}

/** Nobody listens, or somebody does and says nothing: a server that is frozen, or another program. */
function silenceWords(url: string, error: unknown): string {
  const isSilent = (error as { readonly name?: unknown }).name === "TimeoutError" || codeOf(error) === "aborted";
  if (isSilent) return `${url} can be reached, but does not answer within 5 s; the server is overloaded or frozen`;
  return isServerError(error)
    ? `no server answers at ${url}; ${startAdvice(url)}, or name another with --url`
    : String(error);
}

function codeOf(error: unknown): string | null {
  return isServerError(error) ? error.code : null;
}

async function checkReady(client: Client): Promise<Finding> {
  try {
    await client.call("readyz", {}, { retries: 0 });
    return ok("it serves commands");
  } catch (error) {
    const why = isServerError(error) ? error.detail : String(error);
    return problem(`it cannot serve now: ${why} See its log.`);
  }
}

async function checkVersion(client: Client): Promise<Finding> {
  const document = (await client.call("openapi", {})) as { readonly info?: { readonly version?: unknown } };
  const theirs = document.info?.version;
  if (theirs === version) return ok(`${version}, here and there`);
  const other = typeof theirs === "string" ? theirs : "of an unknown version";
  return warning(`the server is ${other}, this is ${version}; use the same for both`);
}

/** The header tells whole seconds, and so the difference is known to about one. */
function checkClock(_client: Client, { serverMs, askedMs, roundTripMs }: Reach): Finding {
  if (serverMs === null) return warning("the server does not say what time it has");
  const low = askedMs - (serverMs + 1_000);
  const high = askedMs + roundTripMs - serverMs;
  const off = low > 0 ? low : high < 0 ? high : 0;
  if (Math.abs(off) <= clockMsMax) return ok("the same time as the server's, to a second");
  const where = `${showDuration(Math.abs(off))} ${off > 0 ? "ahead of" : "behind"} the server's`;
  return warning(`this clock is ${where}; leases do not depend on it, but set it right`);
}

async function checkKey(client: Client): Promise<Finding> {
  const codeOf = (name: "list_leases" | "list_keys") =>
    client.call(name, { limit: 1 }).then(
      () => null,
      (error: unknown) => {
        if (isServerError(error)) return error.code;
        throw error;
      },
    );
  const refused = await codeOf("list_leases");
  if (refused === "unauthorized") return problem("the server wants a key that is good; give it in LEASEHOLD_KEY");
  if ((await codeOf("list_keys")) === null) return ok("good, an operator's (or none is needed on loopback)");
  return ok(
    refused === null ? "good, but not an operator's" : "good for registering agents or for work, not for looking",
  );
}

/** Reads a figure of the server's own; null where this key may not. */
async function metricsOf(client: Client): Promise<((metric: string) => number) | null> {
  const response = await client.fetch("/metrics");
  const text = await response.text();
  if (response.status !== 200) return null;
  return (metric) => Number(new RegExp(`^${metric} (\\S+)$`, "m").exec(text)?.[1] ?? "NaN");
}

/** L7: a wall clock that jumped does not move the time that leases go by, but what is shown as a time is off. */
async function checkTime(client: Client): Promise<Finding> {
  const figure = await metricsOf(client);
  if (figure === null) return ok("not shown to this key");
  const offMs = figure("leasehold_clock_offset_seconds") * 1_000;
  if (Number.isNaN(offMs) || Math.abs(offMs) <= wallOffsetMsMax) return ok("leases go by the time of its wall clock");
  const where = `${showDuration(Math.abs(offMs))} ${offMs > 0 ? "ahead of" : "behind"} the time that leases go by`;
  return warning(`the server's wall clock is ${where}: it was set, or the machine slept; leases end in their time`);
}

/** How long a commit takes where the data is, from its own figures. */
async function checkServerDisk(client: Client): Promise<Finding> {
  const figure = await metricsOf(client);
  if (figure === null) return ok("not shown to this key");
  const count = figure("leasehold_commit_seconds_count");
  const meanMs = (figure("leasehold_commit_seconds_sum") / count) * 1_000;
  if (!(count > 0)) return ok("none yet");
  const detail = `${count} so far, ${meanMs.toFixed(2)} ms each in the mean`;
  return meanMs > 50 ? warning(`${detail}: its disk is slow`) : ok(detail);
}

/** M6: on loopback without keys, every user of the machine is the operator. */
async function checkPeople({ url }: Client): Promise<Finding> {
  if (!isLoopback(new URL(url).hostname)) return ok("it is reached over a network, with keys");
  const isOpen = await fetch(`${url}/v1/leases?limit=1`).then(
    ({ status }) => status === 200,
    () => false,
  );
  if (!isOpen) return ok("it needs a credential, on this machine too");
  const others = otherPeople(readPasswords(), process.getuid?.() ?? -1);
  if (others.length === 0) return ok("nobody else has an account on this machine");
  const named =
    others.length > 3 ? `${others.slice(0, 3).join(", ")} and ${others.length - 3} others` : others.join(", ");
  return warning(`${named} can use this server as its operator; start it with --owner-only, or create keys`);
}

/** Accounts that a person can log in with, by a file of the form of /etc/passwd. */
export function otherPeople(passwords: string, own: number): readonly string[] {
  return passwords.split("\n").flatMap((line) => {
    const [name = "", , id = "", , , , shell = ""] = line.split(":");
    const uid = Number(id);
    const isPerson = /^\d+$/.test(id) && uid >= firstPerson && uid < nobody && uid !== own;
    return isPerson && shell !== "" && !/\/(nologin|false|sync)$/.test(shell) ? [name] : [];
  });
}

/** As Linux numbers them. */
const firstPerson = 1_000;
const nobody = 65_534;

function readPasswords(): string {
  try {
    return readFileSync("/etc/passwd", "utf8");
  } catch {
    return "";
  }
}

/** By the name that it is shown under. */
export const serverChecks: Readonly<Record<string, (client: Client, reach: Reach) => Finding | Promise<Finding>>> = {
  ready: checkReady,
  version: checkVersion,
  clock: checkClock,
  time: checkTime,
  key: checkKey,
  people: checkPeople,
  commits: checkServerDisk,
};

const block = Buffer.alloc(4_096, 0x2e);
const writes = 64;
/** No disk with power-loss protection answers sooner, and memory does. */
const believableMs = 0.015;
const slowMs = 20;
const freeBytesMin = 1_073_741_824;
/** As Linux numbers them: what does not outlive the machine, and what other machines have a say in. */
const kinds: ReadonlyMap<number, readonly [name: string, why: string]> = new Map([
  [0x01021994, ["tmpfs", "it is memory, and gone with the next start"]],
  [0x858458f6, ["ramfs", "it is memory, and gone with the next start"]],
  [0x6969, ["nfs", "locks and syncs of a network disk are not to be relied on"]],
  [0x65735546, ["fuse", "what a sync means there is up to its maker"]],
]);

export function checkDisk(folder: string): Finding {
  const file = join(folder, `.leasehold-doctor-${process.pid}`);
  let times: readonly number[];
  let kind: readonly [string, string] | undefined;
  let freeBytes: number;
  try {
    const about = statfsSync(folder);
    kind = kinds.get(about.type);
    freeBytes = about.bavail * about.bsize;
    times = measure(file);
  } catch (error) {
    return problem(`${folder} cannot be written to: ${messageOf(error)}`);
  } finally {
    rmSync(file, { force: true });
  }
  const sorted = times.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const worst = sorted.at(-1) ?? 0;
  const figures = `4 KiB are durable in ${middle.toFixed(2)} ms (worst ${worst.toFixed(2)} ms)`;
  if (kind !== undefined) return warning(`${folder} is on ${kind[0]}: ${kind[1]}; ${figures}`);
  if (freeBytes < freeBytesMin) {
    return warning(`${folder} has only ${Math.floor(freeBytes / 1_048_576)} MiB left; ${figures}`);
  }
  if (middle < believableMs) {
    return warning(`${folder}: ${figures}, too quick to be true: is it memory, or a cache that may be lost?`);
  }
  return middle > slowMs ? warning(`${folder}: ${figures}; that is slow`) : ok(`${folder}: ${figures}`);
}

function measure(file: string): readonly number[] {
  const handle = openSync(file, "wx", 0o600);
  try {
    return Array.from({ length: writes }, () => {
      const began = performance.now();
      writeSync(handle, block);
      fdatasyncSync(handle);
      return performance.now() - began;
    });
  } finally {
    closeSync(handle);
  }
}
