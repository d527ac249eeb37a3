/** A client that sends raw bytes, for requests that no HTTP library would send. */
import { connect } from "node:net";

export interface RawAnswer {
  /** 0 if there was none. */
  readonly status: number;
  readonly head: string;
  readonly body: string;
}

/** Sends, and reads until the response is complete or the connection has ended. */
export function sendRaw(port: number, bytes: string | Buffer, withinMs = 20_000): Promise<RawAnswer> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    let received = Buffer.alloc(0);
    const timer = setTimeout(() => socket.destroy(), withinMs);
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(parse(received));
    };
    socket.on("connect", () => socket.write(bytes));
    socket.on("data", (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
      if (isWhole(received)) finish();
    });
    socket.on("error", finish);
    socket.on("close", finish);
  });
}

function isWhole(received: Buffer): boolean {
  const end = received.indexOf("\r\n\r\n");
  if (end < 0) return false;
  const head = received.subarray(0, end).toString("latin1");
  // No body follows an upgrade.
  if (head.startsWith("HTTP/1.1 101")) return true;
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  return length !== undefined && received.length >= end + 4 + Number(length);
}

function parse(received: Buffer): RawAnswer {
  const text = received.toString();
  const end = text.indexOf("\r\n\r\n");
  return {
    status: Number(/^HTTP\/1\.1 (\d{3})/.exec(text)?.[1] ?? 0),
    head: end < 0 ? text : text.slice(0, end),
    body: end < 0 ? "" : text.slice(end + 4),
  };
}
