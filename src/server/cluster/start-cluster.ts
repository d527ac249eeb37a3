/** A server on PostgreSQL: it listens at once, leads the shards that it is elected for, and passes other requests on to their leaders. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { EngineLog } from "../../engine/engine-types.ts";
import type { Leadership } from "../../engine/leadership.ts";
import { defaultTenant } from "../../engine/recovery.ts";
import { closeShared, shareConnections } from "../../store/postgres-renewals.ts";
import { migratePostgres, readShards } from "../../store/postgres-schema.ts";
import { ReloadingTls } from "../../trust/server-tls.ts";
import { type SignedOutSession, sessionMs } from "../auth/sessions.ts";
import { openArtifacts, parserOptions } from "../compose.ts";
import { type Config, ConfigProblem } from "../config/config.ts";
import { version } from "../config/version.ts";
import { createGate } from "../http/edge.ts";
import { HandOver } from "../http/hand-over.ts";
import type { Service } from "../service.ts";
import type { RunningServer } from "../start.ts";
import type { Resign } from "./cluster.ts";
import { ClusterWatch, readSignedOut } from "./cluster-watch.ts";
import { checkClock, checkDurability } from "./database-checks.ts";
import { Directory } from "./directory.ts";
import { Front } from "./front.ts";
import { createPassOn } from "./pass-on.ts";
import { ServerRegistry } from "./registry.ts";
import { Routing } from "./routing.ts";
import { MasterKey, SharedSecrets } from "./secrets.ts";
import { ShardLeaders } from "./shard-leaders.ts";
import { ShardMetrics } from "./shard-metrics.ts";
import { beginTerm, type ShardTerm, type TermSetting } from "./shard-term.ts";
import { directoryShard, shardOfTenant } from "./shards.ts";

export interface ClusterConfig extends Config {
  readonly log: EngineLog;
  readonly tlsReloadMs?: number;
  /** The wall clock, for tests. */
  readonly wall?: () => number;
}

export interface ClusterServer extends RunningServer {
  /** Of the first shard. */
  readonly leadership: Leadership;
  readonly leaderships: readonly Leadership[];
  /** By shard, of the last term of each. */
  readonly shardServices: ReadonlyMap<number, Service>;
}

/** Of a database that is set up now, where nobody says how many. */
const shardsDefault = 16;

export async function startClusterServer(config: ClusterConfig): Promise<ClusterServer> {
  const { log, host } = config;
  const key = new MasterKey(config.masterKeyFile);
  const { tlsCert: cert, tlsKey, tlsCa: ca } = config;
  const tls = cert === null || tlsKey === null ? null : new ReloadingTls({ cert, key: tlsKey, ca }, log);
  const shared = shareConnections({ url: config.store }, config.leaderLeaseMs);
  const handOver = new HandOver(key.derive("passed on"));
  const directory = new Directory(shared.elections, key.box("engine"), log);
  let leaders: ShardLeaders | null = null;
  const watch = new ClusterWatch(shared.elections, config.leaderLeaseMs, ({ directoryMark, signedOut }) => {
    leaders?.balance();
    if (watch.shards.length === 1) return;
    directory.note(directoryMark);
    for (const { sessions } of services.values()) for (const one of signedOut) sessions.noteSignedOut(one);
  });
  let routing: Routing | null = null;
  const server = randomUUID();
  /** One that this server leads, if it does: its metrics are its own, on whatever connection they are asked for. */
  const anyShard = (): number =>
    Math.max(
      watch.shards.findIndex(({ leader }) => leader?.server === server),
      directoryShard,
    );
  const authorities = ca === null ? null : readFileSync(ca, "utf8");
  const passOn = createPassOn({
    leaderUrl: (shard) => watch.leaderOf(shard)?.url ?? null,
    route: (request) => {
      const found = routing?.find(request) ?? directoryShard;
      if (found instanceof Promise) return found.then((one) => (one === "any" ? anyShard() : one));
      return found === "any" ? anyShard() : found;
    },
    gate: createGate(config),
    server: { ...parserOptions, requestTimeout: config.requestTimeoutMs },
    ca: authorities,
    handOver,
  });
  const { port, connectionsMax, tlsReloadMs } = config;
  const front = await Front.listen({
    ...{ port, host, connectionsMax, elsewhere: passOn.server, tls, checksClients: ca !== null },
    ...(tlsReloadMs !== undefined && { tlsReloadMs }),
  });
  const folder = mkdtempSync(join(tmpdir(), "leasehold-"));
  const address = addressOf(front, host, tls === null ? "http" : "https");
  const serverUrl = config.advertiseUrl ?? advertised(address);
  const mayLead = !config.noLead;
  const registry = new ServerRegistry(shared.elections, { server, url: serverUrl, version, mayLead });
  const services = new Map<number, Service>();
  let shards = 1;

  const start = async (): Promise<ShardLeaders> => {
    await migratePostgres(shared.elections, config.shards ?? shardsDefault);
    shards = await readShards(shared.elections);
    checkShards(config.shards, shards);
    await checkDurability(shared.elections, config.acceptVolatile, log);
    await checkClock(shared.elections, config.wall ?? Date.now);
    await new SharedSecrets(shared.elections, key).check();
    await registry.start();
    const isShared = shards > 1;
    let last = Promise.resolve();
    const turn = (): Promise<void> => {
      last = last.then(() => nextTurn());
      return last;
    };
    const setting: TermSetting = {
      ...{ config, key, secretsDb: shared.elections, folder, front, address, handOver, passOn, directory, shards },
      ...{ db: shared.history, ca: authorities },
      routing: new Routing(shards, directory),
      artifacts: openArtifacts(config.data, config, isShared),
      ...{ metrics: new ShardMetrics(), turn },
      cluster: { store: "postgres", server, view: () => registry.view(), resign: askToResign },
    };
    const made = new ShardLeaders({
      ...{ shards, url: config.store, shared, server, serverUrl, leaseMs: config.leaderLeaseMs, mayLead },
      ...{ watch, directory, log, rest: (ms) => registry.rest(ms) },
      begin: async (shard, store, opened, lease) => {
        const term: ShardTerm = await beginTerm(setting, shard, { store, opened, lease });
        services.set(shard, term.service);
        if (!isShared) return term;
        const { sessions } = term.service;
        sessions.onSignedOut = (one) => void noteSignedOut(one);
        for (const one of await readSignedOut(shared.history)) sessions.noteSignedOut(one);
        return term;
      },
    });
    leaders = made;
    if (isShared) {
      const { routing: own } = setting;
      routing = own;
      front.choose = (head) => own.chooseFor(head);
    }
    await made.start();
    return made;
  };
  /** The other shards take the session until they have seen this, a moment later. */
  const noteSignedOut = async ({ id, keyId, until }: SignedOutSession): Promise<void> => {
    const { schema } = shared.elections;
    await shared.elections
      .read(
        `WITH over AS (DELETE FROM ${schema}.signed_out WHERE until < $4)
         INSERT INTO ${schema}.signed_out (id, key_id, until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`,
        [id, keyId, until, until - sessionMs],
      )
      .catch((err: unknown) => log.warn({ err }, "that a session was signed out could not be stored"));
  };
  /** Another server finds the mark when it looks at the shards the next time. */
  const askToResign: Resign = async (of, led) => {
    if (of === server) {
      for (const { shard } of led) leaders?.resign(shard);
      return;
    }
    const { schema } = shared.elections;
    await shared.elections.read(
      `UPDATE ${schema}.shards AS s SET resign_epoch = s.epoch FROM unnest($1::int[], $2::bigint[]) AS u (shard, epoch)
       WHERE s.shard = u.shard AND s.epoch = u.epoch`,
      [led.map(({ shard }) => shard), led.map(({ epoch }) => epoch)],
    );
  };
  const release = async (): Promise<void> => {
    passOn.close();
    await front.close();
    await registry.close();
    await closeShared(shared);
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    const made = await start();
    let closing: Promise<void> | null = null;
    const close = (): Promise<void> => {
      // Who is about to leave gets no more shards.
      closing ??= registry
        .close()
        .then(() => made.close())
        .then(release);
      return closing;
    };
    return {
      ...{ address, leadership: made.first, leaderships: made.all, shardServices: services, close, abort: close },
      connections: () => front.size,
      get service(): Service {
        const service = services.get(shardOfTenant(defaultTenant, shards)) ?? services.values().next().value;
        if (service === undefined) throw new Error("this server has not led yet");
        return service;
      },
    };
  } catch (fault) {
    // Read as what it may have become meanwhile.
    await (leaders as ShardLeaders | null)?.close();
    await release();
    throw fault;
  }
}

function checkShards(given: number | null, shards: number): void {
  if (given === null || given === shards) return;
  throw new ConfigProblem(
    `the database was set up with ${shards} shard${shards === 1 ? "" : "s"}, for good; leave --shards ${given} out`,
  );
}

function addressOf(front: Front, host: string, scheme: string): RunningServer["address"] {
  const { port } = front.address;
  return { host, port, url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

/** An address that means every address is not one that others can call. */
function advertised({ host, url }: RunningServer["address"]): string {
  return host === "0.0.0.0" || host === "::" ? url.replace(/\/\/(\[::\]|0\.0\.0\.0)/, `//${hostname()}`) : url;
}
