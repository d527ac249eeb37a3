/**
 * One commit as one block of the journal. All its texts are joined and encoded once, because many small strings cost
 * more than one large one; the layout has the numbers, and in place of each text its length.
 *
 *   ┌ magic ─ crc ─ number ─ length of all ─ length of the layout ─ mark ┐ layout (JSON) │ texts (UTF-8) │ zeros to 4 KiB
 *   └───────────────────────────── 32 bytes ────────────────────────────┘
 *
 * The mark is random, and known to the server alone: no text that a client stores can pass for a block.
 */
import assert from "node:assert/strict";
import type { SQLInputValue } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { FlatBatch } from "./flat-batch.ts";

/** Blocks begin at multiples of this: a write that is torn cannot harm the block before it. */
export const blockAlign = 4_096;
const headerBytes = 32;
export const markBytes = 8;
const magic = 0x4c53_4831;
/** Bytes of UTF-8 for one unit of UTF-16, at most. */
const bytesPerUnit = 3;

/** In the order of the layout. */
const lists = [
  "puts",
  "removes",
  "payloads",
  "payloadRemoves",
  "events",
  "ended",
  "endedTasks",
  "endedRequests",
  "receipts",
  "heads",
  "audits",
] as const satisfies readonly (keyof FlatBatch)[];

/** Encodes one block after the other into the same memory. */
export class BlockEncoder {
  readonly #mark: Buffer;
  #buffer = Buffer.alloc(64 * 1024);

  constructor(mark: Buffer) {
    this.#mark = mark;
  }

  /** Valid until the next call. */
  encode(number: number, batch: FlatBatch): Buffer {
    const { now, lastSeq, lastN, lastEnded } = batch.position;
    let layout = `[${now},${lastSeq},${lastN},${lastEnded}`;
    let texts = "";
    for (const name of lists) {
      const values = batch[name];
      layout += `,${values.length}`;
      for (const value of values) {
        if (typeof value === "string") {
          texts += value;
          layout += `,${-1 - value.length}`;
        } else {
          if (!(value === null || Number(value) >= 0))
            assert.fail(`${value} cannot be stored: negative numbers are lengths`);
          layout += `,${value}`;
        }
      }
    }
    layout += "]";
    this.#reserve(headerBytes + layout.length + texts.length * bytesPerUnit + blockAlign);
    const buffer = this.#buffer;
    // The layout is numbers and punctuation.
    let end = headerBytes + buffer.write(layout, headerBytes, "latin1");
    end += buffer.write(texts, end, "utf8");
    const whole = Math.ceil(end / blockAlign) * blockAlign;
    buffer.fill(0, end, whole);
    buffer.writeUInt32LE(magic, 0);
    buffer.writeDoubleLE(number, 8);
    buffer.writeUInt32LE(end, 16);
    buffer.writeUInt32LE(layout.length, 20);
    this.#mark.copy(buffer, 24);
    buffer.writeUInt32LE(crc32(buffer.subarray(8, end)), 4);
    return buffer.subarray(0, whole);
  }

  #reserve(bytes: number): void {
    if (bytes > this.#buffer.length) this.#buffer = Buffer.alloc(2 * bytes);
    // A batch of megabytes is rare; its memory is not kept.
    else if (this.#buffer.length > bufferBytesKept && bytes <= bufferBytesKept) {
      this.#buffer = Buffer.alloc(bufferBytesKept);
    }
  }
}

const bufferBytesKept = 4 * 1024 * 1024;

export interface Block {
  readonly number: number;
  readonly batch: FlatBatch;
}

interface BlockEnd {
  readonly number: number;
  readonly next: number;
}

/** Where a valid block ends, and its number; null where there is none: the end of a journal, or a torn write. */
function blockAt(bytes: Buffer, offset: number, mark: Buffer): BlockEnd | null {
  if (offset + headerBytes > bytes.length || bytes.readUInt32LE(offset) !== magic) return null;
  if (mark.compare(bytes, offset + 24, offset + headerBytes) !== 0) return null;
  const end = offset + bytes.readUInt32LE(offset + 16);
  if (end <= offset + headerBytes || end > bytes.length) return null;
  if (crc32(bytes.subarray(offset + 8, end)) !== bytes.readUInt32LE(offset + 4)) return null;
  const next = offset + Math.ceil((end - offset) / blockAlign) * blockAlign;
  return { number: bytes.readDoubleLE(offset + 8), next };
}

/** What is in a valid block. */
export function decodeBlock(bytes: Buffer, offset: number): Block {
  const end = offset + bytes.readUInt32LE(offset + 16);
  const textsAt = offset + headerBytes + bytes.readUInt32LE(offset + 20);
  const layout = JSON.parse(bytes.toString("latin1", offset + headerBytes, textsAt)) as (number | null)[];
  const texts = bytes.toString("utf8", textsAt, end);
  let [place, from] = [0, 0];
  const next = (): number => layout[place++] ?? 0;
  const position = { now: next(), lastSeq: next(), lastN: next(), lastEnded: next() };
  const batch: Record<string, unknown> = { position };
  for (const name of lists) {
    const values: SQLInputValue[] = new Array(next());
    for (let index = 0; index < values.length; index++) {
      const value = layout[place++] ?? null;
      if (value === null || value >= 0) values[index] = value;
      else {
        values[index] = texts.slice(from, from - value - 1);
        from += -value - 1;
      }
    }
    batch[name] = values;
  }
  return { number: bytes.readDoubleLE(offset + 8), batch: batch as unknown as FlatBatch };
}

/** The blocks of a journal file, from its beginning. */
export function* blocksIn(
  bytes: Buffer,
  mark: Buffer,
): Generator<{ readonly number: number; readonly offset: number }> {
  let offset = 0;
  let last = 0;
  for (;;) {
    const block = blockAt(bytes, offset, mark);
    // A file is written again from its beginning; what follows the newest block is older.
    if (block === null || (last > 0 && block.number !== last + 1)) return;
    yield { number: block.number, offset };
    last = block.number;
    offset = block.next;
  }
}

/** The greatest number of any whole block, wherever it begins: later than the last of blocksIn, one before it is damaged. */
export function lastNumberIn(bytes: Buffer, mark: Buffer): number {
  let last = 0;
  for (let offset = 0; offset < bytes.length; offset += blockAlign) {
    const block = blockAt(bytes, offset, mark);
    if (block !== null) last = Math.max(last, block.number);
  }
  return last;
}
