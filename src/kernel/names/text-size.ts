/** Sizes are limits in bytes, and the kernel has no encoder: this counts what UTF-8 would take. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    // Of a surrogate pair each half counts two; everything else above 0x7ff takes three.
    bytes += code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** Quick for the usual case: a text never has more bytes than three times its characters. */
export function exceedsBytes(text: string, most: number): boolean {
  if (text.length > most) return true;
  return text.length * 3 > most && utf8Length(text) > most;
}

export function jsonExceedsBytes(value: unknown, most: number): boolean {
  return value !== null && value !== undefined && exceedsBytes(JSON.stringify(value), most);
}
