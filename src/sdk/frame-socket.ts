/**
 * A connection that carries frames of text. Under Node it is a socket of our own framing: the platform's WebSocket costs as
 * much as the rest of a call (decision 0032). Elsewhere it is the platform's.
 */
import type { ClientTls } from "../trust/client-tls.ts";
import { nodeWires } from "./platform.ts";

export interface FrameEvents {
  opened(): void;
  received(text: string): void;
  /** Once, whichever end closed it. */
  closed(): void;
}

export interface FrameSocket {
  send(text: string): void;
  close(): void;
}

/** Where frames go, and what is shown when the connection is opened. */
export interface FramePeer {
  /** http or https. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly tls: ClientTls | null;
}

export function openFrameSocket(peer: FramePeer, events: FrameEvents): FrameSocket {
  const loading = nodeWires();
  return loading === null ? platformSocket(peer, events) : new LoadedSocket(peer, events, loading);
}

/** Whether this platform can open one: a browser's WebSocket carries no headers. */
export function canOpenFrameSocket(hasHeaders: boolean): boolean {
  return nodeWires() !== null || (typeof WebSocket === "function" && (!hasHeaders || takesHeaders()));
}

function takesHeaders(): boolean {
  const { process, Deno } = globalThis as { process?: { versions?: { node?: string } }; Deno?: unknown };
  return Deno === undefined && process?.versions?.node !== undefined;
}

/** Waits for the module that has Node's part. */
class LoadedSocket implements FrameSocket {
  private socket: FrameSocket | null = null;
  private isClosed = false;

  constructor(peer: FramePeer, events: FrameEvents, loading: NonNullable<ReturnType<typeof nodeWires>>) {
    loading.then(
      ({ openNodeSocket }) => {
        if (!this.isClosed) this.socket = openNodeSocket(peer, events);
      },
      () => events.closed(),
    );
  }

  send(text: string): void {
    this.socket?.send(text);
  }

  close(): void {
    this.isClosed = true;
    this.socket?.close();
  }
}

/** Node's and Bun's second argument; browsers have none of this. */
type WebSocketInit = NonNullable<ConstructorParameters<typeof WebSocket>[1]>;

function platformSocket({ url, headers }: FramePeer, events: FrameEvents): FrameSocket {
  const init = Object.keys(headers).length === 0 ? [] : [{ headers } as WebSocketInit];
  const socket = new WebSocket(url.replace(/^http/, "ws"), ...init);
  socket.addEventListener("open", () => events.opened());
  socket.addEventListener("close", () => events.closed());
  socket.addEventListener("error", () => events.closed());
  socket.addEventListener("message", ({ data }) => events.received(String(data)));
  return socket;
}
