/**
 * The client's half of a WebSocket (RFC 6455) on a plain socket: text frames, no extensions. All frames of a turn leave in
 * one write, and text is read where it arrived.
 *
 *   | FIN, opcode | MASK, 7 bits of length | 16 or 64 bits of length | mask | payload |
 */
import { createHash, randomBytes, randomFillSync } from "node:crypto";
import type { ClientRequest } from "node:http";
import type { Socket } from "node:net";
import type { FrameEvents, FramePeer, FrameSocket } from "../frame-socket.ts";

const opcodes = { continuation: 0, text: 1, binary: 2, close: 8, ping: 9, pong: 10 } as const;
const fin = 0x80;
const masked = 0x80;
/** Longer ones are not ours: the server's frames have at most about 256 KiB, and one answer at most a few MiB. */
const messageBytesMax = 256 * 2 ** 20;
const handshakeMs = 10_000;
const handshakeGuid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

export function openNodeSocket(peer: FramePeer, events: FrameEvents): FrameSocket {
  return new NodeWebSocket(peer, events);
}

class NodeWebSocket implements FrameSocket {
  private readonly events: FrameEvents;
  private readonly handshake: ClientRequest;
  private socket: Socket | null = null;
  private isOver = false;
  /** What has come and is not a whole frame yet. */
  private rest: Buffer | null = null;
  /** The frames of a message that is not whole yet. */
  private parts: Buffer[] = [];
  private partBytes = 0;

  constructor({ url, headers, tls }: FramePeer, events: FrameEvents) {
    this.events = events;
    const key = randomBytes(16).toString("base64");
    const accept = createHash("sha1")
      .update(key + handshakeGuid)
      .digest("base64");
    // An import would load Node's fetch with it, which takes longer than the rest of a short command.
    const { request } = process.getBuiltinModule(url.startsWith("https:") ? "node:https" : "node:http");
    this.handshake = request(url, {
      ...tls,
      agent: false,
      timeout: handshakeMs,
      headers: {
        ...headers,
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": key,
      },
    });
    const fail = (): void => this.end();
    this.handshake.on("upgrade", ({ headers: answer }, socket: Socket, head: Buffer) => {
      if (this.isOver || answer["sec-websocket-accept"] !== accept) {
        socket.destroy();
        return fail();
      }
      this.begin(socket, head);
    });
    this.handshake.on("response", (response) => {
      response.resume();
      this.handshake.destroy();
      fail();
    });
    this.handshake.on("timeout", () => this.handshake.destroy());
    this.handshake.on("error", fail);
    this.handshake.on("close", () => this.socket === null && fail());
    this.handshake.end();
  }

  send(text: string): void {
    this.socket?.write(frameOf(opcodes.text, text));
  }

  close(): void {
    const { socket } = this;
    if (socket === null) this.handshake.destroy();
    else if (!socket.destroyed) {
      socket.write(frameOf(opcodes.close, ""));
      socket.end();
      // A peer that is gone would keep the socket, and the process, for minutes.
      socket.unref();
      socket.setTimeout(handshakeMs, () => socket.destroy());
    }
    this.end();
  }

  private begin(socket: Socket, head: Buffer): void {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.setTimeout(0);
    socket.on("data", (bytes: Buffer) => this.take(bytes));
    socket.on("error", () => this.end());
    socket.on("end", () => socket.end());
    socket.on("close", () => this.end());
    this.events.opened();
    if (head.length > 0) this.take(head);
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.events.closed();
  }

  private take(arrived: Buffer): void {
    let bytes = arrived;
    if (this.rest !== null) bytes = Buffer.concat([this.rest, arrived]);
    this.rest = null;
    let at = 0;
    while (!this.isOver) {
      const frame = readHead(bytes, at);
      if (frame === null) break;
      const end = frame.from + frame.length;
      if (frame.isMasked || frame.length > messageBytesMax) return this.abort();
      if (end > bytes.length) break;
      this.frame(frame, bytes.subarray(frame.from, end));
      at = end;
    }
    if (at < bytes.length) this.rest = at === 0 ? bytes : bytes.subarray(at);
  }

  private frame({ opcode, isLast }: FrameHead, payload: Buffer): void {
    switch (opcode) {
      case opcodes.text:
        if (isLast && this.parts.length === 0) return this.events.received(payload.toString("utf8"));
        if (this.parts.length > 0) return this.abort();
        return this.collect(payload, isLast);
      case opcodes.continuation:
        if (this.parts.length === 0) return this.abort();
        return this.collect(payload, isLast);
      case opcodes.ping:
        this.socket?.write(frameOf(opcodes.pong, payload.toString("latin1")));
        return;
      case opcodes.pong:
        return;
      case opcodes.close:
        return this.close();
      default:
        return this.abort();
    }
  }

  private collect(payload: Buffer, isLast: boolean): void {
    this.parts.push(payload);
    this.partBytes += payload.length;
    if (this.partBytes > messageBytesMax) return this.abort();
    if (!isLast) return;
    const whole = Buffer.concat(this.parts);
    this.parts = [];
    this.partBytes = 0;
    this.events.received(whole.toString("utf8"));
  }

  /** The peer does not keep to the protocol. */
  private abort(): void {
    this.socket?.destroy();
    this.end();
  }
}

interface FrameHead {
  readonly opcode: number;
  readonly isLast: boolean;
  readonly isMasked: boolean;
  readonly from: number;
  readonly length: number;
}

/** Null where more has to come first. */
function readHead(bytes: Buffer, at: number): FrameHead | null {
  if (bytes.length < at + 2) return null;
  const first = bytes[at] ?? 0;
  const second = bytes[at + 1] ?? 0;
  let length = second & 0x7f;
  let from = at + 2;
  if (length === 126) {
    if (bytes.length < at + 4) return null;
    length = bytes.readUInt16BE(at + 2);
    from += 2;
  } else if (length === 127) {
    if (bytes.length < at + 10) return null;
    length = bytes.readUInt32BE(at + 2) * 2 ** 32 + bytes.readUInt32BE(at + 6);
    from += 8;
  }
  return { opcode: first & 0x0f, isLast: (first & fin) !== 0, isMasked: (second & masked) !== 0, from, length };
}

const masks = Buffer.alloc(4_096);
let masksAt = masks.length;

/** The payload begins at a multiple of four, so that it is masked by words. */
function frameOf(opcode: number, text: string): Buffer {
  const length = opcode === opcodes.text ? Buffer.byteLength(text) : text.length;
  const headBytes = (length < 126 ? 2 : length < 2 ** 16 ? 4 : 10) + 4;
  const from = Math.ceil(headBytes / 4) * 4;
  const bytes = Buffer.allocUnsafe((from + length + 3) & ~3);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length >> 2);
  const at = from - headBytes;
  bytes[at] = fin | opcode;
  if (length < 126) bytes[at + 1] = masked | length;
  else if (length < 2 ** 16) {
    bytes[at + 1] = masked | 126;
    bytes.writeUInt16BE(length, at + 2);
  } else {
    bytes[at + 1] = masked | 127;
    bytes.writeUInt32BE(Math.floor(length / 2 ** 32), at + 2);
    bytes.writeUInt32BE(length >>> 0, at + 6);
  }
  if (masksAt === masks.length) {
    randomFillSync(masks);
    masksAt = 0;
  }
  masks.copy(bytes, from - 4, masksAt, masksAt + 4);
  masksAt += 4;
  bytes.write(text, from, opcode === opcodes.text ? "utf8" : "latin1");
  maskWords(words, from >> 2, words[(from >> 2) - 1] ?? 0);
  return bytes.subarray(at, from + length);
}

/** A function of its own, on signed numbers: it is compiled after a few frames, while the one around it takes thousands. */
function maskWords(words: Int32Array, from: number, mask: number): void {
  for (let word = from; word < words.length; word++) words[word] = (words[word] ?? 0) ^ mask;
}
