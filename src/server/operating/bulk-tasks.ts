/**
 * Operations on all tasks that match (L14): the tasks are looked up in slices, then changed one by one by the usual
 * commands, some at a time, so that each is decided, audited and durable like any other. Progress is in memory: after a restart
 * the operation is unknown, what it had done is done, and the same filter finds the rest.
 */

import { randomBytes } from "node:crypto";
import { noteChange } from "../../engine/audit-chain.ts";
import type { Engine } from "../../engine/engine.ts";
import { type Actor, unstamped } from "../../kernel/contract/commands.ts";
import type { Millis } from "../../kernel/contract/records.ts";
import type { Task } from "../../kernel/contract/task-records.ts";
import { auditEntryOf } from "../../kernel/kernel.ts";
import { findTask, recordsOf } from "../../kernel/views.ts";
import { answerJson, errorAnswer } from "../../protocol/answers/answer.ts";
import type { BulkTasks, OperationView } from "../../protocol/answers/queries.ts";
import { matchesTask } from "../../protocol/tasks/task-filter.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { scan } from "../queries/scan.ts";
import { containsText } from "../queries/task-search.ts";

/** Of one tenant, at a time. */
const runningMax = 4;
/** Commands in flight of one operation. */
const atOnce = 32;
/** How long and how many ended operations of one tenant are known; its own push out its oldest, and no other's (S4). */
const keptMs = 3_600_000;
const keptMax = 100;

type Progress = { -readonly [K in keyof OperationView]: OperationView[K] };

/** Whether the credential that began it is still good: what follows is done in its name. */
type MayGoOn = () => boolean;

export class BulkOperations {
  private readonly engine: Engine;
  /** By tenant, the oldest first. */
  private readonly known = new Map<string, Map<string, Progress>>();

  constructor(engine: Engine) {
    this.engine = engine;
  }

  find(tenant: string, id: string): OperationView | null {
    return this.known.get(tenant)?.get(id) ?? null;
  }

  /** Null: too many of the tenant are running. */
  begin(spec: BulkTasks, mayGoOn: MayGoOn): OperationView | null {
    this.forget();
    const known = this.known.get(spec.tenant) ?? new Map<string, Progress>();
    if ([...known.values()].filter(isRunning).length >= runningMax) return null;
    const { action, dryRun } = spec;
    const progress: Progress = {
      id: `opr_${randomBytes(12).toString("hex")}`,
      action,
      state: "matching",
      dryRun,
      matched: 0,
      done: 0,
      failed: 0,
      detail: null,
      begunAt: this.engine.now(),
      endedAt: null,
    };
    this.known.set(spec.tenant, known);
    known.set(progress.id, progress);
    this.run(spec, progress, mayGoOn).then(
      () => this.end(progress, "done", null),
      (fault: unknown) => this.end(progress, "failed", whyFailed(fault)),
    );
    return progress;
  }

  private end(progress: Progress, state: "done" | "failed", detail: string | null): void {
    Object.assign(progress, { state, detail, endedAt: this.engine.now() });
  }

  private async run(spec: BulkTasks, progress: Progress, mayGoOn: MayGoOn): Promise<void> {
    const { engine } = this;
    const { tenant, filter } = spec;
    let found: string[] = [];
    await scan<Task>(
      engine,
      (state) => {
        found = [];
        return recordsOf(state, tenant, "task");
      },
      (task) => {
        if (isChangeable(spec, task) && matchesTask(task, filter)) found.push(task.id);
      },
    );
    const matching = filter.search === null ? found : await this.searched(tenant, found, filter.search, progress);
    progress.matched = matching.length;
    if (spec.dryRun) return;
    progress.state = "running";
    for (let next = 0; next < matching.length; next += atOnce) {
      if (!mayGoOn()) throw new Error("its key was deleted, replaced or has expired");
      const results = await Promise.all(matching.slice(next, next + atOnce).map((taskId) => this.change(spec, taskId)));
      for (const isDone of results) isDone ? progress.done++ : progress.failed++;
    }
  }

  private async searched(
    tenant: string,
    ids: readonly string[],
    search: string,
    progress: Progress,
  ): Promise<string[]> {
    const matching: string[] = [];
    for (let next = 0; next < ids.length; next += atOnce) {
      const some = ids.slice(next, next + atOnce);
      const results = await Promise.all(some.map((id) => this.contains(tenant, id, search)));
      for (const [index, id] of some.entries()) if (results[index] === true) matching.push(id);
      progress.matched = matching.length;
      await new Promise((resolve) => setImmediate(resolve));
    }
    return matching;
  }

  private async contains(tenant: string, id: string, search: string): Promise<boolean> {
    const task = this.engine.peek((state) => findTask(state, tenant, id));
    return task !== null && containsText(task.task, await this.engine.payloads.ofTask(tenant, id), search);
  }

  private async change({ tenant, actor, action, reason }: BulkTasks, taskId: string): Promise<boolean> {
    const base = { tenant, actor, entropy: unstamped, taskId };
    const command =
      action === "cancel"
        ? { ...base, type: "cancel_task" as const, reason }
        : { ...base, type: "redrive_task" as const };
    const { reply } = await this.engine.command(command);
    return reply.type === "task";
  }

  private forget(): void {
    const now = this.engine.now();
    for (const [tenant, known] of this.known) {
      for (const [id, { endedAt }] of known) {
        if (endedAt !== null && (now - endedAt > keptMs || known.size >= keptMax)) known.delete(id);
      }
      if (known.size === 0) this.known.delete(tenant);
    }
  }
}

function isRunning({ endedAt }: OperationView): boolean {
  return endedAt === null;
}

function isChangeable({ action }: BulkTasks, { status }: Task): boolean {
  return action === "redrive" ? status === "dead" : !["succeeded", "failed", "canceled"].includes(status);
}

function whyFailed(fault: unknown): string {
  const what = fault instanceof Error ? fault.message : "unknown";
  return `It could not go on (${what}). What it had done is done; send the same filter again for the rest.`;
}

/** The operation itself is in the audit log too, with its filter (S7). */
export function runBulkTasks({ service, operation, command, caller, respond }: RunRequest<BulkTasks>): null {
  const { engine, bulk, keys } = service;
  const begun = bulk.begin(command, () => keys.goodUntil(caller.secret) > engine.now());
  if (begun === null) {
    const detail = `${runningMax} operations of the tenant are running; wait until one has ended.`;
    respond(errorAnswer("too_many_in_flight", detail));
    return null;
  }
  const { tenant, actor, filter, dryRun } = command;
  note(
    engine,
    { tenant, actor, name: operation.name, id: begun.id, detail: { filter, dry_run: dryRun } },
    engine.now(),
  ).then(
    () => respond(answerJson(202, { operation_id: begun.id })),
    (fault: unknown) => respond(answerForFault(service, fault)),
  );
  return null;
}

interface Noted {
  readonly tenant: string;
  readonly actor: Actor;
  readonly name: string;
  readonly id: string;
  readonly detail: object;
}

function note(engine: Engine, { tenant, actor, name, id, detail }: Noted, now: Millis): Promise<void> {
  return noteChange(engine, auditEntryOf(tenant, actor, name, id, detail, now));
}
