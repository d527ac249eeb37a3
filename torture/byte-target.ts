/**
 * What is attacked, in a process of its own: a server, or a cell's gateway in front of a service. It says where it is, and
 * then, twice a second, how long its loop was blocked at most: by its own work, not by others on the machine.
 */
import { once } from "node:events";
import { type AddressInfo, connect, createServer } from "node:net";
import { readCellConfig } from "../src/cell/config.ts";
import { CellCore } from "../src/cell/core.ts";
import { prepareMcp } from "../src/server/mcp/preparing.ts";
import { startServer } from "../src/server/start.ts";
import { narrow } from "../src/token/index.ts";
import { CellKeys } from "../src/token/node/cell-keys.ts";

/** `planted` passes everything on and takes its time: its attack must find both. */
export type Target = "server" | "gateway" | "planted";

export interface Ready {
  readonly port: number;
  /** A header with a valid credential. */
  readonly authorization: string;
  readonly lease: string;
}

export interface Blocked {
  readonly blockedMs: number;
}

/** A token lives for 300 s at most (G3), and an attack may take longer: its credential from now on. */
export interface Renewed {
  readonly authorization: string;
}

const renewEveryMs = 120_000;

const tickMs = 5;
const [what = "server", service = ""] = process.argv.slice(2);
const ready = await { server: openServer, gateway: openGateway, planted: openPlanted }[what as Target](service);
process.send?.(ready satisfies Ready);
watchLoop();
process.on("disconnect", () => process.exit(0));

async function openServer(): Promise<Ready> {
  const { address } = await startServer({
    port: 0,
    store: "memory",
    requestTimeoutMs: 3_000,
    rateLimit: 0,
    tenantRateLimit: 0,
  });
  const ask = async (path: string, body: object, key?: string) => {
    const headers = {
      "content-type": "application/json",
      ...(key !== undefined && { authorization: `Bearer ${key}` }),
    };
    const response = await fetch(`${address.url}${path}`, { method: "POST", headers, body: JSON.stringify(body) });
    return (await response.json()) as Record<string, unknown>;
  };
  const operator = String((await ask("/v1/keys", { role: "operator" }))["key"]);
  const { agent_token: token } = await ask("/v1/agents", { agent_id: "kept" }, operator);
  const intents = [{ predicate: "MUTATES", resource: "FILE:/kept" }];
  const { leases } = await ask("/v1/acquire", { agent_id: "kept", intents, ttl_ms: 300_000 }, operator);
  // As `leasehold serve` does, before anything is called.
  await prepareMcp();
  await fetch(`${address.url}/openapi.json`).then((response) => response.text());
  const [lease] = leases as readonly { readonly id: string }[];
  return { port: address.port, authorization: `Authorization: Bearer ${String(token)}`, lease: lease?.id ?? "" };
}

async function openGateway(target: string): Promise<Ready> {
  const resource = "API:/svc";
  const text = JSON.stringify({
    cell: "prey",
    resources: [{ resource, driver: "http", options: { target: `http://${target}` } }],
  });
  const keys = new CellKeys("prey", [{ id: "k1", key: new Uint8Array(32).fill(3), retiresAt: null }]);
  const core = new CellCore(readCellConfig(text, "prey.json"), keys);
  const whose = { tenant: "acme", id: "lse_prey", holder: "ann", predicate: "MUTATES" } as const;
  const terms = { resource, generation: 1, fence: 7, units: 1, expiresAt: Date.now() + 24 * 3_600_000 };
  const { coordinate, token } = await core.bind({ ...whose, ...terms });
  const shown = (whole: string): string => {
    const narrowed = narrow(whole, [
      { type: "operations", operations: ["read"] },
      { type: "path", path: "/public" },
    ]);
    return `Authorization: Bearer ${String(narrowed)}`;
  };
  const renew = async (): Promise<void> => {
    const { token: next } = await core.renew({ ...whose, ...terms });
    process.send?.({ authorization: shown(next) } satisfies Renewed);
  };
  setInterval(() => void renew(), renewEveryMs).unref();
  return { port: Number(new URL(coordinate).port), authorization: shown(token), lease: whose.id };
}

async function openPlanted(target: string): Promise<Ready> {
  const [host = "", port = "0"] = target.split(":");
  const server = createServer((socket) => {
    const upstream = connect(Number(port), host);
    for (const one of [socket, upstream]) one.on("error", () => one.destroy());
    socket.on("data", (chunk) => {
      const until = chunk.includes("chunked") ? cpuMs() + 100 : 0;
      while (cpuMs() < until);
    });
    socket.pipe(upstream).pipe(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, authorization: "Authorization: Bearer x", lease: "lse_prey" };
}

function watchLoop(): void {
  let most = 0;
  let at = performance.now();
  let cpu = cpuMs();
  setInterval(() => {
    const [now, used] = [performance.now(), cpuMs()];
    // Late because this thread was at work, and not because it had to wait for a processor.
    most = Math.max(most, Math.min(now - at - tickMs, used - cpu));
    at = now;
    cpu = used;
  }, tickMs);
  setInterval(() => {
    process.send?.({ blockedMs: most } satisfies Blocked);
    most = 0;
  }, 500);
}

function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}
