/** Waits until tasks have ended. */
import type { Client } from "../sdk/client.ts";
import { followEvents } from "../sdk/events.ts";
import { onAbort } from "../sdk/timing.ts";
import type { OperationAnswers, Task } from "../sdk/wire.ts";
import type { Flag } from "./command.ts";

export type TaskWithReceipts = OperationAnswers["get_task"];

export const waitLimitFlag: Flag = {
  short: "w",
  sign: "TIME",
  words: "wait this long at most [for ever]; a bare number is in seconds",
};

const endings: readonly Task["status"][] = ["succeeded", "failed", "canceled", "dead"];
/** Beside the events, in case one came before the stream was open, or this key may not read them. */
const checkMs = 2_000;

export function hasEnded({ status }: Task): boolean {
  return endings.includes(status);
}

/** The tasks as they are once all have ended, or when the signal fires. */
export async function waitForTasks(
  client: Client,
  taskIds: readonly string[],
  signal: AbortSignal,
): Promise<readonly TaskWithReceipts[]> {
  const over = new AbortController();
  const stop = onAbort(signal, () => over.abort());
  const changes = new Changes(client, taskIds, over.signal);
  try {
    for (;;) {
      const tasks = await Promise.all(taskIds.map((taskId) => client.call("get_task", { task_id: taskId })));
      if (tasks.every(hasEnded) || signal.aborted) return tasks;
      await changes.next();
    }
  } finally {
    stop();
    over.abort();
  }
}

/** Wakes when something has happened to one of the tasks. */
class Changes {
  private wake: () => void = () => undefined;
  private readonly signal: AbortSignal;

  constructor(client: Client, taskIds: readonly string[], signal: AbortSignal) {
    this.signal = signal;
    void this.follow(client, taskIds);
  }

  async next(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.wake = resolve;
    const timer = setTimeout(resolve, checkMs);
    const stop = onAbort(this.signal, resolve);
    await promise;
    clearTimeout(timer);
    stop();
  }

  private async follow(client: Client, taskIds: readonly string[]): Promise<void> {
    const types = ["task.completed", "task.canceled", "task.escalated", "task.requeued"] as const;
    try {
      for await (const event of followEvents(client, { types, signal: this.signal })) {
        const { task } = event as { readonly task?: { readonly task_id?: unknown } };
        if (taskIds.some((one) => one === task?.task_id)) this.wake();
      }
    } catch {
      // It ended with the wait, or may not be read: then the tasks are asked for now and then.
    }
  }
}
