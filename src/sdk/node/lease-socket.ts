/** A TCP connection through a cell: the token is shown, and the lease's end is a typed error and not ECONNRESET (G9). */
import { connect, isIP, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { connect as connectSecurely } from "node:tls";
import type { ClientTls } from "../../trust/client-tls.ts";
import type { LeaseholdError } from "../errors.ts";
import type { Gateway, GatewayRefusal } from "../gateway.ts";
import type { LeaseSocket } from "../lease-streams.ts";

const lineBytesMax = 16_384;
const lineEnd = 0x0a;

export async function connectThrough(gateway: Gateway): Promise<LeaseDuplex> {
  const { hostname, port, protocol } = gateway.place("tcp:", "tls:");
  const peer: Peer = {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: Number(port),
    tls: protocol === "tls:" ? (gateway.certificates ?? {}) : null,
  };
  return new LeaseDuplex(await gateway.present((token) => greet(peer, token, gateway.signal)), gateway);
}

interface Peer {
  readonly host: string;
  readonly port: number;
  /** null: the gateway speaks plain TCP. */
  readonly tls: ClientTls | null;
}

/** Renewals do not touch it. When the lease is lost it is destroyed with the LeaseLost. */
export class LeaseDuplex extends Duplex implements LeaseSocket {
  private readonly raw: Socket;
  private readonly gateway: Gateway;
  private failing: Promise<LeaseholdError> | null = null;
  private readonly onLost = (): void => void this.destroy(this.gateway.signal.reason as Error);

  constructor(raw: Socket, gateway: Gateway) {
    super({ allowHalfOpen: false });
    this.raw = raw;
    this.gateway = gateway;
    let hasEnded = false;
    raw.on("data", (chunk: Buffer) => {
      if (!this.push(chunk)) raw.pause();
    });
    raw.on("end", () => {
      hasEnded = true;
      this.push(null);
    });
    raw.on("error", (error) => {
      if (!this.destroyed) void this.fail(error);
    });
    raw.on("close", () => {
      if (!hasEnded && !this.destroyed) void this.fail(new Error("the connection was closed"));
    });
    gateway.signal.addEventListener("abort", this.onLost);
    if (gateway.signal.aborted) this.onLost();
  }

  override _read(): void {
    this.raw.resume();
  }

  override _write(chunk: Buffer, encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.raw.write(chunk, encoding, (error) => {
      if (error) this.fail(error).then(done, done);
      else done();
    });
  }

  override _final(done: (error?: Error | null) => void): void {
    this.raw.end(() => done());
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.gateway.signal.removeEventListener("abort", this.onLost);
    this.raw.destroy();
    done(error);
  }

  /** The first failure counts; the others follow from it. */
  private async fail(error: unknown): Promise<LeaseholdError> {
    this.failing ??= this.gateway.typed(error);
    const typed = await this.failing;
    this.destroy(typed);
    return typed;
  }
}

/** Resolves when the gateway has said `ok`, or with its refusal. */
function greet({ host, port, tls }: Peer, token: string, signal: AbortSignal): Promise<Socket | GatewayRefusal> {
  return new Promise((resolve, reject) => {
    const place = { host, port, allowHalfOpen: true, noDelay: true };
    const named = isIP(host) === 0 ? { servername: host } : {};
    const raw: Socket = tls === null ? connect(place) : connectSecurely({ ...place, ...named, ...tls });
    let held = Buffer.alloc(0);
    const settle = (act: () => void): void => {
      signal.removeEventListener("abort", abort);
      raw.off("data", read).off("error", fail).off("close", closed);
      act();
    };
    const give = (error: unknown): void =>
      settle(() => {
        raw.on("error", () => undefined).destroy();
        reject(error);
      });
    const fail = (error: Error): void => give(error);
    const closed = (): void => give(new Error("the gateway closed the connection"));
    const abort = (): void => give(signal.reason);
    const read = (chunk: Buffer): void => {
      held = Buffer.concat([held, chunk]);
      const end = held.indexOf(lineEnd);
      if (end < 0 && held.length <= lineBytesMax) return;
      const line = held.subarray(0, Math.max(end, 0)).toString("utf8");
      settle(() => {
        raw.pause();
        if (line === "ok") {
          if (held.length > end + 1) raw.unshift(held.subarray(end + 1));
          return resolve(raw);
        }
        raw.on("error", () => undefined).destroy();
        resolve(refusalIn(line));
      });
    };
    raw.on("data", read).on("error", fail).on("close", closed);
    signal.addEventListener("abort", abort);
    if (signal.aborted) abort();
    raw.write(`${token}\n`);
  });
}

function refusalIn(line: string): GatewayRefusal {
  try {
    const value = JSON.parse(line) as Partial<GatewayRefusal>;
    return { ...value, error: String(value.error) };
  } catch {
    return { error: "" };
  }
}
