/**
 * The processes of `bench/gateway.ts`: the service, a plain proxy, the cell, the load, and the watcher that holds a
 * thousand connections open. Each prints one line when it is ready.
 */
import { once } from "node:events";
import { Agent, request as ask, createServer, type Server } from "node:http";
import {
  type AddressInfo,
  connect,
  createServer as createTcpServer,
  type Socket,
  type Server as TcpServer,
} from "node:net";
import { createInterface } from "node:readline";
import type { CellLease } from "../src/cell/binding.ts";
import { readCellConfig } from "../src/cell/config.ts";
import { CellCore } from "../src/cell/core.ts";
import { CellKeys } from "../src/token/node/cell-keys.ts";
import { percentile } from "./children.ts";

const [part = "", ...args] = process.argv.slice(2);
const parts: Readonly<Record<string, () => Promise<void>>> = { service, plain, cell, load, watch };
await parts[part]?.();

function now(): number {
  return performance.timeOrigin + performance.now();
}

function say(value: object): void {
  console.log(JSON.stringify(value));
}

async function portOf(server: Server | TcpServer): Promise<number> {
  server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 });
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A small response to every request; on /stream and on TCP connections, the time, repeatedly. */
async function service(): Promise<void> {
  const everyMs = 50;
  const listeners = new Set<{ write(text: string): unknown }>();
  const follow = (one: NodeJS.WritableStream): void => {
    listeners.add(one);
    one.on("close", () => listeners.delete(one));
    one.on("error", () => listeners.delete(one));
  };
  setInterval(() => {
    for (const one of listeners) one.write(`${now().toFixed(3)}\n`);
  }, everyMs);
  const body = JSON.stringify({ answer: "x".repeat(200) });
  const http = createServer((request, response) => {
    if (request.url === "/stream") return follow(response.writeHead(200));
    request.resume();
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length }).end(body);
  });
  const tcp = createTcpServer(follow);
  say({ http: await portOf(http), tcp: await portOf(tcp) });
}

/** The same path without checks, counters or cuts. */
async function plain(): Promise<void> {
  const port = Number(args[0]);
  const agent = new Agent({ keepAlive: true, maxFreeSockets: 256 });
  const server = createServer((request, response) => {
    const { method, url, headers } = request;
    const question = ask({ agent, port, host: "127.0.0.1", method, path: url, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(response);
    });
    question.on("error", () => response.destroy());
    request.pipe(question);
  });
  say({ http: await portOf(server) });
}

/** `bind` binds; `end` revokes; `expire` renews for so short a time that the cell's own clock ends it. */
async function cell(): Promise<void> {
  const [http, tcp] = args.map(Number);
  const resources = [
    { resource: "API:/a", driver: "http", options: { target: `http://127.0.0.1:${http}` } },
    { resource: "TCP:/a", driver: "tcp", options: { target: `127.0.0.1:${tcp}` } },
  ];
  const keys = new CellKeys("bench", [{ id: "k", key: new Uint8Array(32), retiresAt: null }]);
  const core = new CellCore(readCellConfig(JSON.stringify({ cell: "bench", resources }), "bench.json"), keys);
  await core.start();
  say({});
  let leases: readonly CellLease[] = [];
  let fence = 0;
  const issue = (resource: string, id: string, generation: number, ttlMs: number): CellLease => {
    fence++;
    const whose = { tenant: "t", id, resource, predicate: "MUTATES", holder: "a" } as const;
    return { ...whose, generation, fence, units: 1, expiresAt: Date.now() + ttlMs };
  };
  for await (const line of createInterface({ input: process.stdin })) {
    switch (line) {
      case "bind": {
        leases = resources.map(({ resource }, at) => issue(resource, `lease-${fence}-${at}`, 1, 300_000));
        say({ bound: await Promise.all(leases.map((lease) => core.bind(lease))) });
        break;
      }
      case "expire": {
        const last = leases.map(({ resource, id }) => issue(resource, id, 2, 1_000));
        const end = Math.max(...last.map(({ expiresAt }) => expiresAt));
        await Promise.all(last.map((lease) => core.renew({ ...lease, expiresAt: end })));
        say({ at: end });
        break;
      }
      case "end": {
        const at = now();
        await Promise.all(leases.map(({ id }) => core.teardown(id)));
        say({ at });
        break;
      }
    }
  }
}

/** Requests over this many keep-alive connections for this long; returns the rate. */
async function load(): Promise<void> {
  const [port, connections, seconds] = args.map(Number);
  const head = `GET / HTTP/1.1\r\nHost: x\r\n${args[3] === undefined ? "" : `Authorization: Bearer ${args[3]}\r\n`}\r\n`;
  let answered = 0;
  let failed = 0;
  const talk = async (): Promise<Socket> => {
    const socket = connect(port ?? 0, "127.0.0.1").setNoDelay(true);
    await once(socket, "connect");
    let held = "";
    socket.on("data", (chunk) => {
      held += chunk.toString("latin1");
      const bodyAt = held.indexOf("\r\n\r\n") + 4;
      const length = Number(/content-length: (\d+)/i.exec(held)?.[1]);
      if (bodyAt < 4 || held.length < bodyAt + length) return;
      if (!held.startsWith("HTTP/1.1 200")) failed++;
      held = "";
      answered++;
      socket.write(head);
    });
    socket.write(head);
    return socket;
  };
  const sockets = await Promise.all(Array.from({ length: connections ?? 1 }, talk));
  const [from, start] = [answered, performance.now()];
  await new Promise((resolve) => setTimeout(resolve, (seconds ?? 1) * 1_000));
  say({ rate: ((answered - from) * 1_000) / (performance.now() - start), answered, failed });
  for (const socket of sockets) socket.destroy();
  process.exit(0);
}

interface Watched {
  lastAt: number;
  lastSent: number;
  cutAt: number | null;
}

/**
 * Opens the connections, prints a line, and watches them until all are cut. The service puts the time into what it
 * sends, so what passed after the end is known however late this process reads it.
 */
async function watch(): Promise<void> {
  const [httpPort = 0, tcpPort = 0, count = 0] = args.map(Number);
  const [, , , httpToken = "", tcpToken = ""] = args;
  const watched: Watched[] = [];
  let failedAt: number | null = null;
  let bytesAfterFailure = 0;
  let code = "";
  const question = `GET /stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${httpToken}\r\n\r\n`;
  const askAgain = (): void => {
    if (failedAt !== null) return;
    failedAt = Number.POSITIVE_INFINITY;
    const socket = connect(httpPort, "127.0.0.1", () => socket.write(question));
    socket.on("data", (chunk) => {
      failedAt = now();
      code = /"error":"(\w+)"/.exec(String(chunk))?.[1] ?? "";
      socket.destroy();
    });
  };
  const open = async (port: number, first: string): Promise<void> => {
    const one: Watched = { lastAt: 0, lastSent: 0, cutAt: null };
    watched.push(one);
    const socket = connect(port, "127.0.0.1", () => socket.write(first));
    socket.on("data", (chunk) => {
      one.lastAt = now();
      if (failedAt !== null && one.lastAt > failedAt) bytesAfterFailure += chunk.length;
      for (const [stamp] of String(chunk).matchAll(/\d{13}\.\d{3}/g))
        one.lastSent = Math.max(one.lastSent, Number(stamp));
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      one.cutAt = now();
      askAgain();
    });
    await once(socket, "data");
  };
  for (let opened = 0; opened < count; opened += 50) {
    await Promise.all(
      Array.from({ length: Math.min(50, count - opened) }, (_, at) =>
        at % 2 === 0 ? open(httpPort, question) : open(tcpPort, `${tcpToken}\n`),
      ),
    );
  }
  say({});
  while (watched.some(({ cutAt }) => cutAt === null) || code === "")
    await new Promise((resolve) => setTimeout(resolve, 5));
  await new Promise((resolve) => setTimeout(resolve, 300));
  for await (const line of createInterface({ input: process.stdin })) {
    const end = Number(line);
    const sorted = (values: readonly number[]): readonly number[] => [...values].sort((a, b) => a - b);
    const late = sorted(watched.map(({ lastAt }) => Math.max(0, lastAt - end)));
    const cuts = sorted(watched.map(({ cutAt }) => (cutAt ?? Number.NaN) - end));
    say({
      lastByte: { p50: percentile(late, 0.5), p99: percentile(late, 0.99), max: late.at(-1) },
      cut: { p50: percentile(cuts, 0.5), p99: percentile(cuts, 0.99), max: cuts.at(-1) },
      passedAfterEnd: watched.filter(({ lastSent }) => lastSent > end).length,
      bytesAfterFailure,
      code,
    });
    process.exit(0);
  }
}
