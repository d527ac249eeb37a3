/** The edges of a server whose engine serves: HTTP and the streams, until it is closed. */
import type { Server as HttpServer, IncomingMessage } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { AddressInfo, Server } from "node:net";
import { join } from "node:path";
import type { Engine } from "../engine/engine.ts";
import type { EngineLog } from "../engine/engine-types.ts";
import { v8Heap } from "../engine/v8-heap.ts";
import { MasterKeys } from "../token/node/master-keys.ts";
import { isLoopback } from "../trust/loopback.ts";
import { removeOwner } from "../trust/owner-token.ts";
import { ReloadingTls } from "../trust/server-tls.ts";
import { ArtifactFiles } from "./artifacts/artifact-files.ts";
import { createArtifactHandlers } from "./artifacts/artifacts.ts";
import { depotOf } from "./artifacts/depot.ts";
import { StagedArtifacts } from "./artifacts/staged-artifacts.ts";
import { startSweeping } from "./artifacts/sweeping.ts";
import { hashSecret } from "./auth/credentials.ts";
import { startNotingUses } from "./auth/key-uses.ts";
import { createReaders } from "./auth/may-read.ts";
import { OwnerCredential } from "./auth/owner.ts";
import type { RateLimits } from "./auth/rate-limit.ts";
import { aloneIn, type Cluster, createClusterHandlers } from "./cluster/cluster.ts";
import { type Config, NoKeys } from "./config/config.ts";
import { version } from "./config/version.ts";
import { createPage } from "./dashboard/page.ts";
import { createSessionHandlers } from "./dashboard/sessions.ts";
import { createEventStreams } from "./events/sse.ts";
import { Connections } from "./http/connections.ts";
import { createGate } from "./http/edge.ts";
import type { HandOver } from "./http/hand-over.ts";
import { createHttp, type Elsewhere } from "./http/http.ts";
import { createEdges } from "./http/own-routes.ts";
import { SlowReaders } from "./http/slow-readers.ts";
import { takeUpgrades } from "./http/upgrades.ts";
import { createMcp } from "./mcp/routes.ts";
import { createBackup } from "./operating/backup.ts";
import { createMetrics, type Metrics } from "./operating/metrics.ts";
import { startPruning } from "./operating/pruning.ts";
import { findTracing } from "./operating/tracing.ts";
import { createService, type Place } from "./service.ts";
import type { RunningServer } from "./start.ts";
import { createStreamServer } from "./stream/stream.ts";

export async function composeServer(
  engine: Engine,
  config: Omit<Config, "store"> & {
    readonly log: EngineLog;
    readonly tlsReloadMs?: number;
    /** Absent: beside the rest. Servers that share data share this folder too. */
    readonly artifactsFolder?: string;
    readonly isInMemory?: boolean;
  },
  /** For artifacts, and where a backup is put together; with a store on disk, its data. */
  folder: string,
  closed: () => void = () => undefined,
  /** What listens in its place, and hands its connections over; null: it listens itself. */
  front: ServerFront | null = null,
): Promise<RunningServer> {
  const { host, port, log, requestTimeoutMs, tlsCa: ca, artifactsFolder = folder } = config;
  const { tlsCert: cert, tlsKey: key, tlsReloadMs, behindProxy } = config;
  // What hands connections over has ended TLS.
  const tls = front !== null || cert === null || key === null ? null : new ReloadingTls({ cert, key, ca }, log);
  const shard = front?.place ?? null;
  // The secret is another one after a restore, and then no older token is good (S6).
  const masterKeys = MasterKeys.open(folder, engine.now(), hashSecret(engine.secret));
  const owner = config.ownerOnly ? new OwnerCredential(shard?.sessionSecret() ?? engine.secret) : null;
  const artifactFiles = front?.artifacts ?? openArtifacts(artifactsFolder, config);
  const service = createService(
    engine,
    { ...ratesOf(config), agentTokenMs: config.agentTokenMs },
    masterKeys,
    log,
    artifactFiles,
    owner,
    shard,
  );
  // Behind a proxy everybody comes from this machine, or from the proxy's (M6).
  const onLoopback = isLoopback(host) && behindProxy.length === 0;
  if (!onLoopback && service.keys.isEmpty) {
    throw new NoKeys(isLoopback(host) ? "a proxy lets others in" : `${host} is not loopback`);
  }

  const cluster = front?.cluster ?? (await ownCluster());
  const gate = createGate({ ...config, handOver: front?.handOver ?? null });
  const readers = createReaders(service, onLoopback);
  const connections = new Connections(service.uses, config);
  const elsewhere = front?.elsewhere?.(connections) ?? null;
  const slowReaders = new SlowReaders(connections, service.uses, service.counts, config);
  service.uses.unreadOf = (tenant) => slowReaders.unread(tenant);
  const { signOfLifeMs } = config;
  const eventStreams = createEventStreams(service, { ...readers, signOfLifeMs, connections, slowReaders });
  const streams = createStreamServer(service, readers, slowReaders);
  const counts = {
    connections: () => connections.size,
    eventStreams: () => eventStreams.size,
    streamConnections: () => streams.connections,
    term: cluster,
  };
  service.tracing = await findTracing(version);
  const ownMetrics = createMetrics(service, counts, version);
  const metrics = front?.metrics?.(ownMetrics) ?? ownMetrics;
  const staged = new StagedArtifacts(join(artifactsFolder, "staged"), artifactFiles, config.artifactBytesMax);
  const mcp = createMcp({
    service,
    depotFor: (callerFor) => depotOf(service, staged, callerFor),
    isLoopback: onLoopback,
    version,
    addressOf: gate.addressOf,
    claim: (socket, caller) => {
      const connection = connections.open.get(socket);
      return connection?.owner === null ? connections.claim(connection, caller) : null;
    },
  });
  const { app, server } = createHttp({
    service,
    gate,
    connections,
    mcp: mcp.handle,
    isLoopback: onLoopback,
    edges: createEdges({
      service,
      metrics,
      version,
      events: eventStreams.open,
      backup: createBackup(service, gate, folder),
      cluster: createClusterHandlers(service, gate, cluster),
      artifacts: createArtifactHandlers(service, readers),
      sessions: createSessionHandlers({ service, gate, isLoopback: onLoopback, version }),
      page: createPage(version),
    }),
    tls: tls?.options ?? null,
    elsewhere,
    server: { ...parserOptions, requestTimeout: requestTimeoutMs, headersTimeout: Math.min(requestTimeoutMs, 10_000) },
    log,
  });
  connections.watch(server);
  const stopLooking = takeUpgrades(server, {
    service,
    gate,
    connections,
    isLoopback: onLoopback,
    streams,
    cells: service.cells,
    isStillKnown: readers.isStillKnown,
    elsewhere,
    lookEveryMs: config.signOfLifeMs,
    cellCertificate: ca === null ? "none" : config.tlsCellNames ? "named" : "any",
  });
  if (tls !== null && "setSecureContext" in server) {
    // S5: a credential that is shown is checked, a certificate too.
    server.on("secureConnection", (socket) => {
      if (ca !== null && !socket.authorized && socket.getPeerX509Certificate() !== undefined) socket.destroy();
    });
    tls.watch(server, tlsReloadMs);
  }
  await app.ready();
  if (front === null) await listen(server, port, host);
  else front.hand(server);
  server.on("error", (fault) => log.error({ err: fault }, "a connection could not be taken"));
  const place = front?.origin ?? originOf(server, tls === null ? "http" : "https");
  const address = front?.address ?? addressOf(server, host, tls === null ? "http" : "https");
  if (owner !== null) owner.publish(place);
  // Left by a crash; its token is good nowhere, and clients would miss the server that it names.
  else if (isLoopback(host)) removeOwner(place, process.env);
  const stopPruning = startPruning(engine, config, log);
  const stopSweeping = startSweeping(artifactFiles, staged, config, log);
  const keyUses = startNotingUses(service);
  const stopWatchingHeap = v8Heap.watch();
  v8Heap.stopPretenuring();

  let closing: Promise<void> | null = null;
  const running: RunningServer = {
    address,
    service,
    connections: () => connections.size,
    abort() {
      connections.destroyAll();
      return running.close();
    },
    close() {
      service.isClosing = true;
      mcp.close().catch((fault: unknown) => log.error({ err: fault }, "MCP could not be ended in order"));
      closing ??= shutDown().finally(() => {
        stopPruning();
        stopSweeping();
        stopWatchingHeap();
        stopLooking();
        if (tls !== null && "setSecureContext" in server) tls.unwatch(server);
        owner?.withdraw();
        slowReaders.close();
        metrics.close();
        closed();
      });
      return closing;
    },
  };
  return running;

  async function ownCluster(): Promise<Cluster> {
    const { epoch = 0 } = (await engine.store.watch()) ?? {};
    const known = { store: config.isInMemory ? "memory" : "sqlite", epoch, since: engine.now() } as const;
    return aloneIn(known, { url: () => running.address.url, version, now: engine.now });
  }

  /**
   * In order: nobody new comes in, what is held is answered with how things stand, streams end, what is under way is
   * committed and answered, and then the data is let go. At the deadline connections that are still open are closed.
   */
  async function shutDown(): Promise<void> {
    front?.hand(null);
    const allGone = front === null ? new Promise<void>((resolve) => server.close(() => resolve())) : connections.gone();
    service.requests.wakeAll(true);
    service.polls.wakeAll();
    eventStreams.close();
    streams.close();
    service.cells.close();
    const idle = setInterval(() => server.closeIdleConnections(), idleCheckMs);
    const deadline = setTimeout(() => connections.destroyAll(), config.shutdownTimeoutMs);
    await allGone;
    clearInterval(idle);
    clearTimeout(deadline);
    await keyUses.stop();
    await engine.close();
  }
}

/** A listener that outlives this server: connections are handed over, or go elsewhere. */
export interface ServerFront {
  readonly address: RunningServer["address"];
  readonly origin: string;
  readonly cluster: Cluster;
  readonly handOver: HandOver;
  /** Absent: there is one shard. */
  readonly place?: Place;
  readonly elsewhere?: (connections: Connections) => Elsewhere;
  /** The same for all shards of a server, which count them together. */
  readonly artifacts?: ArtifactFiles;
  readonly metrics?: (own: Metrics) => Metrics;
  hand(server: HttpServer | SecureServer | null): void;
}

/** `isShared`: others work in the folder too. */
export function openArtifacts(
  folder: string,
  { artifactBytesMax, artifactsTotalBytesMax }: Pick<Config, "artifactBytesMax" | "artifactsTotalBytesMax">,
  isShared = false,
): ArtifactFiles {
  const limits = { bytesMax: artifactBytesMax, totalBytesMax: artifactsTotalBytesMax, isShared };
  return new ArtifactFiles(join(folder, "artifacts"), limits);
}

function ratesOf({ rateLimit, rateBurst, tenantRateLimit, authFailureLimit }: Omit<Config, "store">): RateLimits {
  const limitOf = (perSecond: number, burst: number) => (perSecond === 0 ? null : { perSecond, burst });
  return {
    credential: limitOf(rateLimit, rateBurst),
    tenant: limitOf(tenantRateLimit, Math.max(2 * tenantRateLimit, rateBurst)),
    failures: limitOf(authFailureLimit, failuresBurst * authFailureLimit),
  };
}

/** Seconds of failed logins that may come at once. */
const failuresBurst = 10;

/** During a shutdown, how often connections are closed that have become idle meanwhile. */
const idleCheckMs = 20;

/** What the parser takes, and for how long. A repeated header is joined, so that no second one goes unseen. */
export const parserOptions = {
  maxHeaderSize: 16_384,
  requireHostHeader: false,
  joinDuplicateHeaders: true,
  /** Longer than proxies and clients keep a connection, so that it is mostly they who close it. */
  keepAliveTimeout: 75_000,
  connectionsCheckingInterval: 1_000,
  /** Finds peers that are gone without a word, so that their streams and held answers end. */
  keepAlive: true,
  keepAliveInitialDelay: 60_000,
  // Everything else that asks for another protocol is answered in this one.
  shouldUpgradeCallback: ({ headers, method }: IncomingMessage) =>
    method === "GET" && headers.upgrade?.toLowerCase() === "websocket",
};

function listen(server: Server, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, () => {
      server.off("error", reject);
      resolve();
    });
  });
}

function addressOf(server: Server, host: string, scheme: string): RunningServer["address"] {
  const { port } = server.address() as AddressInfo;
  return { host, port, url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

/** By the address that it listens on, whatever name it was given. */
function originOf(server: Server, scheme: string): string {
  const { address, port, family } = server.address() as AddressInfo;
  return new URL(`${scheme}://${family === "IPv6" ? `[${address}]` : address}:${port}`).origin;
}
