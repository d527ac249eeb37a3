/**
 * A tenant that misuses all it can, beside one that works: the honest one is measured alone, beside the attacker, and
 * after kill -9 and a restart on what the attacker has left behind.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { cpuMsOf, memoryOf } from "../bench/children.ts";
import { watchLoop } from "../bench/loop-delay.ts";
import { freePort } from "./free-port.ts";
import { spawnServer } from "./server-process.ts";
import { type HonestResult, workHonestly } from "./tenant-honest.ts";
import type { Tally } from "./tenant-requests.ts";

const mebibyte = 2 ** 20;

/** What docs/operations.md recommends for a tenant that is not trusted. */
export const hostileQuotas = {
  leases_max: 5_000,
  waiters_max: 100,
  agents_max: 1_000,
  resources_max: 100,
  patterns_max: 50,
  tasks_max: 2_000,
  receipts_max: 20_000,
  receipt_bytes_max: 64 * mebibyte,
  foreign_obligations_max: 100,
  connections_max: 64,
  subscriptions_max: 16,
  held_max: 16,
  requests_per_second_max: 200,
  unread_bytes_max: 8 * mebibyte,
  artifacts_max: 100,
  artifact_bytes_max: 32 * mebibyte,
  payload_bytes_max: 16 * mebibyte,
  digest_bytes_max: 16 * mebibyte,
  memory_bytes_max: 32 * mebibyte,
};

/** Between two requests of each of an attack's loops. */
const attackPauseMs = 20;

export interface Phase extends HonestResult {
  readonly rssPeak: number;
  /** No delay of the server's event loop was longer, in ms, to a bucket of its histogram. */
  readonly loopDelayMs: number;
  /** Processor time of the server, in ms a second; it does not depend on what else the machine does. */
  readonly cpuMs: number;
}

export interface TenantResult {
  readonly alone: Phase;
  readonly beside: Phase;
  readonly after: Phase;
  readonly attacks: Readonly<Record<string, Tally>>;
  readonly restartMs: number;
  readonly startMs: number;
}

export interface TrialOptions {
  readonly seconds: number;
  /** The attacks that are run, with commas between them; "": all. */
  readonly only?: string;
  /**
   * Server and honest clients on one core in every phase, the attacker on another. Otherwise the attacker's own work takes
   * time from both on a small machine, whatever the server does.
   */
  readonly pinned?: boolean;
  /** Where the server writes a processor profile of the first two phases; it is then stopped and not killed between them. */
  readonly profileFolder?: string;
}

export async function tenantTrial(dataFolder: string, options: TrialOptions): Promise<TenantResult> {
  const { seconds, only = "", pinned = false, profileFolder = "" } = options;
  if (pinned) pinTo(0);
  const port = await freePort();
  const isProfiled = profileFolder !== "";
  let server = spawnServer(port, dataFolder, isProfiled ? ["--cpu-prof", `--cpu-prof-dir=${profileFolder}`] : []);
  try {
    const startMs = await server.untilReady();
    const operator = await createKey(port, null, { role: "operator" });
    const honest = await createTenant(port, operator, "honest");
    const hostile = await createTenant(port, operator, "hostile");
    await call(port, operator, "PUT", "/v1/tenants/hostile/quotas", hostileQuotas);
    const measure = async (): Promise<Phase> => {
      const blocked = await watchLoop(port, operator);
      const [cpuBefore, began] = [cpuMsOf(server.pid), performance.now()];
      const result = await workHonestly({ port, key: honest, seconds });
      const cpuMs = ((cpuMsOf(server.pid) - cpuBefore) / (performance.now() - began)) * 1_000;
      return { ...result, cpuMs, rssPeak: memoryOf(server.pid).peak, loopDelayMs: await blocked() };
    };
    const alone = await measure();
    const attacker = startAttacker(port, hostile, only, pinned);
    const beside = await measure();
    if (isProfiled) await server.stop();
    const attacks = await attacker.stop();
    await server.kill();
    server = spawnServer(port, dataFolder);
    const restartMs = await server.untilReady();
    const after = await measure();
    return { alone, beside, after, attacks, restartMs, startMs };
  } finally {
    await server.kill();
  }
}

interface Attacker {
  /** Resolves with what each attack was answered. */
  stop(): Promise<Readonly<Record<string, Tally>>>;
}

/** This process, and all that it starts from now on. */
function pinTo(core: number): void {
  execFileSync("taskset", ["--all-tasks", "--cpu-list", "--pid", String(core), String(process.pid)], {
    stdio: "ignore",
  });
}

function startAttacker(port: number, key: string, only: string, pinned: boolean): Attacker {
  const script = join(import.meta.dirname, "tenant-attacks.ts");
  const line = [process.execPath, script, String(port), key, String(attackPauseMs), only];
  const [command = "", ...args] = pinned ? ["taskset", "--cpu-list", "1", ...line] : line;
  const child = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "close");
  let text = "";
  child.stdout.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  return {
    async stop() {
      child.stdin.end();
      const [code] = (await ended) as [number | null];
      if (code !== 0) throw new Error(`the attacker ended with ${code}`);
      return JSON.parse(text) as Readonly<Record<string, Tally>>;
    },
  };
}

async function createTenant(port: number, operator: string, tenant_id: string): Promise<string> {
  await call(port, operator, "POST", "/v1/tenants", { tenant_id });
  return await createKey(port, operator, { role: "supervisor", tenant_id });
}

async function createKey(port: number, operator: string | null, input: object): Promise<string> {
  const { key } = (await call(port, operator, "POST", "/v1/keys", input)) as { readonly key: string };
  return key;
}

async function call(port: number, key: string | null, method: string, path: string, body: object): Promise<unknown> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { "content-type": "application/json", ...(key !== null && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return JSON.parse(text);
}
