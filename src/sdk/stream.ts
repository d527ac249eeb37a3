/**
 * Calls over one WebSocket, many in flight. All calls of one turn of the event loop leave in one frame, and answers
 * come by id as they are ready. When it breaks, or has fallen silent, every waiting call fails, and the caller's retry decides.
 */
import type { Dispatcher } from "./platform-tls.ts";
import { timeUp } from "./timing.ts";
import { type Credentials, headersFor, type Wire, WireBroken, type WireReply } from "./transport.ts";

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
const idleMs = 5_000;

/** Node's second argument; browsers have none of this. */
type WebSocketInit = NonNullable<ConstructorParameters<typeof WebSocket>[1]>;

interface Waiting {
  readonly resolve: (answered: WireReply) => void;
  readonly reject: (error: WireBroken) => void;
  /** Takes it off its signal. */
  readonly forget: () => void;
  isSent: boolean;
}

/** Whether this platform can open one with these credentials: a browser's WebSocket carries no headers. */
export function canStream({ secret, tenant }: Credentials): boolean {
  if (typeof WebSocket !== "function") return false;
  const { process, Deno } = globalThis as { process?: { versions?: { node?: string } }; Deno?: unknown };
  return (secret === null && tenant === null) || (Deno === undefined && process?.versions?.node !== undefined);
}

export class Stream implements Wire {
  /** Settles once it can be used, or cannot. */
  readonly opened: Promise<boolean>;
  private readonly socket: WebSocket;
  private readonly onEnd: () => void;
  private readonly waiting = new Map<number, Waiting>();
  private outbox: { readonly id: number; readonly text: string }[] = [];
  private flushIsSet = false;
  private nextId = 1;
  private isUp = false;
  private isOver = false;
  private heard = 0;
  private idleTimer: ReturnType<typeof setTimeout> | undefined;
  private ticking: ReturnType<typeof setInterval> | undefined;
  private quietTicks = 0;

  constructor(url: string, credentials: Credentials, dispatcher: Dispatcher | null, onEnd: () => void) {
    this.onEnd = onEnd;
    const headers = headersFor(credentials);
    const options = { ...(Object.keys(headers).length > 0 && { headers }), ...(dispatcher !== null && { dispatcher }) };
    const address = `${url.replace(/^http/, "ws")}/v1/stream`;
    this.socket = new WebSocket(address, ...(Object.keys(options).length === 0 ? [] : [options as WebSocketInit]));
    this.opened = new Promise((resolve) => {
      this.socket.addEventListener("open", () => {
        this.isUp = true;
        if (this.waiting.size === 0) this.setIdleTimer();
        resolve(true);
      });
      this.socket.addEventListener("close", () => {
        resolve(false);
        this.close();
      });
    });
    this.socket.addEventListener("error", () => this.close());
    this.socket.addEventListener("message", ({ data }) => this.receive(String(data)));
  }

  get isOpen(): boolean {
    return this.isUp && !this.isOver;
  }

  /** Calls that wait for an answer. */
  get inFlight(): number {
    return this.waiting.size;
  }

  send(name: string, input: object, signal: AbortSignal): Promise<WireReply> {
    return new Promise((resolve, reject) => {
      if (this.isOver) return reject(new WireBroken("the stream has ended", false));
      const id = this.nextId++;
      const heardBefore = this.heard;
      const onAbort = (): void => {
        const { isSent = true } = this.waiting.get(id) ?? {};
        this.settle(id);
        reject(new WireBroken("no answer in time", isSent));
        // Nothing at all was heard since: the peer is gone, and only a new connection will tell.
        if (isSent && heardBefore === this.heard && signal.reason === timeUp) this.close();
      };
      if (signal.aborted) return reject(new WireBroken("no answer in time", false));
      signal.addEventListener("abort", onAbort, { once: true });
      clearTimeout(this.idleTimer);
      this.listen();
      const forget = (): void => signal.removeEventListener("abort", onAbort);
      this.waiting.set(id, { resolve, reject, forget, isSent: false });
      this.outbox.push({ id, text: `{"id":${id},"op":"${name}","input":${JSON.stringify(input)}}` });
      this.setFlush();
    });
  }

  private setFlush(): void {
    if (this.flushIsSet) return;
    this.flushIsSet = true;
    const flush = (): void => {
      this.flushIsSet = false;
      this.flush();
    };
    if (this.isUp) queueMicrotask(flush);
    else this.opened.then(flush);
  }

  private flush(): void {
    if (!this.isOpen) return;
    const { outbox } = this;
    this.outbox = [];
    let frame: string[] = [];
    let chars = 0;
    const sendFrame = (): void => {
      if (frame.length > 0) this.socket.send(frame.length === 1 ? (frame[0] ?? "") : `[${frame.join(",")}]`);
      frame = [];
      chars = 0;
    };
    for (const { id, text } of outbox) {
      const waiting = this.waiting.get(id);
      if (waiting === undefined) continue; // Given up before it left.
      waiting.isSent = true;
      if (frame.length >= frameCommandsMax || chars + text.length > frameCharsMax) sendFrame();
      frame.push(text);
      chars += text.length;
    }
    sendFrame();
  }

  private listen(): void {
    this.ticking ??= setInterval(() => {
      if (this.waiting.size === 0) return this.stopListening();
      this.quietTicks++;
      if (this.quietTicks === ticksBeforePing && this.isOpen) this.socket.send(pingFrame);
      if (this.quietTicks >= ticksBeforeEnd) this.close();
    }, tickMs);
  }

  private stopListening(): void {
    clearInterval(this.ticking);
    this.ticking = undefined;
    this.quietTicks = 0;
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
    for (const one of Array.isArray(frame) ? (frame as readonly unknown[]) : [frame]) {
      const { id, status, body } = (one ?? {}) as { readonly id?: unknown; readonly status?: unknown; body?: unknown };
      if (typeof id !== "number" || typeof status !== "number") continue;
      const waiting = this.waiting.get(id);
      this.settle(id);
      waiting?.resolve({ status, body });
    }
  }

  private settle(id: number): void {
    this.waiting.get(id)?.forget();
    this.waiting.delete(id);
    if (this.waiting.size === 0) this.setIdleTimer();
  }

  private setIdleTimer(): void {
    clearTimeout(this.idleTimer);
    if (!this.isOver) this.idleTimer = setTimeout(() => this.close(), idleMs);
  }

  close(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.idleTimer);
    this.stopListening();
    this.socket.close();
    const broken = [...this.waiting.values()];
    this.waiting.clear();
    for (const { reject, forget, isSent } of broken) {
      forget();
      reject(new WireBroken("the stream was cut", isSent));
    }
    this.onEnd();
  }
}
