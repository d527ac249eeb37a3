/** Real services behind cells, which record every use: HTTP, TCP, UDP, and a program that runs under a lease. */
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, createServer as createTcp, type Socket } from "node:net";
import { join } from "node:path";
import { readProcess } from "../src/cell/processes.ts";
import type { CellChecker } from "./cell-checker.ts";
import { sendDatagrams, sendRequests, type Use, writeLines } from "./cell-users.ts";

export interface Service {
  readonly resource: string;
  readonly entry: object;
  /** What a holder does with it: all the time, and on after its lease's end until it is stopped. */
  use(use: Use): Promise<void>;
  /** Leases that use the service at this moment. */
  inside(): ReadonlySet<string>;
  /** Reads what the program recorded. */
  collect(): void;
  close(): void;
}

export async function httpService(cell: string, checker: CellChecker): Promise<Service> {
  const resource = `API:/torture/${cell}`;
  const streams = new Set<string>();
  const server = createHttp((request, response) => {
    const lease = String(request.headers["leasehold-lease"]);
    checker.did({ kind: "http", resource, lease, at: Date.now() });
    if (request.url !== "/stream") return void response.end("done");
    const timer = setInterval(() => response.write("more\n"), 20);
    streams.add(lease);
    response.on("close", () => {
      clearInterval(timer);
      streams.delete(lease);
    });
  });
  const port = await listen(server);
  return {
    resource,
    use: sendRequests,
    entry: { resource, driver: "http", options: { target: `http://127.0.0.1:${port}` } },
    inside: () => streams,
    collect: () => {},
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

export async function tcpService(cell: string, checker: CellChecker): Promise<Service> {
  const resource = `DB:/torture/${cell}`;
  const sockets = new Map<Socket, string>();
  const server = createTcp((socket) => {
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    // Holders write their lease's id on every line.
    socket.on("data", (chunk) => {
      const [, lease] = /(?:^|\n)(\S+)\n/.exec(String(chunk)) ?? [];
      if (lease === undefined) return;
      sockets.set(socket, lease);
      checker.did({ kind: "tcp", resource, lease, at: Date.now() });
    });
  });
  const port = await listen(server);
  return {
    resource,
    use: writeLines,
    entry: { resource, driver: "tcp", options: { target: `127.0.0.1:${port}` } },
    inside: () => new Set(sockets.values()),
    collect: () => {},
    close: () => {
      server.close();
      for (const socket of sockets.keys()) socket.destroy();
    },
  };
}

/** Says everything back. Holders send their lease's id in every datagram. */
export async function udpService(cell: string, checker: CellChecker): Promise<Service> {
  const resource = `UDP:/torture/${cell}`;
  const socket = createSocket("udp4");
  socket.on("error", () => {});
  socket.on("message", (datagram, { address, port }) => {
    checker.did({ kind: "udp", resource, lease: String(datagram), at: Date.now() });
    socket.send(datagram, port, address, () => {});
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    resource,
    use: sendDatagrams,
    entry: { resource, driver: "udp", options: { target: `127.0.0.1:${socket.address().port}` } },
    // Datagrams have no connection that could be seen.
    inside: () => new Set(),
    collect: () => {},
    close: () => socket.close(),
  };
}

const program = `
const { appendFileSync } = require("node:fs");
const { LEASEHOLD_LEASE: lease } = process.env;
const say = () => appendFileSync(process.argv[1], [lease, process.pid, Date.now()].join(" ") + "\\n");
say();
setInterval(say, 25);
`;

export function processService(cell: string, folder: string, checker: CellChecker): Service {
  const resource = `BOX:/torture/${cell}`;
  const file = join(folder, `${cell}.log`);
  const command = [process.execPath, "-e", program, file];
  let read = 0;
  const pids = new Map<number, { readonly lease: string; readonly startedAt: string | null }>();
  const collect = (): void => {
    if (!existsSync(file)) return;
    const lines = readFileSync(file, "utf8").split("\n").slice(0, -1);
    for (const line of lines.slice(read)) {
      const [lease = "", pid, at] = line.split(" ");
      checker.did({ kind: "process", resource, lease, at: Number(at) });
      if (pids.get(Number(pid))?.lease === lease) continue;
      pids.set(Number(pid), { lease, startedAt: readProcess(Number(pid))?.startedAt ?? null });
    }
    read = lines.length;
  };
  return {
    resource,
    use: async () => {},
    entry: { resource, driver: "process", options: { command, grace_ms: 0 } },
    inside: () => {
      collect();
      const alive = [...pids].filter(([pid, { startedAt }]) => {
        const found = readProcess(pid);
        return found !== null && startedAt !== null && found.startedAt === startedAt;
      });
      return new Set(alive.map(([, { lease }]) => lease));
    },
    collect,
    close: () => {},
  };
}

async function listen(server: ReturnType<typeof createTcp> | ReturnType<typeof createHttp>): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}
