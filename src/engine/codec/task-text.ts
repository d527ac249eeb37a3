/** Tasks of history: each with its payload, which nothing else keeps. */
import type { EndedTask, Payload, Task } from "../../kernel/contract/task-records.ts";
import { type PayloadRow, payloadOf, payloadText, type TaskRow, taskFrom, taskText } from "./records.gen.ts";

export function endedTaskText(task: Task, payload: Payload | null): string {
  return `[${taskText(task)},${payload === null ? "null" : payloadText(payload)}]`;
}

export function readEndedTask(text: string): EndedTask {
  const [task, payload] = JSON.parse(text) as [TaskRow, PayloadRow | null];
  return { ...taskFrom(task), payload: payload === null ? null : payloadOf(payload) };
}
