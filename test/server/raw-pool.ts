/** Sends raw requests over a few connections, byte for byte, each answered before the next is sent. */
import { connect, type Socket } from "node:net";
import type { RawAnswer } from "./raw-client.ts";

export class RawPool {
  private readonly port: number;
  private readonly idle: Line[] = [];
  private readonly waiting: ((line: Line) => void)[] = [];

  constructor(port: number, size: number) {
    this.port = port;
    for (let count = 0; count < size; count++) this.idle.push(new Line(this.port));
  }

  async send(bytes: Buffer): Promise<RawAnswer> {
    const line = this.idle.pop() ?? (await new Promise<Line>((resolve) => this.waiting.push(resolve)));
    try {
      return await line.send(bytes);
    } finally {
      const next = this.waiting.shift();
      if (next === undefined) this.idle.push(line);
      else next(line);
    }
  }

  close(): void {
    for (const line of this.idle) line.close();
  }
}

const silenceMs = 8_000;

class Line {
  private readonly port: number;
  private socket: Socket | null = null;
  private received = Buffer.alloc(0);
  private settle: ((answer: RawAnswer) => void) | null = null;

  constructor(port: number) {
    this.port = port;
  }

  send(bytes: Buffer): Promise<RawAnswer> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.finish({ status: 0, head: "no answer in time", body: "" }), silenceMs);
      this.settle = (answer) => {
        clearTimeout(timer);
        resolve(answer);
      };
      this.open().write(bytes);
    });
  }

  close(): void {
    this.socket?.destroy();
    this.socket = null;
  }

  private open(): Socket {
    if (this.socket?.writable === true) return this.socket;
    const socket = connect(this.port, "127.0.0.1");
    this.socket = socket;
    this.received = Buffer.alloc(0);
    socket.on("data", (chunk: Buffer) => {
      if (this.socket !== socket) return;
      this.received = Buffer.concat([this.received, chunk]);
      this.look();
    });
    const gone = (): void => {
      if (this.socket !== socket) return;
      this.socket = null;
      this.finish({ status: 0, head: this.received.toString("latin1"), body: "" });
    };
    socket.on("error", gone);
    socket.on("close", gone);
    return socket;
  }

  private look(): void {
    const end = this.received.indexOf("\r\n\r\n");
    if (end < 0) return;
    const head = this.received.subarray(0, end).toString("latin1");
    const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
    if (this.received.length < end + 4 + length) return;
    const body = this.received.subarray(end + 4, end + 4 + length).toString();
    this.received = this.received.subarray(end + 4 + length);
    // Each input is one request: a second response would mean request smuggling.
    const isClean = this.received.length === 0;
    if (/connection: close/i.test(head)) this.close();
    this.finish({ status: isClean ? Number(head.slice(9, 12)) : -1, head, body });
  }

  private finish(answer: RawAnswer): void {
    const { settle } = this;
    this.settle = null;
    if (answer.status === 0) this.close();
    settle?.(answer);
  }
}
