/** Signals that we get are for the command: they are passed on to its whole group. */
import { signalGroup } from "./process-group.ts";

const passedOn = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"] as const;
const ending: ReadonlySet<string> = new Set(["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);

export class PassedSignals {
  private readonly controller = new AbortController();
  private readonly told = new AbortController();
  private group = 0;

  constructor() {
    for (const signal of passedOn) process.on(signal, this.pass);
    process.on("SIGTSTP", this.suspend);
  }

  /** Fires with the first signal that is to end us, whether or not there is a command. */
  get ending(): AbortSignal {
    return this.told.signal;
  }

  /** Fires with the signal that ends us while there is no command. */
  get early(): AbortSignal {
    return this.controller.signal;
  }

  /** From now on signals go to this group; 0: to none. */
  to(group: number): void {
    this.group = group;
  }

  stop(): void {
    for (const signal of passedOn) process.off(signal, this.pass);
    process.off("SIGTSTP", this.suspend);
  }

  private readonly pass = (signal: NodeJS.Signals): void => {
    if (ending.has(signal)) this.told.abort(signal);
    if (this.group !== 0) signalGroup(this.group, signal);
    else if (ending.has(signal)) this.controller.abort(signal);
  };

  /** Ctrl-Z stops the command first, and then us; the lease runs out meanwhile, and the watchdog ends the command. */
  private readonly suspend = (): void => {
    if (this.group !== 0) signalGroup(this.group, "SIGTSTP");
    process.kill(process.pid, "SIGSTOP");
  };
}
