/**
 * Base64url (RFC 4648 §5) without padding, read strictly: the platform's readers step over what they do not know, and
 * then one token would have many spellings. Here each has one.
 */
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const values = new Int8Array(128).fill(-1);
const digits = new TextEncoder().encode(alphabet);
const ascii = new TextDecoder();
for (let at = 0; at < alphabet.length; at++) values[alphabet.charCodeAt(at)] = at;

export function encodeBase64url(bytes: Uint8Array): string {
  const codes = new Uint8Array(Math.ceil((bytes.length * 4) / 3));
  let held = 0;
  let bits = 0;
  let place = 0;
  for (const byte of bytes) {
    held = ((held << 8) | byte) & 0xffff;
    for (bits += 8; bits >= 6; ) {
      bits -= 6;
      codes[place++] = digits[(held >>> bits) & 63] ?? 0;
    }
  }
  if (bits > 0) codes[place++] = digits[(held << (6 - bits)) & 63] ?? 0;
  return ascii.decode(codes);
}

/** null: not the one spelling of any bytes. */
export function decodeBase64url(text: string, from = 0): Uint8Array | null {
  const length = text.length - from;
  if (length % 4 === 1) return null;
  const bytes = new Uint8Array(Math.floor((length * 3) / 4));
  const wholeEnd = from + length - (length % 4);
  let place = 0;
  let at = from;
  for (; at < wholeEnd; at += 4) {
    const group =
      (digitAt(text, at) << 18) | (digitAt(text, at + 1) << 12) | (digitAt(text, at + 2) << 6) | digitAt(text, at + 3);
    if (group < 0) return null;
    bytes[place++] = group >>> 16;
    bytes[place++] = group >>> 8;
    bytes[place++] = group;
  }
  if (at === text.length) return bytes;
  const rest = text.length - at;
  const last = (digitAt(text, at) << 12) | (digitAt(text, at + 1) << 6) | (rest === 3 ? digitAt(text, at + 2) : 0);
  // The spare bits of the last digit must be zero, or several texts would mean the same.
  if (last < 0 || (last & (rest === 3 ? 0x3 : 0x3ff)) !== 0) return null;
  bytes[place++] = last >>> 10;
  if (rest === 3) bytes[place] = last >>> 2;
  return bytes;
}

/** Negative for what is not a digit, whatever it is shifted by. */
function digitAt(text: string, at: number): number {
  return values[text.charCodeAt(at)] ?? -1;
}
