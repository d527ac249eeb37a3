/** Times in the ledger: ISO 8601 in UTC with milliseconds, as on the wire. */

/** The receipts of a batch share a few times, and a look-up is cheaper than formatting. */
const known: { readonly ms: number; readonly text: string }[] = Array(64).fill({ ms: Number.NaN, text: "" });

const calendarMs = 8.64e15;

/** A time beyond the range of JavaScript's Date stays a number, so that nothing is lost. */
export function timeOf(ms: number): string | number {
  const slot = ms & 63;
  const found = known[slot];
  if (found?.ms === ms) return found.text;
  if (!Number.isInteger(ms) || Math.abs(ms) > calendarMs) return ms;
  const text = new Date(ms).toISOString();
  known[slot] = { ms, text };
  return text;
}

export function readTime(value: unknown): number {
  return typeof value === "string" ? Date.parse(value) : Number(value);
}
