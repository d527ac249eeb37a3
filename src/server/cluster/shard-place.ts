/** One shard among several: what it decides, what it passes on, and what it asks of the database that is not its own. */
import { randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import { readTenants } from "../../engine/stored-directory.ts";
import type { KeyUse } from "../../kernel/contract/commands.ts";
import { limits } from "../../kernel/contract/limits.ts";
import type { Tenant } from "../../kernel/contract/records.ts";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import type { Input, Operation } from "../../protocol/operation.ts";
import type { Database } from "../../store/postgres-connection.ts";
import type { Store } from "../../store/store.ts";
import type { Sessions } from "../auth/sessions.ts";
import type { Connections } from "../http/connections.ts";
import type { HandOver } from "../http/hand-over.ts";
import type { Elsewhere } from "../http/http.ts";
import type { Caller, Place } from "../service.ts";
import { askElsewhere } from "./ask-elsewhere.ts";
import type { Directory } from "./directory.ts";
import { noLeader, type PassOn } from "./pass-on.ts";
import type { Routing } from "./routing.ts";
import { directoryOperations, directoryShard, shardOfTenant, tenantOperations } from "./shards.ts";

/** Uses are taken every minute; a shard that has just changed its leader may be late. */
const usesKeptMs = 10 * limits.keyUseMs;

/** What the shards of one server share. */
export interface ShardedServer {
  readonly shards: number;
  readonly db: Database;
  readonly directory: Directory;
  readonly routing: Routing;
  readonly handOver: HandOver;
  readonly passOn: PassOn;
  readonly ca: string | null;
}

export class ShardPlace implements Place {
  readonly shard: number;
  readonly #server: ShardedServer;
  readonly #nobodys = randomBytes(32).toString("base64url");

  constructor(shard: number, server: ShardedServer) {
    this.shard = shard;
    this.#server = server;
  }

  readonly sessionSecret = (): string => {
    // Until shard 0 has recovered no session is good (S6).
    return this.#server.directory.contents?.secret ?? this.#nobodys;
  };

  takes(tenant: string): boolean {
    return shardOfTenant(tenant, this.#server.shards) === this.shard;
  }

  async ask(sessions: Sessions, operation: Operation, input: Input, caller: Caller): Promise<Answer> {
    const { passOn, handOver, ca } = this.#server;
    const shard = this.#deciding(operation.name, input, caller.tenant);
    const leaderUrl = passOn.leaderUrl(shard);
    if (shard === this.shard) return elsewhere;
    if (leaderUrl === null) return noLeader;
    return await askElsewhere({ leaderUrl, shard, handOver, sessions, ca }, operation, input, caller);
  }

  #deciding(name: string, input: Input, tenant: string): number {
    const { shards, directory } = this.#server;
    if (directoryOperations.has(name) || (name === "list_audit" && input["directory"] === true)) return directoryShard;
    if (tenantOperations.has(name)) return shardOfTenant(String(input["tenant_id"]), shards);
    const holder = name === "assign_name" ? directory.holderOfKey(String(input["key_id"])) : null;
    return shardOfTenant(holder?.tenant ?? tenant, shards);
  }

  whyElsewhere({ name }: Operation, input: Input, { tenant }: Caller): Answer | null {
    return this.#isOwn(name, input, tenant) ? null : elsewhere;
  }

  #isOwn(name: string, input: Input, tenant: string): boolean {
    if (name === "metrics") return true;
    // Every shard has adopted the policies, and its own agents ask it.
    if (name === "list_policies" || name === "get_policy") return this.shard === directoryShard || this.takes(tenant);
    return this.#deciding(name, input, tenant) === this.shard;
  }

  async spread(store: Store): Promise<void> {
    try {
      await store.folded?.();
      await this.#server.directory.refresh();
    } catch {
      // It is stored; the others find it a moment later.
    }
  }

  /** By the shard of each. */
  async tenants(): Promise<readonly Tenant[]> {
    const { db, shards } = this.#server;
    const rows = await db.read(`SELECT shard, n, body FROM ${db.schema}.live WHERE kind = 'tenant' ORDER BY shard, n`);
    const stored = rows.map(({ shard, n, body }) => ({ shard: Number(shard), n: Number(n), body: String(body) }));
    const all = readTenants(stored);
    // One that was created a moment ago is not in its own shard yet.
    const found = new Map<string, Tenant>();
    for (const { shard, tenant } of all)
      if (!found.has(tenant.id) || shardOfTenant(tenant.id, shards) === shard) found.set(tenant.id, tenant);
    return [...found.values()];
  }

  async exchangeUses(uses: readonly KeyUse[]): Promise<readonly KeyUse[]> {
    const { db } = this.#server;
    const table = `${db.schema}.key_uses`;
    if (this.shard === directoryShard) {
      const rows = await db.read(`SELECT key_id, at FROM ${table}`);
      await db.read(`DELETE FROM ${table} WHERE at < $1`, [Date.now() - usesKeptMs]);
      return [...uses, ...rows.map((row) => ({ keyId: String(row["key_id"]), at: Number(row["at"]) }))];
    }
    if (uses.length === 0) return [];
    await db.read(
      `INSERT INTO ${table} SELECT * FROM unnest($1::text[], $2::bigint[])
       ON CONFLICT (key_id) DO UPDATE SET at = greatest(key_uses.at, excluded.at)`,
      [uses.map(({ keyId }) => keyId), uses.map(({ at }) => at)],
    );
    return [];
  }
}

/** Each request of a connection is looked at: the next one may be about another tenant. */
export class ShardGate implements Elsewhere {
  readonly #shard: number;
  readonly #server: ShardedServer;
  readonly #connections: Connections;

  constructor(shard: number, server: ShardedServer, connections: Connections) {
    this.#shard = shard;
    this.#server = server;
    this.#connections = connections;
  }

  request(request: IncomingMessage, response: ServerResponse, own: () => void): void {
    this.#route(request, (shard) => {
      if (shard === this.#shard) return own();
      if (this.#isTaken(request)) return;
      this.#connections.lend(request.socket, response);
      this.#server.passOn.request(request, response, shard);
    });
  }

  upgrade(request: IncomingMessage, socket: Duplex, head: Buffer, own: () => void): void {
    this.#route(request, (shard) => {
      if (shard === this.#shard) return own();
      if (this.#isTaken(request)) return;
      this.#connections.lend(request.socket, socket);
      this.#server.passOn.upgrade(request, socket, head, shard);
    });
  }

  /** A server of this cluster has chosen where it goes; yet what it shows may be new here. */
  #route(request: IncomingMessage, then: (shard: number) => void): void {
    const { routing, handOver } = this.#server;
    const said = handOver.saidIn(request);
    const go = (found: number | "any"): void => {
      if (request.socket.destroyed) return;
      then(said?.shard ?? (found === "any" ? this.#shard : found));
    };
    const found = routing.find(request);
    if (found instanceof Promise) void found.then(go);
    else go(found);
  }

  /** As for its own requests: nothing is served on a connection that was refused or taken by an event stream. */
  #isTaken({ socket }: IncomingMessage): boolean {
    const connection = this.#connections.open.get(socket);
    if (connection !== undefined && !connection.isTaken) return false;
    socket.destroy();
    return true;
  }
}

const elsewhere = errorAnswer(
  "invalid_request",
  "Another shard of this cluster decides this: send it as a request of its own.",
);
