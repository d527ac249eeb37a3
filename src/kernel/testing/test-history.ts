/** What a store would have of the past, for the kernel's tests: how leases, tasks and keyed requests ended. */
import type { Command } from "../contract/commands.ts";
import { requestIdOf } from "../contract/ids.ts";
import { limits } from "../contract/limits.ts";
import type { EndedRequest, Lease, Millis, StoredRecord } from "../contract/records.ts";
import type { Reply } from "../contract/replies.ts";
import type { EndedTask } from "../contract/task-records.ts";
import {
  answerForEnded,
  answerForEndedRequest,
  answerForEndedTask,
  answerForStoredKey,
  endedRequestOf,
  endedRequestOfLease,
  type Step,
} from "../kernel.ts";
import type { TaskEntry } from "../memory/task-state.ts";

export class TestHistory {
  readonly leases = new Map<string, Lease>();
  readonly tasks = new Map<string, EndedTask>();
  /** By agent and key: what memory has forgotten before its time (W10). */
  private readonly requests = new Map<string, EndedRequest & { readonly until: Millis }>();

  take(changes: Step["changes"], now: Millis): void {
    for (const handle of changes) {
      if (handle.alive) continue;
      const { kind, record } = handle as StoredRecord;
      if (kind === "lease") this.leases.set(record.id, record);
      if (kind === "task") this.tasks.set(record.id, { ...record, payload: payloadOf(handle) });
      const request =
        kind === "request" ? endedRequestOf(record, now) : kind === "lease" ? endedRequestOfLease(record) : null;
      const until = now + limits.requestMemoryMs;
      if (request !== null) this.requests.set(`${request.agentId} ${request.key}`, { ...request, until });
    }
  }

  /** The kernel's answer, completed as an engine would; null: the key of an acquire is not known here either. */
  complete(command: Command, reply: Reply, now: Millis): Reply | null {
    if (reply.type === "request_key_unknown" && command.type === "acquire") {
      const known = this.requests.get(`${command.agentId} ${reply.key}`);
      return known === undefined || known.until <= now ? null : answerForStoredKey(reply, known);
    }
    if (reply.type !== "refused") return reply;
    switch (reply.code) {
      case "request_unknown": {
        const requestId = "requestId" in command ? command.requestId : "";
        const grant = [...this.leases.values()].filter(({ id }) => requestIdOf(id) === requestId);
        return answerForEndedRequest(command, reply, grant);
      }
      case "lease_unknown":
        return answerForEnded(command, reply, this.leases.get(reply.leaseId ?? "") ?? null);
      case "task_unknown":
        return answerForEndedTask(command, reply, this.tasks.get(reply.taskId ?? "") ?? null);
      default:
        return reply;
    }
  }
}

function payloadOf(handle: object): EndedTask["payload"] {
  return (handle as TaskEntry).payload?.record ?? null;
}
