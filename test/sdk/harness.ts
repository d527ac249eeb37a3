/** A server in this process, a connection to it that can be cut, and SDK clients. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { resetSocket } from "../../src/cell/reset-socket.ts";
import { type Client, type ClientOptions, createClient } from "../../src/sdk/client.ts";
import type { LeaseholdError } from "../../src/sdk/errors.ts";
import { LeaseholdError as ErrorClass } from "../../src/sdk/errors.ts";
import { type RunningServer, type ServerOptions, startServer } from "../../src/server/start.ts";

export { pause, until } from "../server/harness.ts";

export async function serve(t: TestContext, options: ServerOptions = {}): Promise<RunningServer> {
  const server = await startServer({ port: 0, store: "memory", shutdownTimeoutMs: 500, ...options });
  t.after(() => server.close());
  return server;
}

export function clientFor(t: TestContext, url: string, options: ClientOptions = {}): Client {
  const client = createClient({ url, ...options });
  t.after(() => client.close());
  return client;
}

export interface Proxy {
  readonly url: string;
  /** Resets all open connections. */
  cut(): void;
  /** Nothing goes through, and nobody is notified: a partition. */
  hush(): void;
  /** Requests pass, their replies do not, and then the connections are reset. */
  loseAnswers(count: number): void;
  heal(): void;
  /** New connections pass; old ones stay silent for ever, as after a real partition. */
  healNew(): void;
  readonly connections: number;
}

/** A TCP proxy between client and server. */
export async function proxyTo(t: TestContext, { address }: RunningServer): Promise<Proxy> {
  const pairs = new Set<readonly [Socket, Socket]>();
  const dead = new Set<Socket>();
  let isHushed = false;
  let toLose = 0;
  const server = createServer((near) => {
    const far = connect(address.port, address.host);
    const pair = [near, far] as const;
    pairs.add(pair);
    near.on("data", (data) => {
      if (!isHushed && !dead.has(near)) far.write(data);
    });
    far.on("data", (data) => {
      if (isHushed || dead.has(near)) return;
      if (toLose > 0) {
        toLose--;
        resetSocket(near);
        far.destroy();
        return;
      }
      near.write(data);
    });
    for (const socket of pair) {
      socket.on("error", () => undefined);
      socket.on("close", () => {
        pairs.delete(pair);
        if (!isHushed) for (const one of pair) one.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const destroyAll = (): void => {
    for (const [near, far] of pairs) {
      resetSocket(near);
      far.destroy();
    }
  };
  t.after(() => {
    destroyAll();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${port}`,
    cut: destroyAll,
    hush: () => {
      isHushed = true;
    },
    loseAnswers: (count) => {
      toLose = count;
    },
    heal: () => {
      isHushed = false;
      destroyAll();
    },
    healNew: () => {
      isHushed = false;
      for (const [near] of pairs) dead.add(near);
    },
    get connections() {
      return pairs.size;
    },
  };
}

/** Assertions on `code` are easier to read than on classes. */
export function withCode(code: LeaseholdError["code"]): (error: unknown) => boolean {
  return (error) => {
    if (error instanceof ErrorClass && error.code === code) return true;
    throw error;
  };
}

/** Rejects when the signal aborts, and never settles otherwise. */
export function untilAborted(signal: AbortSignal): Promise<never> {
  return new Promise((_resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
