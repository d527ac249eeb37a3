/**
 * Calls over one WebSocket, many in flight. All calls of one turn of the event loop leave in one frame, and answers
 * come by id as they are ready. When it breaks, or has fallen silent, every waiting call fails, and the caller's retry decides.
 */

import type { ClientTls } from "../trust/client-tls.ts";
import { canOpenFrameSocket, type FrameSocket, openFrameSocket } from "./frame-socket.ts";
import { holdMsOf } from "./idempotency.ts";
import { lastInTurn } from "./platform.ts";
import { type Credentials, headersFor, type Outgoing, WireBroken } from "./transport.ts";

/** The server takes this many commands in a frame, and frames up to 1 MiB; a little less leaves room for brackets. */
const frameCommandsMax = 1_024;
const frameCharsMax = 256 * 1_024;
/** Past this a call goes over HTTP: it would not fit into a frame if its characters were long. */
export const commandCharsMax = 200 * 1_024;
/** The server refuses more than 10,000 unanswered commands. */
export const inFlightMax = 8_000;
/**
 * While calls wait, the peer is listened to in ticks; after some without a word it is asked for one, and after some more
 * it is taken for dead. Ticks are counted and not time, so that a program that stood still does not blame the peer.
 */
const tickMs = 500;
const ticksBeforePing = 4;
const ticksBeforeEnd = 10;
/** Calls have ids from 1. */
const pingFrame = '{"id":0,"op":"healthz","input":{}}';
/** An open WebSocket keeps a process alive, so an idle one is closed. */
const ticksBeforeIdleEnd = 10;

/** Whether this platform can open one with these credentials. */
export function canStream({ secret, tenant }: Credentials): boolean {
  return canOpenFrameSocket(secret !== null || tenant !== null);
}

export class Stream {
  /** Settles once it can be used, or cannot. */
  readonly opened: Promise<boolean>;
  private readonly socket: FrameSocket;
  private readonly onEnd: () => void;
  private readonly waiting = new Map<number, Outgoing>();
  /** What leaves at the end of the turn: calls, each with its text. */
  private outbox: Outgoing[] = [];
  private texts: string[] = [];
  private isFlushSet = false;
  private nextId = 1;
  private isUp = false;
  private isOver = false;
  private heard = 0;
  private readonly ticking: ReturnType<typeof setInterval>;
  private quietTicks = 0;
  private idleTicks = 0;
  /** The next id when the last tick found nothing waiting. */
  private idleId = 0;
  private readonly flushNow = (): void => this.flush();

  constructor(url: string, credentials: Credentials, tls: ClientTls | null, onEnd: () => void) {
    this.onEnd = onEnd;
    // One timer for the connection: it listens while calls wait, and closes the connection when it is idle.
    this.ticking = setInterval(() => this.tick(), tickMs);
    let opened: (isUp: boolean) => void = () => undefined;
    this.opened = new Promise((resolve) => {
      opened = resolve;
    });
    const peer = { url: `${url}/v1/stream`, headers: headersFor(credentials), tls };
    this.socket = openFrameSocket(peer, {
      opened: () => {
        this.isUp = true;
        this.flush();
        opened(true);
      },
      received: (text) => this.receive(text),
      closed: () => {
        opened(false);
        this.close();
      },
    });
  }

  get isOpen(): boolean {
    return this.isUp && !this.isOver;
  }

  /** Calls that wait for an answer. */
  get inFlight(): number {
    return this.waiting.size;
  }

  /** `text`: its input in JSON. */
  send(call: Outgoing, text: string): void {
    if (this.isOver) return call.broken(new WireBroken("the stream has ended", false));
    const id = this.nextId++;
    call.frameId = id;
    call.isSent = false;
    this.waiting.set(id, call);
    this.outbox.push(call);
    this.texts.push(`{"id":${id},"op":"${call.name}","input":${text}}`);
    if (this.isFlushSet || !this.isUp) return;
    this.isFlushSet = true;
    lastInTurn(this.flushNow);
  }

  drop(call: Outgoing, isLate: boolean): void {
    const { frameId, isSent, heardBefore } = call;
    if (!this.waiting.delete(frameId) || !isSent || this.isOver) return;
    // A held call would bring to nobody what it is held for.
    if (holdMsOf(call.input) > 0) this.socket.send(`{"id":${frameId},"op":"drop"}`);
    // Nothing at all was heard since: the peer is gone, and only a new connection will tell.
    if (isLate && heardBefore === this.heard) this.close();
  }

  private flush(): void {
    this.isFlushSet = false;
    if (!this.isOpen) return;
    const { outbox, texts } = this;
    if (outbox.length === 0) return;
    this.outbox = [];
    this.texts = [];
    let frame = "";
    let count = 0;
    for (let index = 0; index < outbox.length; index++) {
      const call = outbox[index];
      const text = texts[index] ?? "";
      // Given up before it left.
      if (call === undefined || !this.waiting.has(call.frameId)) continue;
      call.isSent = true;
      call.heardBefore = this.heard;
      if (count >= frameCommandsMax || frame.length + text.length > frameCharsMax) {
        this.sendFrame(frame, count);
        frame = "";
        count = 0;
      }
      frame = count === 0 ? text : `${frame},${text}`;
      count++;
    }
    this.sendFrame(frame, count);
  }

  private sendFrame(frame: string, count: number): void {
    if (count > 0) this.socket.send(count === 1 ? frame : `[${frame}]`);
  }

  private receive(text: string): void {
    this.heard++;
    this.quietTicks = 0;
    let frame: unknown;
    try {
      frame = JSON.parse(text);
    } catch {
      return this.close();
    }
    if (!Array.isArray(frame)) return this.settle(frame);
    for (const one of frame as readonly unknown[]) this.settle(one);
  }

  private settle(reply: unknown): void {
    const { id, status, body } = (reply ?? {}) as { readonly id?: unknown; readonly status?: unknown; body?: unknown };
    if (typeof id !== "number" || typeof status !== "number") return;
    const call = this.waiting.get(id);
    if (call === undefined) return;
    this.waiting.delete(id);
    call.answered({ status, body });
  }

  private tick(): void {
    if (this.waiting.size === 0) {
      this.quietTicks = 0;
      if (this.nextId === this.idleId && this.isUp) this.idleTicks++;
      else this.idleTicks = 0;
      this.idleId = this.nextId;
      if (this.idleTicks >= ticksBeforeIdleEnd) this.close();
      return;
    }
    this.idleTicks = 0;
    this.quietTicks++;
    if (this.quietTicks === ticksBeforePing && this.isUp) this.socket.send(pingFrame);
    if (this.quietTicks >= ticksBeforeEnd) this.close();
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearInterval(this.ticking);
    const broken = [...this.waiting.values()];
    this.waiting.clear();
    this.outbox = [];
    this.texts = [];
    this.socket.close();
    this.onEnd();
    for (const call of broken) call.broken(new WireBroken("the stream was cut", call.isSent));
  }
}
