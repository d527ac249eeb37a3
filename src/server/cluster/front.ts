/**
 * What listens at a server's address during all terms: a connection goes to the term's own server while this one leads, and
 * otherwise to the one that passes requests on. During a term every byte that leaves is checked against the lease, at the
 * moment when it leaves; one that is late closes the connection instead.
 *
 * TLS ends here, so that with several shards the first request can be read before it is chosen which term gets the
 * connection. Until then it is a stranger's: of these there may be a share, and past it the oldest is closed (S4).
 */

import type { Server } from "node:http";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import { createServer as createTlsServer, type TLSSocket } from "node:tls";
import type { ReloadingTls } from "../../trust/server-tls.ts";
import { strangersShare, turnedAwayMax } from "../http/connections.ts";
import { type RequestHead, readHead } from "./request-head.ts";

export interface Serving {
  readonly server: Server;
  readonly isGood: () => boolean;
}

export interface FrontAddress {
  readonly port: number;
  readonly host: string;
  readonly connectionsMax: number;
}

export interface FrontOptions extends FrontAddress {
  /** Where connections go that no term takes. */
  readonly elsewhere: Server;
  /** Null: plain HTTP. */
  readonly tls: ReloadingTls | null;
  readonly tlsReloadMs?: number;
  /** Whether clients that show a certificate of another authority are refused. */
  readonly checksClients: boolean;
}

/** By its first request; "any": whichever is at hand. */
export type Choose = (head: RequestHead) => number | "any" | Promise<number | "any">;

/** A head that is longer, or comes slower, is refused by the server that passes on. */
const headBytesMax = 16_384;
const headMsMax = 10_000;

export class Front {
  readonly #listener: TcpServer;
  readonly #options: FrontOptions;
  readonly #sockets = new Set<Socket>();
  readonly #serving = new Map<number, Serving>();
  /** Whose first request has not come yet; the oldest first. */
  readonly #strangers = new Set<Socket>();
  #stopTls: () => void = () => undefined;
  /** Null: there is one shard, and nothing to choose. */
  choose: Choose | null = null;

  private constructor(listener: TcpServer, options: FrontOptions) {
    this.#listener = listener;
    this.#options = options;
    if (options.tls === null)
      listener.on("connection", (socket: Socket) => {
        this.#enter(socket);
        this.#take(socket);
      });
    else this.#endTls(options.tls);
  }

  static listen(options: FrontOptions): Promise<Front> {
    // As an HTTP server has it; its own options do not reach a socket that is handed to it.
    const listener = createTcpServer({
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      allowHalfOpen: true,
    });
    // Where requests are passed on, nothing else counts connections; past these they are closed without an answer (S4).
    listener.maxConnections = options.connectionsMax + turnedAwayMax;
    const front = new Front(listener, options);
    options.elsewhere.emit("listening");
    return new Promise((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(options.port, options.host, () => {
        listener.off("error", reject);
        resolve(front);
      });
    });
  }

  get address(): AddressInfo {
    return this.#listener.address() as AddressInfo;
  }

  get size(): number {
    return this.#sockets.size;
  }

  /** From now on connections for the shard are this server's; null: they are passed on. */
  serve(shard: number, serving: Serving | null): void {
    if (serving === null) return void this.#serving.delete(shard);
    this.#serving.set(shard, serving);
    // It never listens itself; this is what begins its watch over slow requests and idle connections.
    serving.server.emit("listening");
    // Those that were passed on come again, and find that they are here already.
    this.#options.elsewhere.closeIdleConnections();
  }

  async close(): Promise<void> {
    this.#stopTls();
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #endTls(tls: ReloadingTls): void {
    const server = createTlsServer({ ...tls.options, ALPNProtocols: ["http/1.1"] });
    tls.watch(server, this.#options.tlsReloadMs);
    this.#stopTls = () => tls.unwatch(server);
    const handshaking = new Map<string, Socket>();
    this.#listener.on("connection", (socket: Socket) => {
      const peer = peerOf(socket);
      this.#enter(socket);
      this.#watchStranger(socket);
      handshaking.set(peer, socket);
      socket.once("close", () => handshaking.delete(peer));
      server.emit("connection", socket);
    });
    server.on("secureConnection", (socket: TLSSocket) => {
      const wire = handshaking.get(peerOf(socket));
      if (wire !== undefined) this.#strangers.delete(wire);
      // S5: a credential that is shown is checked, a certificate too.
      const isForeign = !socket.authorized && socket.getPeerX509Certificate() !== undefined;
      if (this.#options.checksClients && isForeign) return void socket.destroy();
      this.#take(socket);
    });
    server.on("tlsClientError", (_error, socket) => socket.destroy());
  }

  #enter(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
  }

  #watchStranger(socket: Socket): void {
    this.#strangers.add(socket);
    socket.once("close", () => this.#strangers.delete(socket));
    if (this.#strangers.size <= Math.ceil(this.#options.connectionsMax / strangersShare)) return;
    const [oldest] = this.#strangers;
    oldest?.destroy();
  }

  #take(socket: Socket): void {
    const { choose } = this;
    if (choose === null) this.#hand(socket, this.#serving.values().next().value ?? null);
    else this.#readFirst(socket, choose);
  }

  /** What was read is put back. Nothing is certain of a head that does not come whole: then it is nobody's. */
  #readFirst(socket: Socket, choose: Choose): void {
    this.#watchStranger(socket);
    let bytes: Buffer = Buffer.alloc(0);
    const go = (found: number | "any" | null): void => {
      this.#strangers.delete(socket);
      if (socket.destroyed) return;
      socket.off("end", onEnd);
      if (bytes.length > 0) socket.unshift(bytes);
      const [any] = this.#serving.values();
      this.#hand(socket, (found === "any" ? any : this.#serving.get(found ?? -1)) ?? null);
      socket.resume();
    };
    const stop = (): void => {
      clearTimeout(timer);
      socket.off("data", onData);
      socket.pause();
    };
    const onEnd = (): void => void socket.destroy();
    const onData = (chunk: Buffer): void => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      const head = readHead(bytes);
      if (head === null && bytes.length <= headBytesMax) return;
      stop();
      const found = head === null ? null : choose(head);
      if (found instanceof Promise) found.then(go, () => go(null));
      else go(found);
    };
    const timer = setTimeout(() => {
      stop();
      go(null);
    }, headMsMax);
    socket.once("close", () => clearTimeout(timer));
    socket.on("end", onEnd);
    socket.on("data", onData);
  }

  #hand(socket: Socket, serving: Serving | null): void {
    if (serving === null) return void this.#options.elsewhere.emit("connection", socket);
    guard(socket, serving.isGood);
    serving.server.emit("connection", socket);
  }
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

type Writing = Pick<Socket, "_write" | "_writev" | "destroy">;

/** Below everything that writes: answers, refusals, events and frames alike. */
export function guard(socket: Socket, isGood: () => boolean): void {
  const own = socket as Writing;
  const write = own._write.bind(socket);
  const writev = own._writev?.bind(socket);
  const late = (done: (error: Error) => void): void => {
    const error = new Error("the lease has ended before this answer left");
    done(error);
    socket.destroy();
  };
  own._write = (chunk, encoding, done) => (isGood() ? write(chunk, encoding, done) : late(done));
  if (writev !== undefined) own._writev = (chunks, done) => (isGood() ? writev(chunks, done) : late(done));
}
