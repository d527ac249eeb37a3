/** How signals to this process end what it does. */
import { exitCodes } from "./exit-codes.ts";

const stopping = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** Work that a signal ends: the AbortSignal fires with its name. */
export async function untilStopped<T>(work: (stopped: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => controller.abort(signal);
  for (const signal of stopping) process.on(signal, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const signal of stopping) process.off(signal, onSignal);
  }
}

/** The first signal begins an orderly end, the second ends the process at once. */
export function onStopSignals(begin: (signal: NodeJS.Signals) => void, onSecond?: () => void): void {
  let isStopping = false;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (isStopping) {
      onSecond?.();
      process.exit(exitCodes.failed);
    }
    isStopping = true;
    begin(signal);
  };
  process.on("SIGTERM", onSignal);
  process.on("SIGINT", onSignal);
}
