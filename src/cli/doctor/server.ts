/** What can be learnt of a server from here. */
import type { Client } from "../../sdk/client.ts";
import { version } from "../../server/config/version.ts";
import { showDuration } from "../durations.ts";
import { isServerError } from "../problem.ts";

export interface Check {
  readonly name: string;
  readonly status: "ok" | "warning" | "problem";
  /** What was found, and what to do about it. */
  readonly detail: string;
}

export interface Reach {
  readonly check: Check;
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
      const detail = `no server answers at ${client.url}; start one with \`leasehold serve\`, or name another with --url`;
      const check: Check = { name: "server", status: "problem", detail: isServerError(error) ? detail : String(error) };
      return { check, roundTripMs: 0, serverMs: null, askedMs };
    }
    const roundTripMs = performance.now() - began;
    if (best !== null && roundTripMs >= best.roundTripMs) continue;
    const date = Date.parse(response.headers.get("date") ?? "");
    const isOurs = response.status === 200;
    const check: Check = isOurs
      ? { name: "server", status: "ok", detail: `${client.url} answers in ${showDuration(roundTripMs)}` }
      : {
          name: "server",
          status: "problem",
          detail: `${client.url} answers ${response.status}; is it a Leasehold server?`,
        };
    best = { check, roundTripMs, serverMs: Number.isNaN(date) ? null : date, askedMs };
  }
  if (best === null) throw new TypeError("it was asked at least once");
  return best;
}

export async function checkReady(client: Client): Promise<Check> {
  try {
    await client.call("readyz", {}, { retries: 0 });
    return { name: "ready", status: "ok", detail: "it serves commands" };
  } catch (error) {
    const why = isServerError(error) ? error.detail : String(error);
    return { name: "ready", status: "problem", detail: `it cannot serve now: ${why} See its log.` };
  }
}

export async function checkVersion(client: Client): Promise<Check> {
  const document = (await client.call("openapi", {})) as { readonly info?: { readonly version?: unknown } };
  const theirs = document.info?.version;
  if (theirs === version) return { name: "version", status: "ok", detail: `${version}, here and there` };
  const detail = `the server is ${typeof theirs === "string" ? theirs : "of an unknown version"}, this is ${version}; use the same for both`;
  return { name: "version", status: "warning", detail };
}

/** The header tells whole seconds, and so the difference is known to about one. */
export function checkClock({ serverMs, askedMs, roundTripMs }: Reach): Check {
  const name = "clock";
  if (serverMs === null) return { name, status: "warning", detail: "the server does not say what time it has" };
  const low = askedMs - (serverMs + 1_000);
  const high = askedMs + roundTripMs - serverMs;
  const off = low > 0 ? low : high < 0 ? high : 0;
  if (Math.abs(off) <= clockMsMax) return { name, status: "ok", detail: "the same time as the server's, to a second" };
  const where = off > 0 ? "ahead of" : "behind";
  const detail = `this clock is ${showDuration(Math.abs(off))} ${where} the server's; leases do not depend on it, but set it right`;
  return { name, status: "warning", detail };
}

export async function checkKey(client: Client): Promise<Check> {
  const name = "key";
  const may = async (look: () => Promise<unknown>): Promise<true | string> => {
    try {
      await look();
      return true;
    } catch (error) {
      if (!isServerError(error)) throw error;
      return error.code;
    }
  };
  const reads = await may(() => client.call("list_leases", { limit: 1 }));
  if (reads === "unauthorized") {
    return { name, status: "problem", detail: "the server wants a key that is good; give it in LEASEHOLD_KEY" };
  }
  const operates = await may(() => client.call("list_keys", { limit: 1 }));
  if (operates === true) return { name, status: "ok", detail: "good, an operator's (or none is needed on loopback)" };
  if (reads === true) return { name, status: "ok", detail: "good, but not an operator's" };
  return { name, status: "ok", detail: "good for registering agents or for work, not for looking" };
}

/** How long a commit takes where the data is, from its own figures. */
export async function checkServerDisk(client: Client): Promise<Check> {
  const name = "commits";
  const response = await client.fetch("/metrics");
  const text = await response.text();
  if (response.status !== 200) return { name, status: "ok", detail: "not shown to this key" };
  const figure = (metric: string) => Number(new RegExp(`^${metric} (\\S+)$`, "m").exec(text)?.[1] ?? "NaN");
  const count = figure("leasehold_commit_seconds_count");
  const meanMs = (figure("leasehold_commit_seconds_sum") / count) * 1_000;
  if (!(count > 0)) return { name, status: "ok", detail: "none yet" };
  const detail = `${count} so far, ${meanMs.toFixed(2)} ms each in the mean`;
  return meanMs > 50
    ? { name, status: "warning", detail: `${detail}: its disk is slow` }
    : { name, status: "ok", detail };
}
