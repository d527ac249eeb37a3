/**
 * A small scripted control plane and cell, for what real ones do only when they fail: a renewal that is answered late,
 * never, twice or with a refusal. One agent, one bound lease; its tokens are real.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { type Client, type ClientOptions, createClient } from "../../src/sdk/client.ts";
import type { Lease, LeaseState } from "../../src/sdk/wire.ts";
import { mint } from "../../src/token/index.ts";
import { CellKeys } from "../../src/token/node/cell-keys.ts";

export interface Scripted {
  readonly client: Client;
  readonly lease: {
    state: LeaseState;
    generation: number;
    agentId: string;
    /** By the server's own clock. */
    expiresAt: number;
  };
  /** The calls in order: the operation, and the generation that it named. */
  readonly asked: string[];
  /** Replaces the normal renewal. */
  onRenew: (grant: () => Lease) => Promise<Answer> | Answer;
  renewals: number;
  /** What the gateway does with a current token. */
  onUse: () => Promise<Answer> | Answer;
  tell(type: string, reason?: string): void;
  readonly serverNow: () => number;
}

export interface Answer {
  readonly status: number;
  readonly body: unknown;
}

export const refusal = (status: number, error: string, more: object = {}): Answer => ({
  status,
  body: { error, detail: `Refused: ${error}.`, ...more },
});

/** `clockAheadMs`: how far its clock is ahead of this machine's. */
export async function scripted(
  t: TestContext,
  { ttlMs, clockAheadMs = 0, ...options }: { readonly ttlMs: number; readonly clockAheadMs?: number } & ClientOptions,
): Promise<Scripted> {
  const keys = new CellKeys("c1", [{ id: "k1", key: new Uint8Array(32).fill(7), retiresAt: null }]);
  const streams = new Set<ServerResponse>();
  let seq = 0;
  const serverNow = (): number => Date.now() + clockAheadMs;
  const lease: Scripted["lease"] = { state: "ACTIVE", generation: 1, agentId: "", expiresAt: 0 };
  let url = "";
  const json = (): Lease => {
    const now = serverNow();
    const claims = { tenant: "default", cell: "c1", resource: "GPU:/lab/a", lease: "lse_1" };
    const { generation, expiresAt, state } = lease;
    const fence = 100 + generation;
    return {
      id: "lse_1",
      resource: "GPU:/lab/a",
      predicate: "MUTATES",
      agent_id: lease.agentId,
      state,
      fence,
      generation,
      units: 1,
      purpose: null,
      acquired_at: new Date(now).toISOString(),
      expires_at: new Date(expiresAt).toISOString(),
      expires_in_ms: state === "ACTIVE" ? Math.max(0, expiresAt - now) : 0,
      ttl: ttlMs,
      coordinate: `${url}/gateway`,
      token: mint(keys, { ...claims, generation, fence, expiresAt, predicate: "MUTATES" }, now),
    };
  };
  const grant = (): Lease => {
    lease.generation++;
    lease.expiresAt = serverNow() + ttlMs;
    return json();
  };
  const one: Scripted = {
    client: null as never,
    lease,
    asked: [],
    onRenew: (grant) => ({ status: 200, body: grant() }),
    renewals: 0,
    onUse: () => ({ status: 200, body: { ok: true } }),
    tell(type, reason) {
      const data = JSON.stringify({ type, at: new Date().toISOString(), lease: json(), ...(reason && { reason }) });
      for (const stream of streams) stream.write(`id: ${++seq}\ndata: ${data}\n\n`);
    },
    serverNow,
  };
  const answerTo = async (
    method: string,
    path: string,
    body: { readonly agent_id?: unknown; readonly generation?: unknown },
  ): Promise<Answer> => {
    if (path === "/v1/agents") {
      lease.agentId = String(body.agent_id);
      const agent = { agent_id: lease.agentId, agent_token: "t", priority_timestamp: 1, epoch: 1, state: "PLANNING" };
      return { status: 201, body: agent };
    }
    if (path === "/v1/acquire") {
      lease.expiresAt = serverNow() + ttlMs;
      return { status: 200, body: { verdict: "GRANTED", request_id: "r", leases: [json()], warnings: [] } };
    }
    if (path.endsWith("/renew")) {
      one.asked.push(`renew ${String(body.generation)}`);
      one.renewals++;
      if (lease.state !== "ACTIVE") return refusal(410, "lease_revoked", { reason: "maintenance" });
      if (lease.generation !== body.generation)
        return refusal(409, "stale_generation", { generation: lease.generation });
      return one.onRenew(grant);
    }
    if (path === "/v1/release") {
      one.asked.push("release");
      return { status: 200, body: { leases: [{ id: "lse_1", state: "RELEASED" }], lost: [] } };
    }
    if (path.includes("heartbeat")) {
      one.asked.push("heartbeat");
      return refusal(409, "renew_required");
    }
    if (method === "GET" && path === "/v1/leases/lse_1") {
      one.asked.push("look");
      return { status: 200, body: json() };
    }
    if (path.startsWith("/v1/leases")) return { status: 200, body: { leases: [], next_cursor: null } };
    return { status: 200, body: {} };
  };
  const server = createServer(async (request: IncomingMessage, response: ServerResponse) => {
    const { pathname } = new URL(request.url ?? "/", "http://x");
    let text = "";
    for await (const chunk of request) text += String(chunk);
    if (pathname === "/v1/events") {
      response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders();
      streams.add(response);
      response.on("close", () => streams.delete(response));
      return;
    }
    const atDoor = pathname.startsWith("/gateway");
    const isPresent = request.headers.authorization === `Bearer ${json().token}`;
    const answer = atDoor
      ? isPresent
        ? await one.onUse()
        : refusal(401, "stale_token")
      : await answerTo(request.method ?? "GET", pathname, text === "" ? {} : (JSON.parse(text) as never));
    if (response.destroyed) return;
    response.writeHead(answer.status, { "content-type": "application/json" }).end(JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = createClient({ url, ...options });
  t.after(async () => {
    await client.close();
    server.closeAllConnections();
    server.close();
  });
  return Object.assign(one, { client });
}
