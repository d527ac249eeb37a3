/**
 * The trace that a request belongs to (W3C Trace Context): HTTP has it in the header `traceparent`, MCP in
 * `params._meta.traceparent`. Tasks that name none take it over. What is not valid is ignored, as that text says.
 */
import { taskInput } from "../../kernel/contract/inputs.ts";
import type { Input, Operation } from "../operation.ts";
import { createTask, createTasks } from "./tasks.ts";

const { pattern } = taskInput.traceparent.matching ?? { pattern: /$^/ };
/** A later version may have more behind the four parts, which are read as those of version 00. */
const later = /^(?!00|ff)[0-9a-f]{2}-([0-9a-f]{32}-[0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const sampled = 1;

/** In version 00; null where it is not valid. */
export function readTraceparent(text: unknown): string | null {
  if (typeof text !== "string") return null;
  if (pattern.test(text)) return text;
  const [, ids, flags = ""] = later.exec(text) ?? [];
  if (ids === undefined) return null;
  const read = `00-${ids}-0${Number.parseInt(flags, 16) & sampled}`;
  return pattern.test(read) ? read : null;
}

export function takesTraceparent(operation: Operation): boolean {
  return operation.name === createTask.name || operation.name === createTasks.name;
}

/** The input of an operation that takes it, with the trace in each task that names none. */
export function withTraceparent(input: Input, text: unknown): Input {
  const traceparent = readTraceparent(text);
  if (traceparent === null) return input;
  const { tasks } = input;
  if (!Array.isArray(tasks)) return traced(input, traceparent);
  return { ...input, tasks: tasks.map((task: unknown) => (isObject(task) ? traced(task, traceparent) : task)) };
}

function traced(task: Input, traceparent: string): Input {
  return (task["traceparent"] ?? null) === null ? { ...task, traceparent } : task;
}

function isObject(value: unknown): value is Input {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
