/**
 * Requests over Node's sockets, one at a time on each, kept open between them. It reads what servers and proxies answer
 * with: a length, chunks, or all until the connection ends. Node's fetch does the same at ten times the cost.
 */
import { connect, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import type { HttpWireOptions } from "../http.ts";
import { broken, replyOf, requestFor } from "../http-form.ts";
import { type Outgoing, type Wire, WireBroken } from "../transport.ts";

/** A connection that was idle for longer may be closed by the server while a request is on its way. */
const idleMsMax = 4_000;
/** Off what the server says in `Keep-Alive`. */
const idleMarginMs = 1_000;
const headBytesMax = 64 * 1_024;
const headEnd = Buffer.from("\r\n\r\n");

export interface NodeHttpOptions extends HttpWireOptions {
  readonly headers: Readonly<Record<string, string>>;
}

export function createNodeHttp(options: NodeHttpOptions): Wire {
  return new NodeHttp(options);
}

class NodeHttp implements Wire {
  private readonly options: NodeHttpOptions;
  private readonly url: URL;
  private readonly head: string;
  /** The one that was used last is used next. */
  private readonly idle: Connection[] = [];

  constructor(options: NodeHttpOptions) {
    this.options = options;
    this.url = new URL(options.url);
    const headers = Object.entries({ host: this.url.host, ...options.headers });
    this.head = headers.map(([name, value]) => `${name}: ${oneLine(value)}\r\n`).join("");
  }

  send(call: Outgoing): void {
    const { method, path, body } = requestFor(call.name, call.input);
    const base = `${method} ${this.url.pathname.replace(/\/$/, "")}${path} HTTP/1.1\r\n${this.head}`;
    const text =
      body === null
        ? `${base}\r\n`
        : `${base}content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
    this.connection().send(call, text);
  }

  drop(call: Outgoing): void {
    call.giveUp?.();
  }

  private connection(): Connection {
    const now = performance.now();
    for (let last = this.idle.pop(); last !== undefined; last = this.idle.pop()) {
      if (last.idleUntil > now) return last;
      last.socket.destroy();
    }
    const { hostname, protocol, port } = this.url;
    const host = hostname.replace(/^\[|\]$/g, "");
    const socket =
      protocol === "https:"
        ? connectTls({ ...this.options.tls, host, port: Number(port || 443), ...servername(host) })
        : connect({ host, port: Number(port || 80) });
    return new Connection(socket, protocol === "https:", this.idle);
  }
}

/** Loaded where it is used: it takes a tenth of a short command's time. */
function connectTls(options: ConnectionOptions): Socket {
  return process.getBuiltinModule("node:tls").connect(options);
}

/** An address has no name to ask for. */
function servername(host: string): { readonly servername?: string } {
  return /^[\d.]+$|:/.test(host) ? {} : { servername: host };
}

function oneLine(value: string): string {
  if (/[\r\n\0]/.test(value)) throw new TypeError("A key or tenant must not contain a line break.");
  return value;
}

/** How the body of an answer ends. */
type BodyEnd = { readonly type: "length"; readonly bytes: number } | { readonly type: "chunks" | "close" };

interface Head {
  readonly status: number;
  readonly end: BodyEnd;
  readonly retryAfter: string | null;
  /** How long the connection may be idle; 0: it is not used again. */
  readonly keepMs: number;
  /** Where the body begins. */
  readonly from: number;
}

class Connection {
  readonly socket: Socket;
  /** By performance.now(). */
  idleUntil = 0;
  private readonly idle: Connection[];
  private call: Outgoing | null = null;
  private isOpen = false;
  private bytes: Buffer | null = null;
  private head: Head | null = null;

  constructor(socket: Socket, isSecure: boolean, idle: Connection[]) {
    this.socket = socket;
    this.idle = idle;
    socket.setNoDelay(true);
    socket.once(isSecure ? "secureConnect" : "connect", () => {
      this.isOpen = true;
      if (this.call !== null) this.call.isSent = true;
    });
    socket.on("data", (arrived: Buffer) => this.take(arrived));
    socket.on("error", (error) => this.fail(broken(error, this.isOpen)));
    socket.on("end", () => this.finish());
    socket.on("close", () => this.fail(new WireBroken("the connection was closed", this.isOpen)));
  }

  send(call: Outgoing, text: string): void {
    this.call = call;
    call.isSent = this.isOpen;
    call.giveUp = this.giveUp;
    this.socket.ref();
    this.socket.write(text);
  }

  /** Nobody waits any more: the server sees that the connection is closed, and drops what it holds. */
  private readonly giveUp = (): void => {
    this.call = null;
    this.socket.destroy();
  };

  private take(arrived: Buffer): void {
    // An idle connection that speaks is not one to use again.
    if (this.call === null) return void this.socket.destroy();
    const bytes = this.bytes === null ? arrived : Buffer.concat([this.bytes, arrived]);
    this.bytes = bytes;
    if (this.head === null) {
      const head = readHead(bytes);
      if (head === "more" && bytes.length <= headBytesMax) return;
      if (typeof head === "string") return this.bad();
      this.head = head;
    }
    const { end, from } = this.head;
    if (end.type === "length") {
      if (bytes.length >= from + end.bytes) this.answer(bytes, from + end.bytes);
    } else if (end.type === "chunks") {
      const whole = readChunks(bytes, from);
      if (whole === "bad") this.bad();
      else if (whole !== "more") this.answer(whole.body, whole.body.length, 0, whole.isLast);
    }
  }

  /** The peer has said all that it will say. */
  private finish(): void {
    const { head, bytes } = this;
    if (head?.end.type === "close" && bytes !== null) this.answer(bytes, bytes.length);
    this.socket.destroy();
  }

  private answer(bytes: Buffer, to: number, from = this.head?.from ?? 0, isWhole = to === bytes.length): void {
    const { call, head } = this;
    this.call = null;
    this.head = null;
    this.bytes = null;
    if (call === null || head === null) return;
    call.giveUp = null;
    if (head.keepMs > 0 && isWhole) {
      this.idleUntil = performance.now() + head.keepMs;
      // An idle connection does not keep the process alive.
      this.socket.unref();
      this.idle.push(this);
    } else this.socket.destroy();
    call.answered(replyOf(head.status, bytes.toString("utf8", from, to), head.retryAfter));
  }

  private bad(): void {
    this.socket.destroy();
    this.fail(new WireBroken("the answer is not HTTP", true));
  }

  private fail(error: WireBroken): void {
    const { call } = this;
    this.call = null;
    const place = this.idle.indexOf(this);
    if (place >= 0) this.idle.splice(place, 1);
    if (call === null) return;
    call.giveUp = null;
    call.broken(error);
  }
}

function readHead(bytes: Buffer): Head | "more" | "bad" {
  let start = 0;
  for (;;) {
    const end = bytes.indexOf(headEnd, start);
    if (end < 0) return "more";
    const [first = "", ...lines] = bytes.toString("latin1", start, end).split("\r\n");
    const found = /^HTTP\/1\.([01]) (\d{3})(?: |$)/.exec(first);
    if (found === null) return "bad";
    const status = Number(found[2]);
    start = end + headEnd.length;
    // What comes before the answer itself.
    if (status >= 100 && status < 200 && status !== 101) continue;
    return headOf(status, found[1] === "1", lines, start);
  }
}

function headOf(status: number, keepsUsually: boolean, lines: readonly string[], from: number): Head | "bad" {
  const values = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon <= 0) return "bad";
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const before = values.get(name);
    values.set(name, before === undefined ? value : `${before}, ${value}`);
  }
  const end = bodyEndOf(status, values);
  if (end === "bad") return "bad";
  const connection = values.get("connection")?.toLowerCase() ?? "";
  const keeps =
    end.type !== "close" && (keepsUsually ? !connection.includes("close") : connection.includes("keep-alive"));
  const said = /timeout=(\d+)/.exec(values.get("keep-alive") ?? "")?.[1];
  const keepMs = said === undefined ? idleMsMax : Math.min(idleMsMax, Number(said) * 1_000 - idleMarginMs);
  return { status, end, from, retryAfter: values.get("retry-after") ?? null, keepMs: keeps ? Math.max(keepMs, 0) : 0 };
}

function bodyEndOf(status: number, values: ReadonlyMap<string, string>): BodyEnd | "bad" {
  if (status === 204 || status === 304) return { type: "length", bytes: 0 };
  const encoding = values.get("transfer-encoding")?.toLowerCase();
  const length = values.get("content-length");
  if (encoding !== undefined) return encoding === "chunked" && length === undefined ? { type: "chunks" } : "bad";
  if (length === undefined) return { type: "close" };
  return /^\d{1,15}$/.test(length) ? { type: "length", bytes: Number(length) } : "bad";
}

/** The whole body, once the last chunk and what follows it are there. */
function readChunks(bytes: Buffer, from: number): { readonly body: Buffer; readonly isLast: boolean } | "more" | "bad" {
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf("\r\n", at);
    if (lineEnd < 0) return bytes.length - at > 1_024 ? "bad" : "more";
    const size = /^([0-9a-f]{1,8})[ \t]*(?:;.*)?$/i.exec(bytes.toString("latin1", at, lineEnd))?.[1];
    if (size === undefined) return "bad";
    const length = Number.parseInt(size, 16);
    const begin = lineEnd + 2;
    if (length === 0) {
      // Trailers, if any, end with an empty line.
      const end = bytes.indexOf("\r\n", begin) === begin ? begin + 2 : bytes.indexOf(headEnd, begin) + headEnd.length;
      if (end < begin + 2) return "more";
      return { body: Buffer.concat(parts), isLast: end === bytes.length };
    }
    if (bytes.length < begin + length + 2) return "more";
    if (bytes.toString("latin1", begin + length, begin + length + 2) !== "\r\n") return "bad";
    parts.push(bytes.subarray(begin, begin + length));
    at = begin + length + 2;
  }
}
