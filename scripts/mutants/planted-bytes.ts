/** Wrong changes to what is counted in bytes (S4). */
import type { Mutant } from "./planted.ts";

export const byteMutants: readonly Mutant[] = [
  {
    name: "bytes: payloads are not counted",
    file: "tasks/task-queue.ts",
    find: "tenant.payloadBytes += record.payloadBytes;",
    replace: "",
  },
  {
    name: "bytes: a task that is done still counts",
    file: "tasks/task-life.ts",
    find: "tenant.payloadBytes -= task.record.payloadBytes;",
    replace: "",
  },
  {
    name: "bytes: a digest counts beside the one that it replaces",
    file: "agents/agent-life.ts",
    find: "turn.tenant.digestBytes += digestBytes - agent.record.digestBytes;",
    replace: "turn.tenant.digestBytes += digestBytes;",
  },
  {
    name: "bytes: what has ended stays counted as memory",
    file: "memory/memory-use.ts",
    find: "    if (entry.alive) {\n      bytes = fixedBytes",
    replace: "    {\n      bytes = fixedBytes",
  },
  {
    name: "bytes: memory is not counted after a restart",
    file: "restore.ts",
    find: "  countMemory(turn.state, [entry]);\n",
    replace: "",
  },
  {
    name: "bytes: memory without limit",
    file: "deciding/admission.ts",
    find: "return memoryBytes < memoryBytesMax ? null",
    replace: "return memoryBytes >= 0 ? null",
  },
];
