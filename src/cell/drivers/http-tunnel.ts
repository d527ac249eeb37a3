/** An upgraded connection: bytes between a client and the service, from the service's 101 until the lease ends. */
import type { ClientRequest, IncomingMessage } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Pass } from "../binding.ts";
import type { AccessFailure } from "../failure.ts";
import { refuseUpgrade } from "../http-listener.ts";
import { pump } from "../pump.ts";
import { closeWith, resetSocket } from "../reset-socket.ts";
import { closeFrame, FrameBorders } from "./websocket-frames.ts";

export class Tunnel {
  private readonly request: IncomingMessage;
  private readonly socket: Duplex;
  /** What came with the request. */
  private readonly head: Buffer;
  private question: ClientRequest | null = null;
  private upstream: Socket | null = null;
  /** Of a WebSocket, whose frames can carry the failure (G9); other protocols are only reset. */
  private readonly borders: FrameBorders | null;
  private isCut = false;

  constructor(request: IncomingMessage, socket: Duplex, head: Buffer, protocol: string) {
    this.request = request;
    this.socket = socket;
    this.head = head;
    this.borders = protocol.toLowerCase() === "websocket" ? new FrameBorders() : null;
  }

  open(question: ClientRequest, pass: Pass): void {
    this.question = question;
    this.socket.on("close", () => {
      pass.close();
      this.drop();
    });
    if (this.socket.destroyed) {
      pass.close();
      return this.drop();
    }
    question.on("response", (answer) => {
      answer.resume();
      pass.cut({ code: "upstream_failed", detail: `The service answered ${answer.statusCode} to the upgrade.` });
    });
    question.on("upgrade", (answer, upstream, head) => this.join(answer, upstream, head, pass));
    question.end();
  }

  /**
   * With the typed answer as long as there is none from the service, then with a close frame. In the middle of a frame,
   * or where earlier ones still wait for a client that does not read, there is only the reset.
   */
  cut(failure: AccessFailure): void {
    this.isCut = true;
    if (this.upstream === null) refuseUpgrade(this.socket, failure);
    else if (this.borders?.canClose === true && this.socket.writableLength === 0)
      closeWith(this.socket, closeFrame(failure));
    else resetSocket(this.request.socket);
    this.drop();
  }

  private join(answer: IncomingMessage, upstream: Socket, head: Buffer, pass: Pass): void {
    if (!pass.check()) return void upstream.destroy();
    const { socket } = this;
    this.upstream = upstream;
    upstream.on("error", () => upstream.destroy());
    upstream.on("close", () => {
      // Nothing can be done under the lease any more; the client may take its time with the close frame.
      if (this.isCut) pass.close();
      else socket.destroy();
    });
    socket.write(switching(answer));
    if (head.length > 0 && pass.take(head.length, "out")) {
      socket.write(head);
      this.borders?.pass(head);
    }
    if (this.head.length > 0 && pass.take(this.head.length, "in")) upstream.write(this.head);
    pump(socket, upstream, pass, "in");
    pump(upstream, socket, pass, "out");
    upstream.on("data", (chunk: Buffer) => {
      if (pass.cutBy === null) this.borders?.pass(chunk);
    });
  }

  private drop(): void {
    this.question?.destroy();
    this.upstream?.destroy();
  }
}

function switching({ statusMessage, rawHeaders }: IncomingMessage): string {
  const lines = [`HTTP/1.1 101 ${statusMessage ?? ""}`];
  for (let at = 0; at < rawHeaders.length; at += 2) lines.push(`${rawHeaders[at]}: ${rawHeaders[at + 1]}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}
