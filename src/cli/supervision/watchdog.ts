/**
 * A process of its own that outlives its supervisor. The supervisor keeps telling it how long the leases last; if it
 * falls silent, because it was killed, stopped or starved, this one ends the command's process group before the leases
 * end. It reads lines of JSON from its standard input and needs nothing else.
 */
import { uptime } from "node:os";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** What the supervisor sends, one JSON line each. */
export interface Instruction {
  /** Of the command; 0 before it was started. */
  readonly group: number;
  /** By the machine's clock, as `machineNow` reads it. */
  readonly termAt: number;
  readonly killAt: number;
  /** By how much the clock that counts sleep was ahead when this was sent. */
  readonly sleptMs: number;
  /** The supervisor has sent SIGTERM itself; only SIGKILL is left to send. */
  readonly isEnding: boolean;
  readonly isDone: boolean;
}

/** The same for all processes of a machine. The first clock stands still while it sleeps, the second does not. */
export function machineNow(): { readonly at: number; readonly sleptMs: number } {
  const at = Number(process.hrtime.bigint() / 1_000_000n);
  return { at, sleptMs: uptime() * 1_000 - at };
}

/** A little late, so that a healthy supervisor acts first. */
const lateMs = 40;
const tickMs = 20;
/** Uptime comes in hundredths of a second. */
const sleptSlackMs = 20;
/** After the supervisor's death the command is not given all the time that the leases last. */
const orphanGraceMs = 2_000;

class Watchdog {
  private instruction: Instruction | null = null;
  private hasSentTerm = false;
  private ticking: NodeJS.Timeout | null = null;

  start(): void {
    const lines = createInterface({ input: process.stdin });
    lines.on("line", (line) => {
      this.instruction = JSON.parse(line) as Instruction;
      if (this.instruction.isDone) process.exit(0);
      // Not before: many may wait for one lease, and their watchdogs have nothing to watch yet.
      this.ticking ??= setInterval(() => this.check(), tickMs);
    });
    lines.on("close", () => this.orphaned());
    // Ctrl-C is for the command; this one ends when there is nothing left to watch.
    for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  }

  private check(): void {
    const { instruction } = this;
    if (instruction === null) return;
    const now = nowFor(instruction);
    if (now >= instruction.killAt) {
      this.signal("SIGKILL");
    } else if (!this.hasSentTerm && !instruction.isEnding && now >= instruction.termAt + lateMs) {
      this.hasSentTerm = true;
      this.signal("SIGTERM");
      this.signal("SIGCONT");
    }
  }

  /** The supervisor has died. */
  private orphaned(): void {
    const { instruction } = this;
    if (instruction === null || instruction.group === 0) process.exit(0);
    const killAt = Math.min(instruction.killAt, nowFor(instruction) + orphanGraceMs);
    this.instruction = { ...instruction, killAt, isEnding: true };
    this.signal("SIGTERM");
    this.signal("SIGCONT");
  }

  private signal(signal: NodeJS.Signals): void {
    if (this.instruction === null || this.instruction.group === 0) return;
    try {
      process.kill(-this.instruction.group, signal);
    } catch {
      process.exit(0); // Nothing of the group is left.
    }
  }
}

function nowFor(instruction: Instruction): number {
  const { at, sleptMs } = machineNow();
  return at + Math.max(0, sleptMs - instruction.sleptMs - sleptSlackMs);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) new Watchdog().start();
