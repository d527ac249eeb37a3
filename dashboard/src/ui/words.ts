/** Times, numbers and names as people read them. */

/** "3 s", "2 min", "1 h 5 min". */
export function duration(ms: number): string {
  if (ms < 0) return "0 s";
  const seconds = Math.round(ms / 1_000);
  if (ms < 1_000) return `${Math.round(ms / 100) / 10} s`;
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return seconds % 60 === 0 || minutes >= 10 ? `${minutes} min` : `${minutes} min ${seconds % 60} s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return minutes % 60 === 0 ? `${hours} h` : `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d`;
}

/** "57 s", "4:57", "1:04:57": for what counts down in little room. */
export function brief(ms: number): string {
  const seconds = Math.round(ms / 1_000);
  if (seconds < 60) return `${seconds} s`;
  const [hours, minutes] = [Math.floor(seconds / 3_600), Math.floor(seconds / 60) % 60];
  const rest = String(seconds % 60).padStart(2, "0");
  return hours === 0 ? `${minutes}:${rest}` : `${hours}:${String(minutes).padStart(2, "0")}:${rest}`;
}

const wholeTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const clockTime = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const counted = new Intl.NumberFormat("en");

export function moment(at: string | number): string {
  return wholeTime.format(new Date(at));
}

export function timeOfDay(at: string | number): string {
  return clockTime.format(new Date(at));
}

export function count(value: number): string {
  return counted.format(value);
}

export function bytes(value: number): string {
  const units = ["B", "KB", "MB", "GB", "TB"];
  let size = value;
  let unit = 0;
  while (size >= 1_000 && unit < units.length - 1) {
    size /= 1_000;
    unit++;
  }
  return `${size < 10 && unit > 0 ? size.toFixed(1) : Math.round(size)} ${units[unit]}`;
}

/** The end of a path says most, so a long one is cut in the middle. */
export function middle(text: string, max = 44): string {
  if (text.length <= max) return text;
  const head = Math.ceil((max - 1) * 0.4);
  return `${text.slice(0, head)}…${text.slice(text.length - (max - 1 - head))}`;
}

export const activityWords = {
  working: "working",
  blocked: "blocked",
  waiting_for_person: "waits for a person",
  idle: "idle",
  lost: "lost",
} as const;

/** What needs somebody comes first. */
export const activityOrder = ["lost", "waiting_for_person", "blocked", "working", "idle"] as const;

export const pauseWords: Readonly<Record<string, string>> = {
  wait: "its wait is over; it will ask again",
  die: "it gave way to an older agent, and will ask again",
  paused: "what it needs is fenced, withdrawn or not ready",
  wounded: "an older agent took over what it held",
  lost: "its last lease ended without a word from it",
};
