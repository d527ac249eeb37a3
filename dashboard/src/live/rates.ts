/** How often things happen: counts of events by second, for the last minute and a half. */
import { signal } from "@preact/signals";

export const rateKinds = {
  granted: "Grants",
  waiting: "Waits begun",
  died: "Died",
  expired: "Expiries",
  completed: "Tasks done",
} as const;
export type RateKind = keyof typeof rateKinds;

const kindOf: Readonly<Record<string, RateKind>> = {
  "lease.granted": "granted",
  "request.waiting": "waiting",
  "request.standing_by": "waiting",
  "request.died": "died",
  "lease.expired": "expired",
  "task.completed": "completed",
};

export const rateSeconds = 90;
const counts = Object.fromEntries(
  Object.keys(rateKinds).map((kind) => [kind, new Array<number>(rateSeconds).fill(0)]),
) as Record<RateKind, number[]>;
let second = Math.floor(Date.now() / 1_000);

/** Changes once a second. */
export const rateVersion = signal(0);

/** `ago`: by how much it is older than the present second, by the server's clock. */
export function countEvent(type: string, ago: number): void {
  const kind = kindOf[type];
  if (kind === undefined) return;
  const at = rateSeconds - 1 - Math.max(0, Math.floor(ago / 1_000));
  const row = counts[kind];
  if (at >= 0) row[at] = (row[at] ?? 0) + 1;
}

/** The oldest second first; the present one, which is not over, is last. */
export function ratesOf(kind: RateKind): readonly number[] {
  return counts[kind];
}

export function tickRates(): void {
  const now = Math.floor(Date.now() / 1_000);
  const passed = Math.min(now - second, rateSeconds);
  if (passed <= 0) return;
  second = now;
  for (const row of Object.values(counts)) {
    row.splice(0, passed);
    for (let n = 0; n < passed; n++) row.push(0);
  }
  rateVersion.value++;
}

/** Before another tenant's are counted, or the same events again. */
export function clearRates(): void {
  for (const row of Object.values(counts)) row.fill(0);
}
