/**
 * `udp`: a relay for datagrams. A flow is opened by HTTP, which carries the token and typed failures; the datagrams
 * themselves pass as they are. Flow and lease end together, and so do flow and HTTP answer.
 *
 *   POST /flows        → {"udp":"host:port","key":"…"}     the first line of an answer that stays open
 *   datagram: the key  → {"joined":true}                   from now on that address is the flow's
 *   datagrams          ↔ the target
 *   the end            → {"error":"lease_revoked","detail":"…"}
 *
 * The key shows which address is the holder's, also behind a NAT. Nothing is sent to an address that has not shown one.
 */
import { randomBytes } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { type AddressInfo, isIPv6 } from "node:net";
import { whenAdmitted } from "../admission.ts";
import { Driver, type Operations, type ProbeResult } from "../driver.ts";
import type { Fields } from "../fields.ts";
import { admitRequest, answerFailure, HttpListener } from "../http-listener.ts";
import { addressPattern, type Listening, readListening } from "../listening.ts";
import { plainPathOf } from "../request-target.ts";
import { probeService, readProbe, type ServiceProbe } from "../service-probe.ts";
import { type FlowPlace, UdpFlow } from "./udp-flow.ts";

interface UdpOptions {
  readonly target: URL;
  readonly listening: Listening;
  readonly probe: ServiceProbe | null;
  readonly connectMs: number;
}

const keyBytes = 18;
/** A free TCP port may be taken as a UDP port. */
const portAttemptsMax = 20;

export function readUdpOptions(fields: Fields, folder: string): UdpOptions {
  return {
    target: fields.address("target", addressPattern, "give host:port", "udp://"),
    listening: readListening(fields),
    probe: readProbe(fields, folder),
    connectMs: fields.integer("connect_ms", [1, 3_600_000], 5_000),
  };
}

/** The two listeners, on one port. */
interface Doors {
  readonly control: HttpListener;
  readonly socket: Socket;
}

export class UdpDriver extends Driver<UdpOptions> {
  /** What datagrams do, nobody here can see. */
  static readonly operations: Operations = { connect: "opaque" };
  private doors: Doors | null = null;
  private readonly flows = new Set<UdpFlow>();
  private readonly byKey = new Map<string, UdpFlow>();
  private readonly byPeer = new Map<string, UdpFlow>();

  override async start(): Promise<void> {
    for (let attempt = 1; this.doors === null; attempt++) {
      try {
        this.doors = await this.open();
      } catch (error) {
        const isTaken = (error as NodeJS.ErrnoException).code === "EADDRINUSE";
        if (!isTaken || this.options.listening.port !== 0 || attempt === portAttemptsMax) throw error;
      }
    }
  }

  async bind(): Promise<string> {
    // The token and the flow's key go over TLS; the datagrams are as they are.
    return `${this.place.tls === null ? "udp" : "udps"}://${this.doors?.control.address}`;
  }

  async probe(signal: AbortSignal): Promise<ProbeResult> {
    if (this.flows.size > 0) return { clean: false, detail: `${this.flows.size} flows are open` };
    const { probe } = this.options;
    if (probe === null) return { clean: true, detail: "no flow is open" };
    return await probeService(probe, this.leaseJson("probe", null), signal);
  }

  async reset(): Promise<void> {
    this.doors?.control.server.closeAllConnections();
  }

  override async stop(): Promise<void> {
    const { doors } = this;
    this.doors = null;
    if (doors === null) return;
    await doors.control.close();
    doors.socket.close();
  }

  private async open(): Promise<Doors> {
    const control = new HttpListener(this.options.listening, this.place.tls, {
      request: (request, response) => this.serve(request, response),
    });
    await control.open();
    const { address, port } = control.server.address() as AddressInfo;
    // Addresses only: nothing is looked up, so that a datagram leaves at once or not at all.
    const socket = createSocket({
      type: isIPv6(address) ? "udp6" : "udp4",
      lookup: (host, _options, done) => done(null, host, 0),
    });
    try {
      const listening = once(socket, "listening");
      socket.bind(port, address);
      await listening;
    } catch (error) {
      socket.close();
      await control.close();
      throw error;
    }
    socket.on("error", () => {});
    socket.on("message", (datagram, from) => this.receive(datagram, from));
    return { control, socket };
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const { doors } = this;
    let flow: UdpFlow | null = null;
    const admitted = admitRequest(this.place.admission, request, { operation: "connect" }, (failure) => {
      if (flow === null) answerFailure(response, failure);
      else flow.end(failure);
    });
    whenAdmitted(admitted, (pass) => {
      if ("code" in pass) return answerFailure(response, pass);
      const isFlow = request.method === "POST" && plainPathOf(request.url ?? "") === "/flows";
      if (!isFlow || doors === null || request.socket.destroyed) {
        pass.close();
        return answerFailure(response, { code: "not_found", detail: "There is POST /flows." });
      }
      const key = randomBytes(keyBytes).toString("base64url");
      const place: FlowPlace = {
        socket: doors.socket,
        address: doors.control.address ?? "",
        target: this.options.target,
        connectMs: this.options.connectMs,
        over: (ended) => this.forget(ended),
      };
      flow = new UdpFlow(key, response, pass, place);
      this.flows.add(flow);
      this.byKey.set(key, flow);
      flow.open();
    });
  }

  private receive(datagram: Buffer, from: RemoteInfo): void {
    const peer = peerOf(from);
    const flow = this.byPeer.get(peer);
    if (flow !== undefined) return flow.forward(datagram);
    // Only a key opens anything, and everything else is dropped without a word: the address may be a forged one.
    const joining = datagram.length <= keyBytes * 2 ? this.byKey.get(datagram.toString("latin1")) : undefined;
    if (joining?.join(from) === true) this.byPeer.set(peer, joining);
  }

  private forget(flow: UdpFlow): void {
    this.flows.delete(flow);
    this.byKey.delete(flow.key);
    if (flow.peer !== null) this.byPeer.delete(peerOf(flow.peer));
  }
}

function peerOf({ address, port }: Pick<RemoteInfo, "address" | "port">): string {
  return `${address}|${port}`;
}
