/**
 * One connection of a cell: its frames decoded, a time limit for its hello, and orders matched with their
 * answers. What the frames mean is decided by the callbacks.
 */
import type { RawData, WebSocket } from "ws";
import {
  type CellDo,
  type CellDone,
  type CellFrame,
  type CellHello,
  cellCloseCodes,
  cellLinkLimits,
  linkFrameText,
  linkReason,
  readCellFrame,
  type ServerFrame,
} from "../../protocol/resources/cell-link.ts";
import type { Caller } from "../service.ts";

/** A command, before it has its number. */
export type CellOrder = CellDo extends infer O ? (O extends CellDo ? Omit<O, "type" | "seq"> : never) : never;

export type AfterHello = Exclude<CellFrame, CellHello | CellDone>;

export interface LinkHandlers {
  /** Once, and first. */
  readonly hello: (link: CellLink, frame: CellHello) => void;
  readonly frame: (link: CellLink, frame: AfterHello) => void;
  readonly closed: (link: CellLink) => void;
  /** Each frame, for those who count. */
  readonly counted: (direction: "in" | "out", type: string) => void;
}

/** What may wait in memory for a cell that does not read. */
const bufferedBytesMax = 16 * 2 ** 20;
/** Frames of one cell that are not answered yet; an honest one has a few. */
const inFlightMax = 10_000;

export class CellLink {
  readonly caller: Caller;
  /** Of its certificate, where that must name the cell; null: any name will do. */
  readonly names: readonly string[] | null;
  private readonly socket: WebSocket;
  private readonly handlers: LinkHandlers;
  private readonly helloTimer: NodeJS.Timeout;
  private readonly pending = new Map<number, (done: CellDone | null) => void>();
  private lastSeq = 0;
  private inFlight = 0;
  private said: CellHello | null = null;
  private isOver = false;

  constructor(socket: WebSocket, caller: Caller, names: CellLink["names"], handlers: LinkHandlers) {
    this.socket = socket;
    this.caller = caller;
    this.names = names;
    this.handlers = handlers;
    this.helloTimer = setTimeout(() => this.refuseFrame("There was no hello in time."), cellLinkLimits.helloMsMax);
    this.helloTimer.unref();
    socket.on("message", (data, isBinary) => this.receive(data, isBinary));
    // A frame over the limit, or one that breaks the protocol; the close that follows ends the link.
    socket.on("error", () => socket.terminate());
    socket.on("close", () => this.end());
  }

  /** What it said at first. */
  get hello(): CellHello {
    if (this.said === null) throw new TypeError("the cell has not said hello yet");
    return this.said;
  }

  get hasSaidHello(): boolean {
    return this.said !== null;
  }

  get isOpen(): boolean {
    return !this.isOver;
  }

  /** The cell's answer; null if the link ended before there was one, and then nobody knows what was done. */
  order(order: CellOrder): Promise<CellDone | null> {
    if (this.isOver) return Promise.resolve(null);
    const seq = ++this.lastSeq;
    return new Promise((resolve) => {
      this.pending.set(seq, resolve);
      this.send({ type: "do", seq, ...order } as CellDo);
    });
  }

  send(frame: ServerFrame): void {
    if (this.isOver) return;
    if (this.socket.bufferedAmount > bufferedBytesMax) return this.drop();
    this.handlers.counted("out", frame.type);
    this.socket.send(linkFrameText(frame));
  }

  /** A frame's answer is on its way: as many may be under way as memory bears. */
  begin(): () => void {
    this.inFlight++;
    if (this.inFlight > inFlightMax) this.refuseFrame("Too many frames are unanswered; wait for the answers.");
    return () => {
      this.inFlight--;
    };
  }

  /** Tells why, and ends it. */
  refuse(code: string, message: string, closeCode: number): void {
    if (this.isOver) return;
    this.send({ type: "refused", code, message });
    this.socket.close(closeCode, code);
    this.end();
  }

  /** In order: nothing is left to be said. */
  close(): void {
    this.socket.close(1000);
    this.end();
  }

  /** Without a close frame: the peer does not read, or is considered gone. */
  drop(): void {
    this.socket.terminate();
    this.end();
  }

  private receive(data: RawData, isBinary: boolean): void {
    if (this.isOver) return;
    if (isBinary) return this.refuseFrame("Send frames of text, not of bytes.");
    const read = readCellFrame(data.toString());
    if (!read.ok) return this.refuseFrame(read.detail);
    const { frame } = read;
    this.handlers.counted("in", frame.type);
    if (frame.type === "hello") {
      if (this.said !== null) return this.refuseFrame("A cell says hello once on a connection.");
      this.said = frame;
      clearTimeout(this.helloTimer);
      return this.handlers.hello(this, frame);
    }
    if (this.said === null) return this.refuseFrame("The first frame is a hello.");
    if (frame.type === "done") return this.settle(frame);
    this.handlers.frame(this, frame);
  }

  /** A second answer, or one to nothing, changes nothing. */
  private settle(done: CellDone): void {
    const resolve = this.pending.get(done.seq);
    this.pending.delete(done.seq);
    resolve?.(done);
  }

  private refuseFrame(detail: string): void {
    this.refuse("invalid_request", linkReason(detail), cellCloseCodes.badFrame);
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    clearTimeout(this.helloTimer);
    const waiting = [...this.pending.values()];
    this.pending.clear();
    for (const resolve of waiting) resolve(null);
    this.handlers.closed(this);
  }
}
