/** A real server and real cells, each a process, with real services behind them. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer as createHttp, type RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcp, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type CellOptions, type CellProcess, spawnCell } from "../../torture/cell-process.ts";
import { freePort } from "../../torture/free-port.ts";
import { type ServerProcess, spawnServer } from "../../torture/server-process.ts";
import { type Client, clientOf, until } from "../server/harness.ts";

export interface BoundLease {
  readonly id: string;
  readonly resource: string;
  readonly state: string;
  readonly fence: number;
  readonly generation: number;
  readonly token: string;
  readonly coordinate: string;
  readonly expires_at: string;
}

export interface Plane extends Client {
  readonly url: string;
  readonly port: number;
  readonly folder: string;
  readonly server: ServerProcess;
  /** kill -9 and a restart on the same data. */
  restart(): Promise<void>;
  kill(): Promise<void>;
  start(): Promise<void>;
  /** Does not wait until it is linked. */
  begin(name: string, resources: readonly object[], options?: CellOptions): CellProcess;
  cell(name: string, resources: readonly object[], options?: CellOptions): Promise<CellProcess>;
  acquire(agent: string, resource: string, more?: object): Promise<{ status: number; body: AcquireBody; text: string }>;
  /** A lease that must be granted. */
  grantBound(agent: string, resource: string, more?: object): Promise<BoundLease>;
  resource(name: string): Promise<ResourceBody>;
}

export interface AcquireBody {
  readonly verdict?: string;
  readonly error?: string;
  readonly reason?: string;
  readonly detail?: string;
  readonly leases?: readonly BoundLease[];
}

export interface ResourceBody {
  readonly resource: string;
  readonly state: string;
  readonly reason: string | null;
}

export async function startPlane(t: TestContext): Promise<Plane> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-cells-"));
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  let server = spawnServer(port, join(folder, "data"));
  const cells: CellProcess[] = [];
  t.after(async () => {
    for (const cell of cells) await cell.kill();
    await server.kill();
    rmSync(folder, { recursive: true, force: true });
  });
  await server.untilReady();
  const client = clientOf(url);
  const plane: Plane = {
    ...client,
    url,
    port,
    folder,
    get server() {
      return server;
    },
    kill: () => server.kill(),
    async start() {
      server = spawnServer(port, join(folder, "data"));
      await server.untilReady();
    },
    async restart() {
      await plane.kill();
      await plane.start();
    },
    begin(name, resources, options) {
      const cell = spawnCell(folder, name, resources, options?.url ?? url, options);
      cells.push(cell);
      return cell;
    },
    async cell(name, resources, options) {
      const cell = plane.begin(name, resources, options);
      await cell.linked();
      return cell;
    },
    async acquire(agent, resource, more = {}) {
      await client.register(agent);
      const intents = [{ predicate: "MUTATES", resource }];
      return await client.post<AcquireBody>("/v1/acquire", { agent_id: agent, intents, hold_ms: 20_000, ...more });
    },
    async grantBound(agent, resource, more) {
      const { status, body, text } = await until(
        async () => {
          const answer = await plane.acquire(agent, resource, more);
          // The holder before may still be torn down; a younger request gets DIE and asks again.
          return answer.body.error === "die" ? null : answer;
        },
        `${agent} is granted ${resource}`,
        30_000,
      );
      assert.equal(status, 200, text);
      const [lease] = body.leases ?? [];
      assert.ok(lease !== undefined, text);
      assert.match(lease.token, /^lht1\./);
      return lease;
    },
    async resource(name) {
      const { body } = await client.get<{ resources: readonly ResourceBody[] }>("/v1/resources?limit=100");
      const found = body.resources.find(({ resource }) => resource === name);
      assert.ok(found !== undefined, `${name} is not listed`);
      return found;
    },
  };
  return plane;
}

/** An HTTP service; host:port. */
export async function serveHttp(t: TestContext, listener: RequestListener): Promise<string> {
  const server = createHttp(listener);
  t.after(() => server.closeAllConnections());
  return await opened(t, server);
}

export async function serveTcp(t: TestContext, serve: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createTcp((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serve(socket);
  });
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  return await opened(t, server);
}

async function opened(t: TestContext, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export interface GatewayAnswer {
  readonly status: number;
  readonly error: string | undefined;
  readonly text: string;
}

/** One request through a gateway; status 0 if there is no response. */
export async function ask(url: string, token: string, init: RequestInit = {}): Promise<GatewayAnswer> {
  try {
    const response = await fetch(url, { ...init, headers: { authorization: `Bearer ${token}` } });
    const text = await response.text();
    const body = text.startsWith("{") ? (JSON.parse(text) as { error?: string }) : {};
    return { status: response.status, error: body.error, text };
  } catch (error) {
    return { status: 0, error: String(error), text: "" };
  }
}

export { until };
