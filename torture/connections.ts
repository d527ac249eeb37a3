/** Connections to the server by HTTP or stream with one interface: a call is answered, or its connection breaks. */
import { Agent, request } from "node:http";
import { WebSocket } from "ws";
import { type Answer, type Body, type Input, type Op, routes } from "./wire.ts";

export interface Connection {
  call(op: Op, input: Input): Promise<Answer>;
  close(): void;
}

/** No reply came, and none will: the outcome of the command is unknown. */
export class Lost extends Error {
  constructor(cause?: unknown) {
    super("the connection broke before the reply", { cause });
    this.name = "Lost";
  }
}

/** Every call in flight has its own socket, which is reused. Without a key the caller is the operator on loopback. */
export function connectHttp(port: number, key: string | null = null): Connection {
  const agent = new Agent({ keepAlive: true });
  return {
    call: (op, input) => callHttp(agent, port, key, op, input),
    close: () => agent.destroy(),
  };
}

function callHttp(agent: Agent, port: number, key: string | null, op: Op, input: Input): Promise<Answer> {
  const { method, path, body } = httpFormOf(op, input);
  const headers = {
    ...headersOf(key),
    ...(body !== null && { "content-type": "application/json", "content-length": Buffer.byteLength(body) }),
  };
  return new Promise((resolve, reject) => {
    const lose = (error?: unknown): void => reject(new Lost(error));
    const sent = request({ host: "127.0.0.1", port, method, path, headers, agent }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (part: string) => {
        text += part;
      });
      response.on("error", lose);
      response.on("close", lose);
      response.on("end", () => {
        // A truncated body ends too; only a complete one is a reply.
        if (response.complete) resolve({ status: response.statusCode ?? 0, body: JSON.parse(text) as Body });
      });
    });
    sent.on("error", lose);
    sent.end(body ?? undefined);
  });
}

function headersOf(key: string | null): { readonly authorization?: string } {
  return key === null ? {} : { authorization: `Bearer ${key}` };
}

function httpFormOf(op: Op, input: Input): { method: string; path: string; body: string | null } {
  const { method, path } = routes[op];
  const rest = { ...input };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    delete rest[name];
    return encodeURIComponent(String(input[name]));
  });
  if (method === "POST") return { method, path: filled, body: JSON.stringify(rest) };
  const query = new URLSearchParams(Object.entries(rest).map(([name, value]) => [name, String(value)])).toString();
  return { method, path: query === "" ? filled : `${filled}?${query}`, body: null };
}

/** One socket for all calls in flight. */
export async function connectStream(port: number, key: string | null = null): Promise<Connection> {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/stream`, {
    perMessageDeflate: false,
    headers: headersOf(key),
  });
  const waiting = new Map<number, { resolve: (answer: Answer) => void; reject: (lost: Lost) => void }>();
  let nextId = 1;
  let isOver = false;
  const over = (): void => {
    isOver = true;
    for (const { reject } of waiting.values()) reject(new Lost());
    waiting.clear();
  };
  socket.on("close", over);
  socket.on("message", (data) => {
    const frame = JSON.parse(String(data)) as Reply | readonly Reply[];
    for (const { id, status, body } of Array.isArray(frame) ? (frame as readonly Reply[]) : [frame as Reply]) {
      waiting.get(id)?.resolve({ status, body });
      waiting.delete(id);
    }
  });
  await new Promise<void>((resolve, reject) => {
    socket.once("open", resolve);
    socket.on("error", (error) => reject(new Lost(error)));
  });
  return {
    call: (op, input) =>
      new Promise((resolve, reject) => {
        if (isOver) return reject(new Lost());
        const id = nextId++;
        waiting.set(id, { resolve, reject });
        socket.send(JSON.stringify({ id, op, input }));
      }),
    close: () => socket.terminate(),
  };
}

interface Reply {
  readonly id: number;
  readonly status: number;
  readonly body: Body;
}
