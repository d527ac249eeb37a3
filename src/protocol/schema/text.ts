/** Text for JSON: escapes, ISO times, and the characters that every store can keep. */

/** Neither control characters nor quotes, backslashes or surrogates; those JSON.stringify looks at. */
const plain = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;

/** Text between the quotes of a JSON string. Most needs no escapes and is returned as it is: one test, no copy. */
export function escaped(text: string): string {
  return plain.test(text) ? text : JSON.stringify(text).slice(1, -1);
}

/**
 * Milliseconds as ISO 8601 text, 30 ns instead of the 1,000 of Date: the times of a busy minute share their seconds,
 * so the text up to the second is kept, each in the slot of its second.
 */
const slots = 1024; // A power of two, and more seconds than the longest usual lease.
const seconds = new Float64Array(slots).fill(Number.NaN);
const prefixes: string[] = new Array<string>(slots).fill("");
const tails: readonly string[] = Array.from({ length: 1000 }, (_, ms) => `${String(ms).padStart(3, "0")}Z`);

export function isoTime(ms: number): string {
  const second = Math.floor(ms / 1000);
  const slot = second & (slots - 1);
  if (seconds[slot] !== second) {
    prefixes[slot] = new Date(second * 1000).toISOString().slice(0, -"000Z".length);
    seconds[slot] = second;
  }
  return `${prefixes[slot]}${tails[ms - second * 1000]}`;
}

/** Text that every store and every peer can keep: UTF-8 has no lone surrogates, PostgreSQL no U+0000. Not about others. */
export function isStorable(value: unknown): boolean {
  return typeof value !== "string" || (value.isWellFormed() && !value.includes("\0"));
}

const isoPattern = /^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)$/i;

/** ISO 8601 with a zone; NaN where it is not. */
export function readIsoTime(text: string): number {
  return isoPattern.test(text) ? Date.parse(text.replace(" ", "T")) : Number.NaN;
}
