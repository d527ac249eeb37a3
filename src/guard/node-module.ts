/**
 * Node's own modules without their ESM side: to import one reads all of its exports, and some of those load a lot (of
 * `node:http`, a whole web client; of `node:crypto`, web cryptography; of `node:fs`, its streams), which is more than all
 * that a hook does.
 */
export function nodeModule<T extends keyof Modules>(name: T): Modules[T] {
  return process.getBuiltinModule(name) as Modules[T];
}

interface Modules {
  readonly "node:fs": typeof import("node:fs");
  readonly "node:http": typeof import("node:http");
  readonly "node:https": typeof import("node:https");
  readonly "node:crypto": typeof import("node:crypto");
  readonly "node:child_process": typeof import("node:child_process");
}
