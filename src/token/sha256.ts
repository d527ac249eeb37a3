/**
 * SHA-256 and HMAC (FIPS 180-4, RFC 2104) in plain arithmetic. Tokens are narrowed in browsers too, within one step,
 * where the platform's own functions answer only later; and for messages as short as ours this is as fast as a
 * call into native code. No branch and no index depends on the data.
 */

/** The state of a hash that has taken in one block: a key's half of an HMAC, kept so that it is computed once. */
export interface HmacKey {
  readonly inner: Int32Array;
  readonly outer: Int32Array;
}

export const digestBytes = 32;
const blockBytes = 64;
const lengthAt = 56;

const roundConstants = Int32Array.from(fractions(64, Math.cbrt));
const startState = Int32Array.from(fractions(8, Math.sqrt));
const schedule = new Int32Array(64);
const block = new Uint8Array(blockBytes);
const state = new Int32Array(8);

export function sha256(message: Uint8Array): Uint8Array {
  state.set(startState);
  finish(message, 0);
  return digest();
}

export function hmacSha256(key: HmacKey, message: Uint8Array): Uint8Array {
  const inner = new Uint8Array(digestBytes);
  state.set(key.inner);
  finish(message, blockBytes);
  writeState(inner);
  state.set(key.outer);
  finish(inner, blockBytes);
  writeState(inner);
  return inner;
}

/** The same with a sum for a key that is used once: a step in a token's chain. */
export function hmacStep(sum: Uint8Array, message: Uint8Array): Uint8Array {
  const inner = new Uint8Array(digestBytes);
  pad(sum, 0x36);
  finish(message, blockBytes);
  writeState(inner);
  pad(sum, 0x5c);
  finish(inner, blockBytes);
  writeState(inner);
  return inner;
}

export function hmacKey(key: Uint8Array): HmacKey {
  const short = key.length > blockBytes ? sha256(key) : key;
  return { inner: padded(short, 0x36), outer: padded(short, 0x5c) };
}

/** How long it takes says nothing about where two sums differ. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= (a[at] ?? 0) ^ (b[at] ?? 0);
  return difference === 0;
}

function padded(key: Uint8Array, mask: number): Int32Array {
  pad(key, mask);
  return state.slice();
}

/** Leaves the state as it is after the key's block. */
function pad(key: Uint8Array, mask: number): void {
  block.fill(mask);
  for (let at = 0; at < key.length; at++) block[at] = (key[at] ?? 0) ^ mask;
  state.set(startState);
  compress(block, 0);
}

/** Takes in the whole message and its end mark; `before` bytes were taken in already. */
function finish(message: Uint8Array, before: number): void {
  const end = message.length;
  let at = 0;
  for (; at + blockBytes <= end; at += blockBytes) compress(message, at);
  const rest = end - at;
  block.fill(0);
  for (let index = 0; index < rest; index++) block[index] = message[at + index] ?? 0;
  block[rest] = 0x80;
  if (rest >= lengthAt) {
    compress(block, 0);
    block.fill(0);
  }
  const bits = (before + end) * 8;
  writeWord(block, lengthAt, Math.floor(bits / 2 ** 32));
  writeWord(block, lengthAt + 4, bits);
  compress(block, 0);
}

function compress(bytes: Uint8Array, from: number): void {
  const w = schedule;
  for (let at = 0, place = from; at < 16; at++, place += 4) {
    w[at] =
      ((bytes[place] ?? 0) << 24) |
      ((bytes[place + 1] ?? 0) << 16) |
      ((bytes[place + 2] ?? 0) << 8) |
      (bytes[place + 3] ?? 0);
  }
  for (let at = 16; at < 64; at++) {
    const x = w[at - 15] ?? 0;
    const y = w[at - 2] ?? 0;
    const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
    const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
    w[at] = (s0 + s1 + (w[at - 16] ?? 0) + (w[at - 7] ?? 0)) | 0;
  }
  let a = state[0] ?? 0;
  let b = state[1] ?? 0;
  let c = state[2] ?? 0;
  let d = state[3] ?? 0;
  let e = state[4] ?? 0;
  let f = state[5] ?? 0;
  let g = state[6] ?? 0;
  let h = state[7] ?? 0;
  for (let at = 0; at < 64; at++) {
    const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
    const choice = g ^ (e & (f ^ g));
    const t1 = (h + s1 + choice + (roundConstants[at] ?? 0) + (w[at] ?? 0)) | 0;
    const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
    const t2 = (s0 + ((a & b) | (c & (a | b)))) | 0;
    h = g;
    g = f;
    f = e;
    e = (d + t1) | 0;
    d = c;
    c = b;
    b = a;
    a = (t1 + t2) | 0;
  }
  state[0] = (state[0] ?? 0) + a;
  state[1] = (state[1] ?? 0) + b;
  state[2] = (state[2] ?? 0) + c;
  state[3] = (state[3] ?? 0) + d;
  state[4] = (state[4] ?? 0) + e;
  state[5] = (state[5] ?? 0) + f;
  state[6] = (state[6] ?? 0) + g;
  state[7] = (state[7] ?? 0) + h;
}

function digest(): Uint8Array {
  const bytes = new Uint8Array(digestBytes);
  writeState(bytes);
  return bytes;
}

function writeState(bytes: Uint8Array): void {
  for (let at = 0; at < 8; at++) writeWord(bytes, at * 4, state[at] ?? 0);
}

function writeWord(bytes: Uint8Array, at: number, word: number): void {
  bytes[at] = word >>> 24;
  bytes[at + 1] = word >>> 16;
  bytes[at + 2] = word >>> 8;
  bytes[at + 3] = word;
}

/** The standard's constants: the first 32 bits of the fractions of roots of the first primes. */
function fractions(count: number, root: (value: number) => number): number[] {
  const found: number[] = [];
  for (let value = 2; found.length < count; value++) {
    if (isPrime(value)) found.push(Math.floor((root(value) % 1) * 2 ** 32));
  }
  return found;
}

function isPrime(value: number): boolean {
  for (let by = 2; by * by <= value; by++) if (value % by === 0) return false;
  return true;
}
