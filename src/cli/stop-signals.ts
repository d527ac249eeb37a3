/** Work that a signal of the process ends: the AbortSignal fires with its name. */
const stopping = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

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
