/**
 * What listens at a server's address during all terms: a connection goes to the term's own server while this one leads, and
 * otherwise to the one that passes requests on. During a term every byte that leaves is checked against the lease, at the
 * moment when it leaves; one that is late closes the connection instead.
 */

import type { Server } from "node:http";
import type { Server as SecureServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Socket, type Server as TcpServer } from "node:net";
import type { TLSSocket } from "node:tls";
import { turnedAwayMax } from "../http/connections.ts";

export interface Serving {
  readonly server: Server | SecureServer;
  readonly isGood: () => boolean;
}

export interface FrontAddress {
  readonly port: number;
  readonly host: string;
  readonly connectionsMax: number;
}

export class Front {
  readonly #listener: TcpServer;
  readonly #elsewhere: Server | SecureServer;
  readonly #sockets = new Set<Socket>();
  #serving: Serving | null = null;

  private constructor(listener: TcpServer, elsewhere: Server | SecureServer) {
    this.#listener = listener;
    this.#elsewhere = elsewhere;
    listener.on("connection", (socket: Socket) => this.#take(socket));
  }

  static listen(elsewhere: Server | SecureServer, at: FrontAddress): Promise<Front> {
    // As an HTTP server has it; its own options do not reach a socket that is handed to it.
    const listener = createTcpServer({
      noDelay: true,
      keepAlive: true,
      keepAliveInitialDelay: 60_000,
      allowHalfOpen: true,
    });
    // Where requests are passed on, nothing else counts connections; past these they are closed without an answer (S4).
    listener.maxConnections = at.connectionsMax + turnedAwayMax;
    const front = new Front(listener, elsewhere);
    elsewhere.emit("listening");
    return new Promise((resolve, reject) => {
      listener.once("error", reject);
      listener.listen(at.port, at.host, () => {
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

  /** From now on connections are this server's; null: they are passed on. */
  set serving(serving: Serving | null) {
    this.#serving = serving;
    if (serving === null) return;
    // It never listens itself; this is what begins its watch over slow requests and idle connections.
    serving.server.emit("listening");
    // TLS writes below the socket, so that the check is at its own.
    serving.server.on("secureConnection", (socket: TLSSocket) => guard(socket, serving.isGood));
    // Those that were passed on come again, and find that they are here already.
    this.#elsewhere.closeIdleConnections();
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#listener.close(() => resolve()));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  #take(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    const serving = this.#serving;
    if (serving === null) return void this.#elsewhere.emit("connection", socket);
    guard(socket, serving.isGood);
    serving.server.emit("connection", socket);
  }
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
