/**
 * S4: what was written and nobody reads waits in memory. A reader that takes nothing for a while is cut off; and where a
 * tenant has too much waiting, or all together, those with the most are, until the rest fits. They come back, and
 * resume where they were.
 */
import type { Socket } from "node:net";
import type { Counts } from "../answering/command-run.ts";
import type { TenantUses } from "../answering/tenant-use.ts";
import { type Connection, type Connections, unreadBytesOf } from "./connections.ts";

export interface UnreadLimits {
  /** Of all tenants together. */
  readonly unreadBytesMax: number;
  /** A reader that takes nothing for this long is cut off. */
  readonly slowReaderMs: number;
}

const sweepMs = 250;
/** After this much was written to streams they are looked at at once. */
const sweepBytes = 8 * 2 ** 20;

interface Waiting {
  readonly connection: Connection;
  bytes: number;
}

/** What a socket had given away when it was last looked at. */
interface Progress {
  taken: number;
  queued: number;
  at: number;
}

export class SlowReaders {
  private readonly connections: Connections;
  private readonly uses: TenantUses;
  private readonly counts: Counts;
  private readonly limits: UnreadLimits;
  private readonly timer: NodeJS.Timeout;
  private readonly progress = new WeakMap<Socket, Progress>();
  private written = 0;

  constructor(connections: Connections, uses: TenantUses, counts: Counts, limits: UnreadLimits) {
    this.connections = connections;
    this.uses = uses;
    this.counts = counts;
    this.limits = limits;
    this.timer = setInterval(() => this.sweep(performance.now()), sweepMs);
    this.timer.unref();
  }

  /** A stream has written this much; its reader may be slow. */
  wrote(bytes: number): void {
    this.written += bytes;
    if (this.written > sweepBytes) this.sweep(performance.now());
  }

  /** Bytes that wait for a tenant's readers. */
  unread(tenant: string): number {
    let sum = 0;
    for (const connection of this.connections.open.values())
      if (connection.owner === tenant) sum += unreadBytesOf(connection);
    return sum;
  }

  sweep(now: number): void {
    this.written = 0;
    const waiting: Waiting[] = [];
    for (const connection of this.connections.open.values()) {
      const { socket } = connection;
      const bytes = unreadBytesOf(connection);
      if (bytes === 0) this.progress.delete(socket);
      else if (this.isStuck(socket, socket.writableLength, now)) this.cut(socket);
      else waiting.push({ connection, bytes });
    }
    this.makeRoom(waiting);
  }

  close(): void {
    clearInterval(this.timer);
  }

  private makeRoom(waiting: Waiting[]): void {
    const tenants = new Map<string | null, number>();
    let total = 0;
    for (const { connection, bytes } of waiting) {
      total += bytes;
      tenants.set(connection.owner, (tenants.get(connection.owner) ?? 0) + bytes);
    }
    const { unreadBytesMax } = this.limits;
    const mostOf = (owner: string | null): number =>
      owner === null ? unreadBytesMax : this.uses.quotasOf(owner).unreadBytesMax;
    const isOver = (owner: string | null): boolean => (tenants.get(owner) ?? 0) > mostOf(owner);
    if (total <= unreadBytesMax && ![...tenants.keys()].some(isOver)) return;
    for (const { connection, bytes } of waiting.sort((a, b) => b.bytes - a.bytes)) {
      const { owner, socket } = connection;
      if (total <= unreadBytesMax && !isOver(owner)) continue;
      this.cut(socket);
      total -= bytes;
      tenants.set(owner, (tenants.get(owner) ?? 0) - bytes);
    }
  }

  /** A chunk that is only partly taken shows in the queue below, which Node does not declare. */
  private isStuck(socket: Socket & { readonly _handle?: unknown }, bytes: number, now: number): boolean {
    const { writeQueueSize: queued = 0 } = (socket._handle ?? {}) as { readonly writeQueueSize?: number };
    const taken = socket.bytesWritten - bytes;
    const before = this.progress.get(socket);
    if (before === undefined) {
      this.progress.set(socket, { taken, queued, at: now });
      return false;
    }
    if (taken > before.taken || queued < before.queued) before.at = now;
    before.taken = taken;
    before.queued = queued;
    return now - before.at >= this.limits.slowReaderMs;
  }

  private cut(socket: Socket): void {
    this.counts.refuse("slow_reader");
    socket.destroy();
  }
}
