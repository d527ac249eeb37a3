/** The whole server in one process: store, engine, and the edges around them. Started by main.ts, by tests and others. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../engine/engine.ts";
import type { EngineLog } from "../engine/engine-types.ts";
import { openLedgerKey } from "../ledger/key-file.ts";
import { eventText } from "../protocol/watching/event-json.ts";
import { createMemoryStore } from "../store/memory.ts";
import { createSqliteStore } from "../store/sqlite.ts";
import type { Store } from "../store/store.ts";
import { type Config, checkPlaces, loadConfig } from "./config/config.ts";
import { removeLeftovers } from "./operating/backup.ts";
import type { Service } from "./service.ts";

export interface ServerOptions extends Partial<Omit<Config, "store">> {
  /** A store of the caller's own is closed with the server. */
  readonly store?: Config["store"] | Store;
  readonly log?: EngineLog;
  /** How far the wall clock may have jumped ahead where leases are alive (L7). */
  readonly clockJumpMsMax?: number;
  /** How often TLS files are looked at for a change. */
  readonly tlsReloadMs?: number;
}

export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number; readonly url: string };
  readonly service: Service;
  /** How many are open. */
  connections(): number;
  /** No new work; what is under way is committed and answered. */
  close(): Promise<void>;
  /** Nothing more is answered. */
  abort(): Promise<void>;
}

const silent: EngineLog = { info: () => undefined, warn: () => undefined, error: () => undefined };
const usual = loadConfig({}, {});

export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const config = { ...usual, ...options };
  const { data, store, log = silent } = config;
  checkPlaces(config);
  if (typeof store === "string" && store.startsWith("postgres")) {
    const { startClusterServer } = await import("./cluster/start-cluster.ts");
    return await startClusterServer({ ...config, store, log });
  }
  const engine = new Engine({
    store: openStore(store, data),
    encodeEvent: eventText,
    log,
    ...(options.clockJumpMsMax !== undefined && { clockJumpMsMax: options.clockJumpMsMax }),
    ...(store === "sqlite" && { ledgerKey: () => openLedgerKey(data) }),
  });
  // The edges are many files to read, and the store's thread has enough to do meanwhile.
  const [{ composeServer }] = await Promise.all([import("./compose.ts"), engine.start()]);
  try {
    // Not before the data is ours: another server may be at work on it.
    if (store === "sqlite") await removeLeftovers(data);
    if (store === "sqlite") return await composeServer(engine, { ...config, log }, data);
    const folder = mkdtempSync(join(tmpdir(), "leasehold-"));
    return await composeServer(engine, { ...config, log, isInMemory: true }, folder, () =>
      rmSync(folder, { recursive: true, force: true }),
    );
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function openStore(store: Config["store"] | Store, data: string): Store {
  if (store === "sqlite") return createSqliteStore(data);
  return typeof store === "string" ? createMemoryStore() : store;
}
