/** What is under way is given up when the user says so: the signal fires with the name of the one that said it. */
const endings = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export async function untilTold<T>(work: (givenUp: AbortSignal) => Promise<T>): Promise<T> {
  const controller = new AbortController();
  const onSignal = (signal: NodeJS.Signals): void => controller.abort(signal);
  for (const ending of endings) process.on(ending, onSignal);
  try {
    return await work(controller.signal);
  } finally {
    for (const ending of endings) process.off(ending, onSignal);
  }
}
