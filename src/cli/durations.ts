/** Durations as people write them, and as they like to read them. */
const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** "500ms", "30s", "5m", "1.5h"; a bare number is in seconds, as with `flock -w`. Null if it is none. */
export function readDurationMs(text: string): number | null {
  const [, number = "", unit = "s"] = /^(\d{1,12}(?:\.\d{1,6})?)(ms|s|m|h|d)?$/.exec(text) ?? [];
  if (number === "") return null;
  const ms = Math.round(Number(number) * unitsMs[unit as keyof typeof unitsMs]);
  return Number.isSafeInteger(ms) ? ms : null;
}

/** Two figures at most: "840ms", "12.3s", "4m05s", "2h10m", "3d4h". */
export function showDuration(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)}ms`;
  if (ms < 59_950) return `${(ms / 1_000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1_000);
  if (seconds < 3_600) return `${Math.floor(seconds / 60)}m${pad(seconds % 60)}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1_440) return `${Math.floor(minutes / 60)}h${pad(minutes % 60)}m`;
  const hours = Math.floor(minutes / 60);
  return `${Math.floor(hours / 24)}d${pad(hours % 24)}h`;
}

function pad(number: number): string {
  return String(number).padStart(2, "0");
}
