/** The whole server in one process: store, engine, and the edges around them. Started by main.ts, and by tests. */
import type { AddressInfo } from "node:net";
import { Engine, type EngineLog } from "../engine/engine.ts";
import { eventText } from "../protocol/event-json.ts";
import { createMemoryStore } from "../store/memory.ts";
import { createSqliteStore } from "../store/sqlite.ts";
import type { Store } from "../store/store.ts";
import { createGate, isLoopback } from "./gate.ts";
import { createHttp } from "./http.ts";
import { sendAnswer } from "./send.ts";
import { createService } from "./service.ts";
import { answer } from "../protocol/answer.ts";

export interface ServerOptions {
  readonly host?: string;
  readonly port?: number;
  readonly store?: "sqlite" | "memory" | Store;
  readonly data?: string;
  readonly log?: EngineLog;
}

export interface RunningServer {
  readonly address: { readonly host: string; readonly port: number; readonly url: string };
  close(): Promise<void>;
}

const silent: EngineLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

export async function startServer(options: ServerOptions = {}): Promise<RunningServer> {
  const { host = "127.0.0.1", port = 7117, store = "sqlite", data = "./data", log = silent } = options;
  const engine = new Engine({
    store: store === "sqlite" ? createSqliteStore(data) : store === "memory" ? createMemoryStore() : store,
    encodeEvent: eventText,
    log,
  });
  await engine.start();
  const service = createService(engine, null);
  let isClosing = false;
  const ok = (_request: unknown, reply: { raw: Parameters<typeof sendAnswer>[0] }) => sendAnswer(reply.raw, answer(200, '{"status":"ok"}'));
  const { app, server } = createHttp({
    service,
    gate: createGate({ host, allowedHosts: [], allowedOrigins: [] }),
    isLoopback: isLoopback(host),
    edges: { events: ok, stream: ok, healthz: ok, readyz: ok, metrics: ok, openapi: ok },
    server: { requireHostHeader: false, joinDuplicateHeaders: true },
    log,
    isClosing: () => isClosing,
  });
  await app.ready();
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  const { port: actual } = server.address() as AddressInfo;
  return {
    address: { host, port: actual, url: `http://${host}:${actual}` },
    async close() {
      isClosing = true;
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      await engine.close();
    },
  };
}
