/** Attacks with sockets of their own: what is asked for and never read, what is sent byte by byte, what is subscribed to. */
import { connect, type Socket } from "node:net";
import { WebSocket } from "ws";
import { parse, type Sender, sleep } from "./tenant-requests.ts";

/** How often an attack tries to open one more. */
const openEveryMs = 50;
const socketsMax = 200;

/** Event streams from the first event on, and WebSockets with many subscriptions each. Nothing of them is read. */
export async function subscribe(sender: Sender): Promise<void> {
  const { port, key, isOver } = sender.target;
  const open = new Set<Socket>();
  const streams = new Set<WebSocket>();
  for (let count = 0; !isOver(); count++) {
    if (open.size + streams.size < socketsMax) {
      if (count % 2 === 0)
        openRaw(sender, open, `GET /v1/events?since=0 HTTP/1.1\r\n${headOf(port, key)}\r\n`, "pause");
      else openStream(sender, streams);
    }
    await sleep(openEveryMs);
  }
  for (const socket of open) socket.destroy();
  for (const stream of streams) stream.terminate();
}

function openStream(sender: Sender, open: Set<WebSocket>): void {
  const { port, key } = sender.target;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, {
    perMessageDeflate: false,
    headers: { authorization: `Bearer ${key}` },
  });
  open.add(socket);
  let answers = 0;
  socket.on("open", () => {
    for (let id = 0; id < 20; id++) {
      sender.tally.sent++;
      socket.send(JSON.stringify({ id, op: "events", input: { since: 0 } }));
    }
  });
  socket.on("message", (data) => {
    for (const reply of [JSON.parse(String(data)) as Reply | Reply[]].flat()) {
      if (reply.status === undefined) continue;
      if (reply.status < 300) sender.accept(0);
      else sender.refuse(reply.body?.error ?? "untyped");
      // From then on nothing is read.
      if (++answers === 20) socket.pause();
    }
  });
  socket.on("unexpected-response", (_request, response) => {
    let text = "";
    response.on("data", (part: Buffer) => {
      text += part.toString();
    });
    response.on("end", () => sender.refuse(parse(text)?.error ?? "untyped"));
    open.delete(socket);
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    if (open.delete(socket)) sender.refuse("closed");
  });
}

interface Reply {
  readonly status?: number;
  readonly body?: { readonly error?: string };
}

/** Pages of everything, asked for many times on each socket, and never read. */
export async function readNothing(sender: Sender): Promise<void> {
  const { port, key, isOver } = sender.target;
  const open = new Set<Socket>();
  const paths = ["/v1/tasks?limit=1000", "/v1/leases?limit=1000", "/v1/receipts?limit=1000", "/v1/events?follow=false"];
  const ask = paths.map((path) => `GET ${path} HTTP/1.1\r\n${headOf(port, key)}\r\n`).join("");
  while (!isOver()) {
    if (open.size < socketsMax) openRaw(sender, open, ask.repeat(4), "pause", paths.length * 4);
    await sleep(openEveryMs);
  }
  for (const socket of open) socket.destroy();
}

/** Heads that never end, and bodies that come byte by byte. */
export async function dribble(sender: Sender): Promise<void> {
  const { port, key, isOver } = sender.target;
  const open = new Set<Socket>();
  const head = `POST /v1/tasks HTTP/1.1\r\n${headOf(port, key)}`;
  for (let count = 0; !isOver(); count++) {
    const begun =
      count % 2 === 0 ? `${head}X-Slow: ` : `${head}Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{`;
    if (open.size < socketsMax) openRaw(sender, open, begun, "read");
    for (const socket of open) socket.write(" ");
    await sleep(openEveryMs);
  }
  for (const socket of open) socket.destroy();
}

function headOf(port: number, key: string): string {
  return `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${key}\r\n`;
}

/** An answer counts by its first bytes; one that reads nothing sees only that, and its end. */
function openRaw(sender: Sender, open: Set<Socket>, bytes: string, then: "pause" | "read", requests = 1): void {
  const socket = connect(sender.target.port, "127.0.0.1");
  let isAnswered = false;
  open.add(socket);
  sender.tally.sent += requests;
  socket.write(bytes);
  socket.on("data", (chunk: Buffer) => {
    if (isAnswered) return;
    isAnswered = true;
    const text = chunk.toString();
    if (/^HTTP\/1\.1 2/.test(text)) sender.accept(0);
    else sender.refuse(/"error":"(\w+)"/.exec(text)?.[1] ?? "untyped");
    if (then === "pause") socket.pause();
  });
  socket.on("error", () => undefined);
  socket.on("close", () => {
    open.delete(socket);
    if (!isAnswered && !sender.target.isOver()) sender.refuse("closed");
  });
}
