/** A server on PostgreSQL: it listens at once, leads when it is elected, and passes requests on to the leader otherwise. */
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../../engine/engine.ts";
import type { EngineLog } from "../../engine/engine-types.ts";
import { type CountedLease, Leadership, type Term } from "../../engine/leadership.ts";
import { openLedgerKey } from "../../ledger/key-file.ts";
import { eventText } from "../../protocol/watching/event-json.ts";
import { createPostgresStore } from "../../store/postgres.ts";
import { Database } from "../../store/postgres-connection.ts";
import type { Opened, Store } from "../../store/store.ts";
import { ReloadingTls } from "../../trust/server-tls.ts";
import { composeServer, parserOptions, type ServerFront } from "../compose.ts";
import type { Config } from "../config/config.ts";
import { version } from "../config/version.ts";
import { createGate } from "../http/edge.ts";
import { HandOver } from "../http/hand-over.ts";
import type { Service } from "../service.ts";
import type { RunningServer } from "../start.ts";
import { checkClock, checkDurability } from "./database-checks.ts";
import { Front } from "./front.ts";
import { createPassOn } from "./pass-on.ts";
import { ServerRegistry } from "./registry.ts";
import { MasterKey, SharedSecrets } from "./secrets.ts";

export interface ClusterConfig extends Config {
  readonly log: EngineLog;
  readonly tlsReloadMs?: number;
  /** The wall clock, for tests. */
  readonly wall?: () => number;
}

export interface ClusterServer extends RunningServer {
  readonly leadership: Leadership;
}

export async function startClusterServer(config: ClusterConfig): Promise<ClusterServer> {
  const { log, host } = config;
  const key = new MasterKey(config.masterKeyFile);
  const { tlsCert: cert, tlsKey, tlsCa: ca } = config;
  const tls = cert === null || tlsKey === null ? null : new ReloadingTls({ cert, key: tlsKey, ca }, log);
  const db = new Database({ url: config.store });
  const handOver = new HandOver(key.derive("passed on"));
  let leadership: Leadership | null = null;
  const passOn = createPassOn({
    leaderUrl: () => leadership?.leader?.url ?? null,
    gate: createGate(config),
    server: { ...parserOptions, requestTimeout: config.requestTimeoutMs },
    tls: tls?.options ?? null,
    ca: ca === null ? null : readFileSync(ca, "utf8"),
    handOver,
  });
  const front = await Front.listen(passOn.server, config);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-"));
  const address = addressOf(front, host, tls === null ? "http" : "https");
  const serverUrl = config.advertiseUrl ?? advertised(address);
  const server = randomUUID();
  const secrets = new SharedSecrets(db, key);
  const registry = new ServerRegistry(db, { server, url: serverUrl, version, mayLead: !config.noLead });
  let service: Service | null = null;

  const begin = async (store: Store, opened: Opened, lease: CountedLease): Promise<Term> => {
    const over = Promise.withResolvers<unknown>();
    await secrets.unpack(folder);
    const engine = new Engine({
      ...{ store, opened, encodeEvent: eventText, log, onTermOver: over.resolve, secrets: key.box("engine") },
      ledgerKey: () => openLedgerKey(folder),
    });
    await engine.start();
    lease.now = engine.now;
    let inner: Parameters<ServerFront["hand"]>[0] = null;
    const own: ServerFront = {
      address,
      handOver,
      origin: new URL(address.url).origin,
      cluster: {
        ...{ store: "postgres", server, epoch: opened.epoch, since: engine.now() },
        view: () => registry.view(),
        resign: () => leadership?.resign(),
      },
      hand: (server) => {
        inner = server;
        if (server === null) front.serving = null;
      },
    };
    const running = await composeServer(
      engine,
      { ...config, artifactsFolder: config.data },
      folder,
      () => undefined,
      own,
    );
    running.service.tokens.store = () => secrets.store(folder);
    // New keys are stored before anything that was made with them can leave.
    await secrets.store(folder).catch(async (fault: unknown) => {
      await running.abort();
      throw fault;
    });
    service = running.service;
    if (inner !== null) front.serving = { server: inner, isGood: lease.isGood };
    return { over: over.promise, now: engine.now, close: () => running.close(), abort: () => running.abort() };
  };
  const leading = new Leadership({
    createStore: () => createPostgresStore({ url: config.store, server, serverUrl, leaseMs: config.leaderLeaseMs }),
    ...{ begin, log, mayLead: !config.noLead },
  });
  leadership = leading;
  const release = async (): Promise<void> => {
    passOn.close();
    await front.close();
    await registry.close();
    await db.close();
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    // Makes or checks the schema, before anything else is asked.
    await leading.prepare();
    await checkDurability(db, config.acceptVolatile, log);
    await checkClock(db, config.wall ?? Date.now);
    await secrets.check();
    await registry.start();
    await leading.start();
  } catch (fault) {
    await leading.close();
    await release();
    throw fault;
  }
  let closing: Promise<void> | null = null;
  const close = (): Promise<void> => {
    closing ??= leading.close().then(release);
    return closing;
  };
  return {
    ...{ address, leadership: leading, close, abort: close },
    connections: () => front.size,
    get service(): Service {
      if (service === null) throw new Error("this server has not led yet");
      return service;
    },
  };
}

function addressOf(front: Front, host: string, scheme: string): RunningServer["address"] {
  const { port } = front.address;
  return { host, port, url: `${scheme}://${host.includes(":") ? `[${host}]` : host}:${port}` };
}

/** An address that means every address is not one that others can call. */
function advertised({ host, url }: RunningServer["address"]): string {
  return host === "0.0.0.0" || host === "::" ? url.replace(/\/\/(\[::\]|0\.0\.0\.0)/, `//${hostname()}`) : url;
}
