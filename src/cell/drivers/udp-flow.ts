/**
 * One flow of datagrams between a holder's address and the target, from POST /flows to its end:
 *
 *   opening (the target's name is looked up) → waiting for the key → joined → over
 */
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import type { ServerResponse } from "node:http";
import { isIPv6 } from "node:net";
import type { Pass } from "../binding.ts";
import { type AccessFailure, failureText, reasonOf } from "../failure.ts";
import { answerFailure, whenOver } from "../http-listener.ts";
import { bareHost } from "../listening.ts";

export interface FlowPlace {
  /** The cell's own, by which the holder's datagrams come and go. */
  readonly socket: Socket;
  /** Of that socket, as holders reach it. */
  readonly address: string;
  readonly target: URL;
  readonly connectMs: number;
  /** Called once, when nothing can pass any more. */
  readonly over: (flow: UdpFlow) => void;
}

/** How long a holder has to show the key. */
const joinMs = 10_000;
/** Datagrams that wait for the system to take them; those beyond are lost, as datagrams may be. */
const queuedBytesMax = 2 ** 20;

const lookupTimeout: AccessFailure = {
  code: "upstream_timeout",
  detail: "The target's name could not be looked up in time.",
};
const joinTimeout: AccessFailure = {
  code: "request_timeout",
  detail: "The flow's key did not come as a datagram in time.",
};

export class UdpFlow {
  readonly key: string;
  peer: RemoteInfo | null = null;
  private readonly response: ServerResponse;
  private readonly pass: Pass;
  private readonly place: FlowPlace;
  private readonly upstream: Socket;
  private timer: NodeJS.Timeout | undefined;
  private isOver = false;

  constructor(key: string, response: ServerResponse, pass: Pass, place: FlowPlace) {
    this.key = key;
    this.response = response;
    this.pass = pass;
    this.place = place;
    this.upstream = createSocket(isIPv6(bareHost(place.target)) ? "udp6" : "udp4");
  }

  open(): void {
    const { upstream, response, place } = this;
    this.limit(place.connectMs, lookupTimeout);
    whenOver(response, () => this.close());
    upstream.on("error", (error) => {
      // Once it is connected an error is news of a datagram that was lost: the target may come back.
      if (!response.headersSent)
        this.pass.cut({ code: "upstream_failed", detail: `The target has no address: ${reasonOf(error)}` });
    });
    upstream.on("close", () => this.pass.close());
    upstream.on("message", (datagram) => this.answer(datagram));
    upstream.on("connect", () => {
      if (this.isOver) return;
      response.writeHead(200, { "content-type": "application/x-ndjson", "cache-control": "no-store" });
      this.say({ udp: place.address, key: this.key });
      this.limit(joinMs, joinTimeout);
    });
    upstream.connect(Number(place.target.port), bareHost(place.target));
  }

  /** Whether the flow is that address's from now on. The first one that shows the key has it. */
  join(peer: RemoteInfo): boolean {
    if (this.peer !== null || this.isOver || !this.pass.check()) return false;
    this.peer = peer;
    clearTimeout(this.timer);
    this.say({ joined: true });
    return true;
  }

  /** A datagram of the holder's. */
  forward(datagram: Buffer): void {
    // The key comes again where the holder has not heard yet that it arrived.
    if (this.isOver || (datagram.length === this.key.length && datagram.toString("latin1") === this.key)) return;
    if (this.upstream.getSendQueueSize() > queuedBytesMax || !this.pass.take(datagram.length, "in")) return;
    this.upstream.send(datagram, () => {});
  }

  /** By the pass that was cut: the lease is over, or the budget. */
  end(failure: AccessFailure): void {
    const { response } = this;
    if (!response.headersSent) answerFailure(response, failure);
    else if (!response.writableEnded) response.end(`${failureText(failure)}\n`);
    this.close();
  }

  private answer(datagram: Buffer): void {
    const { peer, place } = this;
    if (peer === null || this.isOver || place.socket.getSendQueueSize() > queuedBytesMax) return;
    if (this.pass.take(datagram.length, "out")) place.socket.send(datagram, peer.port, peer.address, () => {});
  }

  private close(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.timer);
    this.place.over(this);
    this.upstream.close();
  }

  private limit(ms: number, failure: AccessFailure): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.pass.cut(failure), ms);
  }

  private say(line: object): void {
    if (this.pass.check()) this.response.write(`${JSON.stringify(line)}\n`);
  }
}
