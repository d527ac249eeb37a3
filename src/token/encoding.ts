/** The bytes a token is made of: whole numbers in eight bytes, texts in UTF-8 behind their length. One spelling each. */
const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const numberBytes = 8;

export class ByteWriter {
  private held = new Uint8Array(256);
  private end = 0;

  byte(value: number): this {
    if (this.end === this.held.length) this.grow(1);
    this.held[this.end++] = value;
    return this;
  }

  short(value: number): this {
    return this.byte(value >>> 8).byte(value);
  }

  /** A whole number from 0 that a number holds exactly; fences stay below 2^53 (L11). */
  number(value: number): this {
    return this.word(Math.floor(value / 2 ** 32)).word(value);
  }

  text(value: string): this {
    const bytes = encoder.encode(value);
    return this.short(bytes.length).raw(bytes);
  }

  raw(bytes: Uint8Array): this {
    if (this.end + bytes.length > this.held.length) this.grow(bytes.length);
    this.held.set(bytes, this.end);
    this.end += bytes.length;
    return this;
  }

  bytes(): Uint8Array {
    return this.held.subarray(0, this.end);
  }

  private word(value: number): this {
    return this.short(value >>> 16).short(value & 0xffff);
  }

  private grow(by: number): void {
    const larger = new Uint8Array(2 * (this.held.length + by));
    larger.set(this.held);
    this.held = larger;
  }
}

/** Reads within [at, end). Past the end, or of what is not well-formed, it gives null and stays failed. */
export class ByteReader {
  at: number;
  readonly bytes: Uint8Array;
  readonly end: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  get done(): boolean {
    return this.at === this.end;
  }

  byte(): number | null {
    if (this.at >= this.end) return this.fail();
    return this.bytes[this.at++] ?? null;
  }

  short(): number | null {
    const high = this.byte();
    const low = this.byte();
    return high === null || low === null ? null : high * 256 + low;
  }

  number(): number | null {
    if (this.at + numberBytes > this.end) return this.fail();
    let value = 0;
    for (let count = 0; count < numberBytes; count++) value = value * 256 + (this.bytes[this.at++] ?? 0);
    return Number.isSafeInteger(value) ? value : this.fail();
  }

  text(): string | null {
    const length = this.short();
    if (length === null || this.at + length > this.end) return this.fail();
    const from = this.at;
    this.at += length;
    return decodeText(this.bytes, from, this.at) ?? this.fail();
  }

  skip(length: number): boolean {
    if (this.at + length > this.end) {
      this.fail();
      return false;
    }
    this.at += length;
    return true;
  }

  private fail(): null {
    this.at = Number.POSITIVE_INFINITY;
    return null;
  }
}

/** Names are ASCII nearly always, and short: a loop is quicker than asking the platform. */
export function decodeText(bytes: Uint8Array, from: number, end: number): string | null {
  let text = "";
  for (let at = from; at < end; at++) {
    const code = bytes[at] ?? 0;
    if (code >= 0x80) return decodeUtf8(bytes.subarray(from, end));
    text += String.fromCharCode(code);
  }
  return text;
}

function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}
