/**
 * A process of its own that outlives its supervisor. The supervisor says again and again until when the leases can be
 * counted on; if it falls silent, because it was killed, stopped or starved, this one ends the command's process group
 * in its place, before the leases end. It reads lines of JSON from its standard input and needs nothing else.
 */
import { uptime } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export interface Word {
  /** Of the command; 0 before it was started. */
  readonly group: number;
  /** By the machine's clock, as `machineNow` reads it. */
  readonly termAt: number;
  readonly killAt: number;
  /** By how much the clock that counts sleep was ahead when this was said. */
  readonly sleptMs: number;
  /** The supervisor itself has told the group to end; only the last step is left to watch. */
  readonly isEnding: boolean;
  readonly isDone: boolean;
}

/** The same for all processes of a machine. The first clock stands still while it sleeps, the second does not. */
export function machineNow(): { readonly at: number; readonly sleptMs: number } {
  const at = Number(process.hrtime.bigint() / 1_000_000n);
  return { at, sleptMs: uptime() * 1_000 - at };
}

/** A little after its time, so that a supervisor that is well acts first. */
const lateMs = 40;
const tickMs = 20;
/** Uptime comes in hundredths of a second. */
const sleptSlackMs = 20;
/** After the supervisor's death its leases live on until their end; the command need not. */
const orphanGraceMs = 2_000;

function watch(): void {
  let word: Word | null = null;
  let wasTold = false;
  const now = (since: Word): number => {
    const { at, sleptMs } = machineNow();
    return at + Math.max(0, sleptMs - since.sleptMs - sleptSlackMs);
  };
  const tell = (signal: NodeJS.Signals): void => {
    if (word === null || word.group === 0) return;
    try {
      process.kill(-word.group, signal);
    } catch {
      process.exit(0); // Nobody is left.
    }
  };
  const look = (): void => {
    if (word === null) return;
    if (now(word) >= word.killAt) {
      tell("SIGKILL");
    } else if (!wasTold && !word.isEnding && now(word) >= word.termAt + lateMs) {
      wasTold = true;
      tell("SIGTERM");
      tell("SIGCONT");
    }
  };
  const lines = createInterface({ input: process.stdin });
  lines.on("line", (line) => {
    word = JSON.parse(line) as Word;
    if (word.isDone) process.exit(0);
  });
  lines.on("close", () => {
    if (word === null || word.group === 0) process.exit(0);
    word = { ...word, killAt: Math.min(word.killAt, now(word) + orphanGraceMs), isEnding: true };
    tell("SIGTERM");
    tell("SIGCONT");
  });
  setInterval(look, tickMs);
  // Ctrl-C is for the command; this one ends when there is nothing left to watch.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) watch();
