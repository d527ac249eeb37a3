/** Sends malformed requests to a server and to a gateway, and judges what comes back and what gets through. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { type ByteKind, byteKinds, makeCase, type Prey } from "./byte-cases.ts";
import type { Blocked, Ready, Renewed, Target } from "./byte-target.ts";
import { chanceFrom } from "./token-forgeries.ts";

export interface Attack {
  readonly target: Target;
  readonly count: number;
  readonly seed: number;
  /** Until this many were sent, the loop's delays are those of code that runs for the first time. */
  readonly warmUps?: number;
  readonly progress?: (sent: number) => void;
}

export interface Row {
  sent: number;
  /** Answers by their class: 2 for 200 and so on; 0 for none. */
  readonly answers: Map<number, number>;
}

export interface Outcome {
  readonly rows: ReadonlyMap<ByteKind, Row>;
  readonly blockedMs: number;
  /** Each with the number of the case that showed it; the same seed makes it again. */
  readonly violations: readonly string[];
}

/** Few, so that a loop that is late was kept by one of them and not by their number. */
const linesMax = 48;
/** A connection that is silent for this long has said all it will: before an answer, and after a whole one. */
const silentMs = 200;
const quietMs = 10;
const answerMs = 15_000;
const violationsMax = 20;

export async function attack({ target, count, seed, warmUps = 1_000, progress }: Attack): Promise<Outcome> {
  const violations: string[] = [];
  const report = (text: string): void => {
    if (violations.length < violationsMax) violations.push(text);
  };
  const service = await openService((text) => report(`the service saw ${text}`));
  const child = fork(join(import.meta.dirname, "byte-target.ts"), [target, service.address]);
  let blockedMs = 0;
  let sent = 0;
  let isOver = false;
  child.on("exit", (code, signal) => {
    if (!isOver) report(`the ${target} ended with ${code ?? signal}`);
  });
  const [ready] = (await once(child, "message")) as [Ready];
  const preyWith = (authorization: string): Prey => {
    const now = { ...ready, authorization };
    return { good: target === "server" ? goodForServer(now) : goodForGateway(now), authorization };
  };
  let prey = preyWith(ready.authorization);
  child.on("message", (message: Blocked | Renewed) => {
    if ("authorization" in message) prey = preyWith(message.authorization);
    else if (sent > warmUps) blockedMs = Math.max(blockedMs, message.blockedMs);
  });
  const chance = chanceFrom(seed);
  const rows = new Map(byteKinds.map((kind) => [kind, { sent: 0, answers: new Map<number, number>() }]));
  const line = async (): Promise<void> => {
    while (sent < count && child.exitCode === null && child.signalCode === null) {
      const number = sent++;
      const { kind, bytes } = makeCase(prey, chance);
      const statuses = await exchange(ready.port, bytes);
      const row = rows.get(kind);
      if (row === undefined) continue;
      row.sent++;
      for (const status of statuses.length === 0 ? [0] : statuses) {
        const answerClass = Math.trunc(status / 100);
        row.answers.set(answerClass, (row.answers.get(answerClass) ?? 0) + 1);
        if (answerClass === 5) report(`case ${number} (${kind}) was answered ${status}: ${shown(bytes)}`);
      }
      progress?.(sent);
    }
  };
  await Promise.all(Array.from({ length: linesMax }, line));
  const alive = await exchange(ready.port, latin(prey.good[0] ?? ""));
  if (alive[0] !== 200) report(`a good request was answered ${alive[0] ?? "not at all"} afterwards`);
  isOver = true;
  await end(child);
  service.close();
  return { rows, blockedMs, violations };
}

function latin(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function shown(bytes: Buffer): string {
  return JSON.stringify(bytes.toString("latin1").slice(0, 400));
}

/** The first one is answered 200. */
function goodForServer({ authorization, lease }: Ready): readonly string[] {
  const head = ["Host: localhost", authorization];
  const get = (path: string) => [`GET ${path} HTTP/1.1`, ...head, "", ""].join("\r\n");
  const send = (method: string, path: string, body: object) => {
    const text = JSON.stringify(body);
    const of = [
      `${method} ${path} HTTP/1.1`,
      ...head,
      "Content-Type: application/json",
      `Content-Length: ${text.length}`,
    ];
    return [...of, "", text].join("\r\n");
  };
  const digest = { checkpoint_id: "c", resume_point: "p", context: { a: [1, "b", null] } };
  const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "list_leases", arguments: {} } };
  return [
    get(`/v1/leases/${lease}`),
    get("/v1/leases?limit=5&resource=FILE:/kept"),
    get("/v1/events?follow=false&since=0"),
    get("/v1/agents/kept"),
    send("POST", "/v1/acquire", { agent_id: "kept", intents: [{ predicate: "MUTATES", resource: "FILE:/kept" }] }),
    send("POST", `/v1/leases/${lease}/heartbeat`, { activity: true }),
    send("PUT", "/v1/agents/kept/digest", digest),
    send("POST", "/mcp", call),
    send("POST", "/mcp/legivellum", call),
    send("POST", "/v1/nowhere", { a: 1 }),
  ];
}

function goodForGateway({ authorization }: Ready): readonly string[] {
  const get = (path: string, ...more: readonly string[]) =>
    [`GET ${path} HTTP/1.1`, "Host: localhost", authorization, ...more, "", ""].join("\r\n");
  return [
    get("/public/a"),
    get("/public/b?x=1", "Accept: */*", "Range: bytes=0-5"),
    get("/public/c", `Leasehold-Token: ${authorization.slice("Authorization: Bearer ".length)}`),
    get("/public/d", "Connection: keep-alive", "X-Forwarded-For: 1.2.3.4"),
    `HEAD ${get("/public/e").slice("GET ".length)}`,
  ];
}

/** Behind the gateway: only reads below /public in the name of the lease may come here, whatever was sent. */
async function openService(saw: (text: string) => void) {
  const server = createServer((request, response) => {
    const fault = faultOf(request);
    if (fault !== null)
      saw(`${fault}: ${request.method} ${request.url} ${JSON.stringify(request.headers).slice(0, 300)}`);
    request.resume();
    response.end("fine");
  });
  server.on("upgrade", (request, socket) => {
    const fault = faultOf(request);
    if (fault !== null) saw(`an upgrade, ${fault}: ${request.url}`);
    socket.end("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
  });
  server.on("connect", (_request, socket) => {
    saw("CONNECT");
    socket.destroy();
  });
  server.on("clientError", (error: Error & { readonly code?: string }, socket) => {
    if (error.code !== "ECONNRESET" && error.code !== "EPIPE") saw(`bytes that are not a request: ${error.code}`);
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

function faultOf({ method = "", url = "", headers }: IncomingMessage): string | null {
  if (!["GET", "HEAD", "OPTIONS"].includes(method)) return "a method that the token does not allow";
  if (url !== "/public" && !/^\/public[/?]/.test(url)) return "a path that the token does not allow";
  if (headers["leasehold-tenant"] !== "acme" || headers["leasehold-lease"] !== "lse_prey") return "a forged lease";
  return headers["leasehold-fence"] === "7" ? null : "a forged fence";
}

/** The statuses of all answers. */
function exchange(port: number, bytes: Buffer): Promise<readonly number[]> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    let received = "";
    const finish = (): void => {
      clearTimeout(timer);
      clearTimeout(quiet);
      socket.destroy();
      resolve([...received.matchAll(/(?:^|\r\n|[}\n])HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status)));
    };
    const timer = setTimeout(finish, answerMs);
    // What is not a whole request is ended then, and answered or closed.
    let quiet = setTimeout(() => socket.end(), silentMs);
    socket.on("connect", () => socket.write(bytes));
    socket.setEncoding("latin1").on("data", (chunk: string) => {
      received = (received + chunk).slice(0, 100_000);
      clearTimeout(quiet);
      quiet = setTimeout(finish, received.includes("\r\n\r\n") ? quietMs : silentMs);
    });
    socket.on("error", finish);
    socket.on("close", finish);
  });
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.disconnect();
  await once(child, "exit");
}
