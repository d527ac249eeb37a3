/**
 * `tcp`: a gateway for any protocol. The first line is the token; it is answered with the line `ok`, or with one line
 * of JSON that says what is wrong, and then the end. After `ok` all bytes pass as they are, until the lease ends.
 */
import { connect, createServer, type Server, type Socket } from "node:net";
import { createServer as createSecureServer, type Server as SecureServer } from "node:tls";
import { tokenLimits } from "../../token/index.ts";
import { whenAdmitted } from "../admission.ts";
import type { Pass } from "../binding.ts";
import { Driver, type Operations, type ProbeResult } from "../driver.ts";
import { type AccessFailure, failureText } from "../failure.ts";
import type { Fields } from "../fields.ts";
import { addressPattern, bareHost, type Listening, listen, readListening } from "../listening.ts";
import { pump, watchService } from "../pump.ts";
import { closeWith, noteCarriers, resetSocket } from "../reset-socket.ts";
import { probeService, reach, readProbe, type ServiceProbe } from "../service-probe.ts";

interface TcpOptions {
  readonly target: URL;
  readonly listening: Listening;
  readonly connectMs: number;
  readonly probe: ServiceProbe | null;
}

/** How long a token may be on its way. */
const firstLineMs = 5_000;
const lineEnd = 0x0a;

export function readTcpOptions(fields: Fields, folder: string): TcpOptions {
  return {
    target: fields.address("target", addressPattern, "give host:port", "tcp://"),
    listening: readListening(fields),
    connectMs: fields.integer("connect_ms", [1, 3_600_000], 5_000),
    probe: readProbe(fields, folder),
  };
}

export class TcpDriver extends Driver<TcpOptions> {
  static readonly operations: Operations = { connect: "opaque" };
  private readonly server = this.createServer();
  private readonly sockets = new Set<Socket>();
  private address: string | null = null;

  override async start(): Promise<void> {
    if (this.address !== null) return;
    this.server.maxConnections = this.options.listening.connectionsMax;
    this.address = await listen(this.server, this.options.listening);
    this.server.on("error", () => {});
    if ("setSecureContext" in this.server) this.place.tls?.watch(this.server);
  }

  private createServer(): Server | SecureServer {
    const options = { allowHalfOpen: true, noDelay: true };
    const { tls } = this.place;
    if (tls === null) return createServer(options, (socket) => this.greet(socket));
    const server = createSecureServer({ ...options, ...tls.options }, (socket) => this.greet(socket));
    noteCarriers(server);
    return server;
  }

  async bind(): Promise<string> {
    return `${this.place.tls === null ? "tcp" : "tls"}://${this.address}`;
  }

  async probe(signal: AbortSignal): Promise<ProbeResult> {
    if (this.sockets.size > 0) return { clean: false, detail: `${this.sockets.size} connections are open` };
    const { probe, target } = this.options;
    return await (probe === null ? reach(target) : probeService(probe, this.leaseJson("probe", null), signal));
  }

  async reset(): Promise<void> {
    for (const socket of this.sockets) resetSocket(socket);
  }

  override async stop(): Promise<void> {
    await this.reset();
    if ("setSecureContext" in this.server) this.place.tls?.unwatch(this.server);
    if (this.address === null) return;
    await new Promise<void>((resolve) => this.server.close(() => resolve()));
  }

  private greet(socket: Socket): void {
    this.sockets.add(socket);
    socket.on("close", () => this.sockets.delete(socket));
    socket.on("error", () => socket.destroy());
    const timer = setTimeout(() => {
      refuse(socket, { code: "token_invalid", detail: "The first line, the token, did not come in time." });
    }, firstLineMs);
    socket.on("close", () => clearTimeout(timer));
    let held = Buffer.alloc(0);
    const read = (chunk: Buffer | string): void => {
      held = Buffer.concat([held, Buffer.from(chunk)]);
      const end = held.indexOf(lineEnd);
      if (end < 0 && held.length <= tokenLimits.textLengthMax + 1) return;
      clearTimeout(timer);
      socket.off("data", read);
      socket.pause();
      const line = held.subarray(0, Math.max(end, 0)).toString("latin1").replace(/\r$/, "");
      this.enter(socket, line, held.subarray(end + 1));
    };
    socket.on("data", read);
    socket.on("end", () => {
      // With the other half closed before a token came there is nothing to be had any more.
      if (socket.listeners("data").includes(read)) socket.destroy();
    });
  }

  private enter(socket: Socket, token: string, rest: Buffer): void {
    let upstream: Socket | null = null;
    let isOpen = false;
    const asked = { operation: "connect" };
    const admitted = this.place.admission.admitFrom(socket, token, asked, (failure) => {
      if (isOpen) resetSocket(socket);
      else refuse(socket, failure);
      upstream?.destroy();
    });
    whenAdmitted(admitted, (pass) => {
      if ("code" in pass) return refuse(socket, pass);
      if (socket.destroyed) return pass.close();
      socket.on("close", () => {
        upstream?.destroy();
        pass.close();
      });
      upstream = this.connect(pass, () => {
        if (upstream === null || !pass.check()) return;
        isOpen = true;
        socket.write("ok\n");
        if (rest.length > 0 && pass.take(rest.length, "in")) upstream.write(rest);
        pump(socket, upstream, pass, "in");
        pump(upstream, socket, pass, "out");
        socket.resume();
      });
      upstream.on("close", () => {
        if (isOpen && !socket.writableEnded) resetSocket(socket);
      });
    });
  }

  private connect(pass: Pass, opened: () => void): Socket {
    const { target, connectMs } = this.options;
    const service = { host: bareHost(target), port: Number(target.port), allowHalfOpen: true, noDelay: true };
    const upstream = connect(service, opened);
    watchService(upstream, ["connect", "close"], connectMs, (failure) => pass.cut(failure));
    return upstream;
  }
}

function refuse(socket: Socket, failure: AccessFailure): void {
  closeWith(socket, `${failureText(failure)}\n`);
}
