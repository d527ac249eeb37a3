/** The server's log: JSON lines for machines, and lines to read on a terminal. */
import type { Logger } from "pino";
import { createPaint } from "./paint.ts";
import { plain } from "./plain-text.ts";

const levels = { 10: "trace", 20: "debug", 30: "info", 40: "warn", 50: "error", 60: "fatal" } as const;
const colours = { trace: "dim", debug: "dim", info: "green", warn: "yellow", error: "red", fatal: "red" } as const;

export async function createLog(level: string, environment: Readonly<Record<string, string | undefined>>) {
  const { default: pino } = await import("pino");
  if (process.stderr.isTTY !== true) return pino({ level }, pino.destination({ dest: 2, sync: true })) as Logger;
  const { NO_COLOR, TERM } = environment;
  const paint = createPaint(!NO_COLOR && TERM !== "dumb");
  const write = (line: string): void => void process.stderr.write(`${readableLine(line, paint)}\n`);
  return pino({ level, base: null }, { write }) as Logger;
}

/** "03:12:44 warn  the clock was set  offset_ms=4000": the time here, what happened, and the rest of the fields. */
export function readableLine(line: string, paint = createPaint(false)): string {
  const { level, time, msg = "", ...fields } = JSON.parse(line) as Readonly<Record<string, unknown>>;
  const name = levels[level as keyof typeof levels] ?? "info";
  const at = new Date(Number(time)).toTimeString().slice(0, 8);
  const rest = Object.entries(fields).map(([field, value]) => paint.dim(plain(`${field}=${valueText(value)}`)));
  return [paint.dim(at), paint[colours[name]](name.padEnd(5)), plain(String(msg)), ...rest].join(" ");
}

function valueText(value: unknown): string {
  if (typeof value === "string") return /^[^\s"]+$/.test(value) ? value : JSON.stringify(value);
  // An error: what it says, and not its stack, which --log-level debug would not make readable either.
  const { message } = (value ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? JSON.stringify(message) : JSON.stringify(value);
}
