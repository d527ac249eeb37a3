/** Signals that we are sent are for the command: they are handed on to its whole group. */
import { signalGroup } from "./process-group.ts";

const handedOn = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGWINCH", "SIGCONT"] as const;

export interface HandingOn {
  /** From now on signals go to this group. */
  to(group: number): void;
  /** The signal that ends us while there is no command yet. */
  readonly early: AbortSignal;
  stop(): void;
}

export function handOnSignals(): HandingOn {
  const early = new AbortController();
  let group = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (group !== 0) signalGroup(group, signal);
    else if (signal === "SIGINT" || signal === "SIGTERM" || signal === "SIGHUP" || signal === "SIGQUIT")
      early.abort(signal);
  };
  for (const signal of handedOn) process.on(signal, onSignal);
  // Ctrl-Z stops the command first, and then us; the lease runs out meanwhile, and the watchdog sees to it.
  const onStop = (): void => {
    if (group !== 0) signalGroup(group, "SIGTSTP");
    process.kill(process.pid, "SIGSTOP");
  };
  process.on("SIGTSTP", onStop);
  return {
    to(started) {
      group = started;
    },
    early: early.signal,
    stop() {
      for (const signal of handedOn) process.off(signal, onSignal);
      process.off("SIGTSTP", onStop);
    },
  };
}
