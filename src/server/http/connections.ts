/**
 * S4: how many connections there may be: in all, of a tenant, and of strangers, which have not shown a credential yet.
 * One too many is answered with an error, and closed. Strangers never take the place of others: past their number the
 * one that has been silent longest is closed for the next, which has its head to send within a moment.
 */
import type { Server, ServerResponse } from "node:http";
import type { Server as SecureServer } from "node:https";
import type { Socket } from "node:net";
import { type Answer, errorAnswer } from "../../protocol/answers/answer.ts";
import { isPlace, type TenantUses } from "../answering/tenant-use.ts";
import type { Caller } from "../service.ts";
import { sendRaw } from "./edge.ts";

export interface Connection {
  /** The one that requests come on; with TLS another one than before the handshake. */
  socket: Socket;
  /** Whose credential it showed first; null until then. */
  owner: string | null;
  /** Refused, or taken by an event stream: a request that still comes on it is not served. */
  isTaken: boolean;
  /** Answers that wait for the one before them to leave; null: there was never one. */
  pipelined: Set<ServerResponse> | null;
}

export interface ConnectionLimits {
  readonly connectionsMax: number;
}

/** How many can get the error at once; past these, connections are closed without an answer. */
export const turnedAwayMax = 100;
/** Requests of one connection that may wait for the answers before them: each keeps its answer in memory. */
export const pipelinedMax = 32;
/** The share of all connections that strangers can have. */
export const strangersShare = 4;

export class Connections {
  readonly open = new Map<Socket, Connection>();
  /** By the peer's address and port, while TLS shakes hands. */
  private readonly handshaking = new Map<string, Connection>();
  /** The oldest first. */
  private readonly strangers = new Set<Connection>();
  private readonly uses: TenantUses;
  private readonly max: number;
  private readonly strangersMax: number;

  private onGone: (() => void) | null = null;

  constructor(uses: TenantUses, { connectionsMax }: ConnectionLimits) {
    this.uses = uses;
    this.max = connectionsMax;
    this.strangersMax = Math.ceil(connectionsMax / strangersShare);
  }

  get size(): number {
    return this.open.size;
  }

  watch(server: Server | SecureServer): void {
    const isSecure = "setSecureContext" in server;
    server.maxConnections = this.max + turnedAwayMax;
    server.prependListener("connection", (socket: Socket) => this.add(socket, isSecure));
    if (isSecure) server.prependListener("secureConnection", (socket: Socket) => this.secure(socket));
  }

  private add(socket: Socket, isSecure: boolean): void {
    const connection: Connection = { socket, owner: null, isTaken: false, pipelined: null };
    const peer = peerOf(socket);
    this.open.set(socket, connection);
    this.strangers.add(connection);
    if (isSecure) this.handshaking.set(peer, connection);
    socket.once("close", () => {
      this.forget(connection);
      if (this.handshaking.get(peer) === connection) this.handshaking.delete(peer);
    });
    if (this.open.size > this.max) {
      connection.isTaken = true;
      // Before the handshake no answer could be read.
      if (isSecure) socket.destroy();
      else sendRaw(socket, tooMany);
    } else if (this.strangers.size > this.strangersMax) {
      const [oldest] = this.strangers;
      oldest?.socket.destroy();
    }
  }

  private secure(socket: Socket): void {
    const peer = peerOf(socket);
    const connection = this.handshaking.get(peer);
    this.handshaking.delete(peer);
    if (connection === undefined) return void socket.destroy();
    this.open.delete(connection.socket);
    connection.socket = socket;
    this.open.set(socket, connection);
    socket.once("close", () => this.forget(connection));
  }

  private forget(connection: Connection): void {
    this.open.delete(connection.socket);
    this.strangers.delete(connection);
    if (this.open.size === 0) this.onGone?.();
  }

  /** While an answer that comes from elsewhere is under way, the stranger's place is another's. */
  lend(socket: Socket, response: { once(event: "close", listener: () => void): unknown }): void {
    const connection = this.open.get(socket);
    if (connection === undefined || !this.strangers.delete(connection)) return;
    response.once("close", () => {
      if (this.open.get(socket) === connection && connection.owner === null) this.strangers.add(connection);
    });
  }

  /** Resolves when there is none left. */
  gone(): Promise<void> {
    return new Promise((resolve) => {
      this.onGone = resolve;
      if (this.open.size === 0) resolve();
    });
  }

  /** With the first credential on it. An operator comes in however many its tenant has. */
  claim(connection: Connection, { tenant, actor }: Caller): Answer | null {
    if (actor.role !== "operator") {
      const place = this.uses.enter(tenant, "connectionsMax");
      if (!isPlace(place)) return place;
      connection.socket.once("close", () => place.leave());
    }
    connection.owner = tenant;
    this.strangers.delete(connection);
    return null;
  }

  /** False: too many wait already. */
  pipeline(connection: Connection, response: ServerResponse): boolean {
    connection.pipelined ??= new Set();
    const { pipelined } = connection;
    if (pipelined.size >= pipelinedMax) return false;
    pipelined.add(response);
    response.once("close", () => pipelined.delete(response));
    return true;
  }

  /** Whatever they are in the middle of: requests, event streams, WebSockets. */
  destroyAll(): void {
    for (const socket of this.open.keys()) socket.destroy();
  }
}

/** Bytes that were written to it and that its client has not taken, pipelined answers included. */
export function unreadBytesOf({ socket, pipelined }: Connection): number {
  let bytes = socket.writableLength;
  for (const response of pipelined ?? []) if (response.socket === null) bytes += response.writableLength;
  return bytes;
}

function peerOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

const tooMany = errorAnswer(
  "too_many_connections",
  "The server has all the connections it can take; try again later.",
  { retry_after_ms: 1_000 },
);
