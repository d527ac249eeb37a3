/**
 * The frames of a WebSocket as they pass (RFC 6455 §5.2), as far as it takes to know where one ends: only there a frame
 * of our own can be put between them.
 */
import { gatewayStatuses } from "../../protocol/resources/gateway-codes.ts";
import type { AccessFailure } from "../failure.ts";

const closeOpcode = 0x8;
const reasonBytesMax = 123;

export class FrameBorders {
  /** What has come of a header that is not complete. */
  private header: number[] = [];
  private payloadLeft = 0;
  private isClosed = false;

  /** Whether a close frame can follow what has passed. */
  get canClose(): boolean {
    return this.header.length === 0 && this.payloadLeft === 0 && !this.isClosed;
  }

  pass(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      const skipped = Math.min(this.payloadLeft, chunk.length - at);
      this.payloadLeft -= skipped;
      at += skipped;
      const byte = chunk[at];
      if (byte === undefined) return;
      this.header.push(byte);
      at++;
      this.endHeader();
    }
  }

  private endHeader(): void {
    const [first = 0, second] = this.header;
    if (second === undefined) return;
    const short = second & 0x7f;
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    const maskBytes = second & 0x80 ? 4 : 0;
    if (this.header.length < 2 + lengthBytes + maskBytes) return;
    const long = this.header.slice(2, 2 + lengthBytes).reduce((sum, byte) => sum * 256 + byte, 0);
    this.payloadLeft = lengthBytes === 0 ? short : long;
    this.isClosed ||= (first & 0x0f) === closeOpcode;
    this.header = [];
  }
}

/** The failure's status above 4000, which is the range for applications, and its code as the reason (G9). */
export function closeFrame({ code }: AccessFailure): Buffer {
  const reason = Buffer.from(code).subarray(0, reasonBytesMax);
  const status = Buffer.alloc(2);
  status.writeUInt16BE(4_000 + gatewayStatuses[code]);
  return Buffer.concat([Buffer.from([0x80 | closeOpcode, status.length + reason.length]), status, reason]);
}
