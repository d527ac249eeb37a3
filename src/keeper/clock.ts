/**
 * Time as a holder must count it (A7). A monotonic clock may stand still while the machine sleeps, and a wall clock may
 * be set; so both are watched. When they come apart, a clock that counts sleep and cannot be set says which it was,
 * where the platform has one; where it has none, it is taken for a sleep, which is the safe mistake.
 */
export interface Clock {
  /** Never runs backwards; may stop during sleep. */
  monotonic(): number;
  /** Goes on during sleep; may be set, forwards and backwards. */
  wall(): number;
  /** Goes on during sleep and cannot be set; null where there is none. */
  boot(): number | null;
}

export const systemClock: Clock = {
  monotonic: () => performance.now(),
  wall: () => Date.now(),
  boot: bootClock(),
};

/** A moment from which time is counted. */
export interface Mark {
  readonly monotonic: number;
  readonly sleptMs: number;
}

/** The wall clock is corrected by small steps all the time; those are not looked into. */
const apartMsMin = 50;
/** The system tells its uptime in hundredths of a second, rounded. */
const bootResolutionMs = 20;

export class Timekeeper {
  private readonly clock: Clock;
  private lead: number;
  private bootLead: number | null;
  private sleptMs = 0;
  private jumpCount = 0;

  constructor(clock: Clock) {
    this.clock = clock;
    const boot = clock.boot();
    this.bootLead = boot === null ? null : boot - clock.monotonic();
    this.lead = clock.wall() - clock.monotonic();
  }

  mark(): Mark {
    this.look();
    return { monotonic: this.clock.monotonic(), sleptMs: this.sleptMs };
  }

  /** Time that has passed since then, sleep included. */
  elapsedMs(since: Mark): number {
    this.look();
    return this.clock.monotonic() - since.monotonic + this.sleptMs - since.sleptMs;
  }

  /** How often the wall clock ran ahead while no other clock did: it was set, or a machine inside a machine stood still. */
  get jumps(): number {
    this.look();
    return this.jumpCount;
  }

  private look(): void {
    const monotonic = this.clock.monotonic();
    const lead = this.clock.wall() - monotonic;
    const moved = lead - this.lead;
    if (Math.abs(moved) < apartMsMin) return;
    this.lead = lead;
    const boot = this.clock.boot();
    if (boot === null || this.bootLead === null) {
      this.sleptMs += Math.max(moved, 0);
      return;
    }
    const slept = boot - monotonic - this.bootLead;
    if (slept > bootResolutionMs) {
      this.sleptMs += slept;
      this.bootLead += slept;
    } else if (moved > 0) this.jumpCount++;
  }
}

interface Builtins {
  readonly process?: { getBuiltinModule?(name: "node:os"): { uptime(): number } | undefined };
}

/** Node, Bun and Deno know how long the machine has been up, sleep included; browsers do not. */
function bootClock(): () => number | null {
  const os = (globalThis as Builtins).process?.getBuiltinModule?.("node:os");
  return os === undefined ? () => null : () => os.uptime() * 1_000;
}
