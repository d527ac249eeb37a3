/** A server on a free port with its data in memory, and a client that checks every response against its operation. */

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Operation } from "../../src/protocol/operation.ts";
import { operations } from "../../src/protocol/operations.ts";
import { findAnswerFault } from "../../src/protocol/testing/conformance.ts";
import { type RunningServer, type ServerOptions, startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore, type MemoryDisk } from "../../src/store/memory.ts";
import type { WireGranted, WireLease, WireRegisteredAgent } from "./wire-types.ts";

/** What a test may look for in a body of any kind. */
export interface Body {
  readonly error?: string;
  readonly detail?: string;
  readonly field?: string;
  readonly reason?: string;
  readonly state?: string;
  readonly status?: string;
  readonly epoch?: number;
  readonly generation?: number;
  readonly retry_after_ms?: number;
  readonly earliest?: number;
  readonly blocked_by?: readonly unknown[];
  readonly lost?: readonly unknown[];
}

export interface HttpAnswer<T = Body> {
  readonly status: number;
  readonly body: T;
  readonly text: string;
  readonly headers: Headers;
}

export interface CallOptions {
  readonly key?: string | undefined;
  readonly tenant?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export async function serve(t: TestContext, options: ServerOptions = {}): Promise<RunningServer & Client> {
  // The same tests on PostgreSQL: test/postgres/end-to-end.test.ts.
  const shared = process.env["LEASEHOLD_TEST_STORE"] === "postgres" && options.store === undefined;
  const store = shared ? await onPostgres(t) : { store: "memory" };
  const server = await startServer({ port: 0, ...store, shutdownTimeoutMs: 2_000, ...options });
  t.after(() => server.close());
  return { ...server, service: server.service, ...clientOf(server.address.url) };
}

/** A schema of its own, and a master key. */
async function onPostgres(t: TestContext): Promise<ServerOptions> {
  const { testSchema } = await import("../../src/store/testing/postgres-fixture.ts");
  const data = await testSchema();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-shared-"));
  const masterKeyFile = join(folder, "master.key");
  writeFileSync(masterKeyFile, randomBytes(32), { mode: 0o600 });
  t.after(async () => {
    await data.drop();
    rmSync(folder, { recursive: true });
  });
  // With two shards the default tenant is not in that of the directory, so that requests have to find both.
  return { store: data.url, masterKeyFile, data: folder, leaderLeaseMs: 30_000, shards: 2 };
}

export interface Client {
  call<T = Body>(method: string, path: string, body?: unknown, options?: CallOptions): Promise<HttpAnswer<T>>;
  post<T = Body>(path: string, body?: unknown, options?: CallOptions): Promise<HttpAnswer<T>>;
  get<T = Body>(path: string, options?: CallOptions): Promise<HttpAnswer<T>>;
  register(agentId: string, options?: CallOptions): Promise<WireRegisteredAgent>;
  /** One MUTATES lease, which must be granted. */
  grant(agentId: string, resource: string, more?: object, options?: CallOptions): Promise<WireLease>;
}

export function clientOf(url: string): Client {
  const client: Client = {
    async call<T>(method: string, path: string, body?: unknown, options: CallOptions = {}) {
      const { key, tenant, headers, signal } = options;
      const response = await fetch(`${url}${path}`, {
        method,
        headers: {
          ...(body !== undefined && { "content-type": "application/json" }),
          ...(key !== undefined && { authorization: `Bearer ${key}` }),
          ...(tenant !== undefined && { "leasehold-tenant": tenant }),
          ...headers,
        },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        ...(signal !== undefined && { signal }),
      });
      const text = await response.text();
      const operation = operationOf(method, path);
      if (operation !== undefined && isJson(response) && text !== "") {
        assert.equal(findAnswerFault(operation, { status: response.status, body: text }), null);
      }
      const parsed = (isJson(response) && text !== "" ? JSON.parse(text) : {}) as T;
      return { status: response.status, body: parsed, text, headers: response.headers };
    },
    post: (path, body = {}, options = {}) => client.call("POST", path, body, options),
    get: (path, options = {}) => client.call("GET", path, undefined, options),
    async register(agentId, options) {
      const { status, body, text } = await client.post<WireRegisteredAgent>(
        "/v1/agents",
        { agent_id: agentId },
        options,
      );
      assert.ok(status === 201 || status === 200, text);
      return body;
    },
    async grant(agentId, resource, more = {}, options = {}) {
      const asked = { agent_id: agentId, intents: [{ predicate: "MUTATES", resource }], ...more };
      const { status, body, text } = await client.post<WireGranted>("/v1/acquire", asked, options);
      assert.equal(status, 200, text);
      const [lease] = body.leases;
      assert.ok(lease !== undefined);
      return lease;
    },
  };
  return client;
}

function isJson({ headers }: Response): boolean {
  return headers.get("content-type")?.startsWith("application/json") === true;
}

const routes = operations.flatMap((operation) =>
  [operation, ...operation.also].map(({ method, path }) => ({
    operation,
    method,
    pattern: new RegExp(`^${path.replaceAll(/\{\w+\}/g, "[^/]+")}(\\?.*)?$`),
  })),
);

function operationOf(method: string, path: string): Operation | undefined {
  return routes.find((route) => route.method === method && route.pattern.test(path))?.operation;
}

/** Of a server with several shards, as if it had one: each of its lines is of one of them. */
export function withoutShards(metrics: string): string {
  return metrics.replaceAll(/\{shard="\d+"\}|shard="\d+",/g, "");
}

export function mutates(...resources: readonly string[]) {
  return resources.map((resource) => ({ predicate: "MUTATES", resource }));
}

/** After a standstill a timer comes before what has arrived meanwhile; this many turns of the loop let that in too. */
const turnsAfter = 10;

export async function pause(ms: number): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, ms));
  for (let turn = 0; turn < turnsAfter; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** Polls until the value is there; fails if it is not in time. */
export async function until<T>(look: () => Promise<T | null> | T | null, what: string, withinMs = 30_000): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    assert.ok(performance.now() < end, `not within ${withinMs} ms: ${what}`);
    await pause(10);
  }
}

/** The number of answers held now. */
export function held({ service }: RunningServer, count: number): Promise<true> {
  return until(() => (service.requests.size === count ? true : null), `${count} answers are held`);
}

/** A store in memory that fails on demand, and then cannot be opened again until the test allows it. */
export function failingStore(disk: MemoryDisk = createMemoryDisk()) {
  const store = createMemoryStore(disk);
  const open = store.open.bind(store);
  let mayOpen = Promise.resolve();
  let letOpen = (): void => undefined;
  store.open = async () => {
    await mayOpen;
    return open();
  };
  return {
    store,
    disk,
    failNextCommit(fate: "lost" | "stored"): void {
      disk.failNextCommit = fate;
      mayOpen = new Promise((resolve) => {
        letOpen = resolve;
      });
    },
    comeBack: () => letOpen(),
  };
}
