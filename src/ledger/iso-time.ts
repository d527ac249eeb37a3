/** Times as they stand in the ledger: ISO 8601 in UTC with milliseconds, as everywhere on the wire. */

/** Of the receipts of one batch nearly all have the same few times, and finding the text is cheaper than making it. */
const known: { readonly ms: number; readonly text: string }[] = Array(64).fill({ ms: Number.NaN, text: "" });

const calendarMs = 8.64e15;

/** Beyond the calendar that JavaScript knows a time stays a number, so that nothing is lost. */
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
