/** A real cell in this process, with a gateway to a small real service. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { runCell } from "../../src/cell/cell-process.ts";
import { readCellConfig } from "../../src/cell/config.ts";
import type { ClientTls } from "../../src/trust/client-tls.ts";

export interface Behind {
  readonly url: string;
  /** The open responses of `/stream`. */
  readonly streams: Set<ServerResponse>;
  /** Requests of `/hang`, which are never answered. */
  readonly hanging: Set<ServerResponse>;
}

export async function service(t: TestContext): Promise<Behind> {
  const streams = new Set<ServerResponse>();
  const hanging = new Set<ServerResponse>();
  const server = createServer(async (request, response) => {
    if (request.url === "/hang") return void hanging.add(response);
    if (request.url === "/stream") {
      streams.add(response);
      response.on("close", () => streams.delete(response));
      response.write("begun\n");
      return;
    }
    let text = "";
    for await (const chunk of request) text += String(chunk);
    const { "leasehold-fence": fence } = request.headers;
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify({ text, fence }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, streams, hanging };
}

export async function startCell(t: TestContext, url: string, target: string, names: readonly string[]): Promise<void> {
  const resources = names.map((resource) => ({ resource, driver: "http", options: { target } }));
  await startCellWith(t, url, "lab-1", resources);
}

export interface CellSecurity {
  /** Of the configuration, beside its resources. */
  readonly settings?: object;
  /** What it trusts and shows on its link. */
  readonly tls?: ClientTls | null;
}

export async function startCellWith(
  t: TestContext,
  url: string,
  cell: string,
  resources: readonly object[],
  { settings = {}, tls = null }: CellSecurity = {},
): Promise<void> {
  const config = readCellConfig(JSON.stringify({ cell, ...settings, resources }), `/${cell}.json`);
  const told = new AbortController();
  const welcomed = Promise.withResolvers<void>();
  const ended = runCell({
    config,
    url,
    contact: async () => ({ url, key: null, tls }),
    version: "0.0.0",
    log: () => undefined,
    onWelcome: () => welcomed.resolve(),
    stop: told.signal,
  });
  t.after(async () => {
    told.abort("the test is over");
    await ended;
  });
  await welcomed.promise;
}
