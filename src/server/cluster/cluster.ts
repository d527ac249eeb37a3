/** `/v1/cluster`: the servers that share the data of this one, who leads, and how to make another lead. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { noteChange } from "../../engine/audit-chain.ts";
import { auditEntryOf } from "../../kernel/kernel.ts";
import { answerJson, errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import { readHttp } from "../../protocol/http/http-input.ts";
import type { RawQuery } from "../../protocol/http/query-string.ts";
import { getCluster, resignLeader } from "../../protocol/operating/cluster.ts";
import type { Input, Operation } from "../../protocol/operation.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import { answerForFault } from "../answering/faults.ts";
import { type Gate, sendAnswer } from "../http/edge.ts";
import type { EdgeHandler } from "../http/http.ts";
import type { Service } from "../service.ts";

export interface ClusterServerRow {
  readonly server: string;
  readonly url: string | null;
  readonly version: string;
  readonly isAlive: boolean;
  readonly mayLead: boolean;
  readonly startedAt: number;
  readonly seenAt: number;
}

export interface ClusterShardRow {
  readonly shard: number;
  /** Null: nobody leads it. */
  readonly server: string | null;
  readonly url: string | null;
  readonly epoch: number;
  readonly since: number | null;
  /** Null: a lease that lasts. */
  readonly leftMs: number | null;
}

export interface ClusterView {
  readonly servers: readonly ClusterServerRow[];
  readonly shards: readonly ClusterShardRow[];
}

/** What a term knows of the cluster that it leads. */
export interface Cluster {
  readonly store: "memory" | "postgres" | "sqlite";
  readonly server: string;
  readonly epoch: number;
  /** When this term began. */
  readonly since: number;
  view(): Promise<ClusterView>;
  /** Null: there are no others to lead. */
  readonly resign: Resign | null;
}

/** Of shards that one server leads; it resolves when that server knows, or finds out by itself. */
export type Resign = (server: string, shards: readonly Pick<ClusterShardRow, "shard" | "epoch">[]) => Promise<void>;

/** Of a server that has its data to itself. */
export function aloneIn(
  { store, epoch, since }: Pick<Cluster, "store" | "epoch" | "since">,
  { url, version, now }: { readonly url: () => string; readonly version: string; readonly now: () => number },
): Cluster {
  const server = String(process.pid);
  return {
    ...{ store, server, epoch, since, resign: null },
    view: async () => ({
      servers: [{ server, url: url(), version, isAlive: true, mayLead: true, startedAt: since, seenAt: now() }],
      shards: [{ shard: 0, server, url: url(), epoch, since, leftMs: null }],
    }),
  };
}

export function createClusterHandlers(service: Service, gate: Gate, cluster: Cluster) {
  const { engine } = service;
  return {
    get_cluster: (request, reply) => {
      if (inputOf(getCluster, request, reply) === null) return;
      cluster.view().then(
        (view) => sendAnswer(reply.raw, answerJson(200, viewJson(cluster, view, engine.now()))),
        (fault: unknown) => sendAnswer(reply.raw, answerForFault(service, fault)),
      );
    },

    resign_leader: (request, reply) => {
      const input = inputOf(resignLeader, request, reply);
      if (input === null) return;
      const { caller, raw } = request;
      if (caller === null) throw new TypeError("admission comes before the handler");
      const address = gate.addressOf(raw);
      const actor = address === undefined ? caller.actor : { ...caller.actor, address };
      const tryTo = async (): Promise<void> => {
        const { resign } = cluster;
        const view = await cluster.view();
        const asked = askedFor(view, cluster, input);
        if ("status" in asked) return void sendAnswer(reply.raw, asked);
        const { server, shards } = asked;
        const isNeeded = !view.servers.some((one) => one.server !== server && one.isAlive && one.mayLead);
        if (resign === null || isNeeded) return void sendAnswer(reply.raw, nobodyElse);
        const { epoch = 0 } = shards[0] ?? {};
        const numbers = shards.map(({ shard }) => shard);
        const detail = numbers.length === view.shards.length ? { epoch } : { epoch, shards: numbers };
        await noteChange(engine, auditEntryOf(caller.tenant, actor, "resign_leader", server, detail, engine.now()));
        const go = (): void =>
          void resign(server, shards).catch((err: unknown) =>
            service.log.error({ err }, "a leader was not asked to resign"),
          );
        // Its own answer leaves first; a client that is gone already waits for none.
        if (server === cluster.server && !reply.raw.closed) reply.raw.once("close", go);
        else go();
        sendAnswer(reply.raw, answerJson(202, { server_id: server, epoch, shards: numbers }));
      };
      tryTo().catch((fault: unknown) => sendAnswer(reply.raw, answerForFault(service, fault)));
    },
  } satisfies Record<string, EdgeHandler>;

  function inputOf(operation: Operation, { params, query, body }: FastifyRequest, reply: FastifyReply): Input | null {
    const read = readHttp(operation, operation, { params, query: query as RawQuery, body });
    if (read.ok) return read.value;
    service.counts.refuse(read.code);
    sendAnswer(reply.raw, faultAnswer(read));
    return null;
  }
}

/** Whose shards are meant, and which of them it leads. */
function askedFor({ shards }: ClusterView, { server: own }: Cluster, input: Input) {
  const shard = typeof input["shard"] === "number" ? input["shard"] : null;
  const named = typeof input["server_id"] === "string" ? input["server_id"] : null;
  const one = shards.find((row) => row.shard === shard);
  if (shard !== null && one === undefined) return noSuchShard;
  const server = named ?? (one === undefined ? own : one.server);
  const led = shards.filter((row) => row.server === server && (shard === null || row.shard === shard));
  return server === null || led.length === 0 ? leadsNothing : { server, shards: led };
}

function viewJson({ store, server }: Cluster, { servers, shards }: ClusterView, now: number): object {
  return {
    store,
    server_id: server,
    now: isoTime(now),
    servers: servers.map((one) => ({
      server_id: one.server,
      url: one.url,
      version: one.version,
      alive: one.isAlive,
      may_lead: one.mayLead,
      started_at: isoTime(one.startedAt),
      seen_at: isoTime(one.seenAt),
    })),
    shards: shards.map((one) => ({
      shard: one.shard,
      server_id: one.server,
      url: one.url,
      epoch: one.epoch,
      since: one.since === null ? null : isoTime(one.since),
      lease_left_ms: one.leftMs,
    })),
  };
}

const nobodyElse = errorAnswer(
  "invalid_request",
  "No other server could lead: start one on the same database, without --no-lead, and ask again.",
);
const noSuchShard = errorAnswer("invalid_request", "There is no such shard; `cluster status` shows them.", {
  field: "shard",
});
const leadsNothing = errorAnswer(
  "invalid_request",
  "That server does not lead this now; `cluster status` shows who leads what.",
);
