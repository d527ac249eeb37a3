/** The whole server in one process: store, engine, and the edges around them. Started by main.ts, by tests and others. */
import { Engine, type EngineLog } from "../engine/engine.ts";
import { eventText } from "../protocol/event-json.ts";
import { createMemoryStore } from "../store/memory.ts";
import { createSqliteStore } from "../store/sqlite.ts";
import type { Store } from "../store/store.ts";
import { type Config, loadConfig } from "./config.ts";
import type { Service } from "./service.ts";

export interface ServerOptions extends Partial<Omit<Config, "store">> {
  /** A store of the caller's own is closed with the server. */
  readonly store?: Config["store"] | Store;
  readonly log?: EngineLog;
}

export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number; readonly url: string };
  readonly service: Service;
  /** No new work; what is under way is committed and answered. */
  close(): Promise<void>;
}

const silent: EngineLog = { info: () => undefined, warn: () => undefined, error: () => undefined };
const usual = loadConfig({}, {});

export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const config = { ...usual, ...options };
  const { data, store, log = silent } = config;
  const engine = new Engine({ store: openStore(store, data), encodeEvent: eventText, log });
  // The edges are many files to read, and the store's thread has enough to do meanwhile.
  const [{ serve }] = await Promise.all([import("./serving.ts"), engine.start()]);
  try {
    return await serve(engine, { ...config, log }, store === "sqlite" ? data : null);
  } catch (error) {
    await engine.close();
    throw error;
  }
}

function openStore(store: Config["store"] | Store, data: string): Store {
  if (store === "sqlite") return createSqliteStore(data);
  return store === "memory" ? createMemoryStore() : store;
}
