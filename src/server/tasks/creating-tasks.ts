/** Creating tasks, one or many: what they depend on may have ended, and then history says how (T12). */
import type { Engine } from "../../engine/engine.ts";
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { completeReply, endedTasks, needsHistory } from "../../engine/history.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import type { CreateTask } from "../../kernel/contract/task-commands.ts";
import type { TaskStatus } from "../../kernel/contract/task-records.ts";
import { type Answer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { CreateTasks } from "../../protocol/answers/queries.ts";
import { createdAnswer } from "../../protocol/tasks/task-json.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { Results } from "../answering/results.ts";

export function runCreateTask({ service, operation, command, respond }: RunRequest<CreateTask>): null {
  createTask(service.engine, command, {
    encode({ reply, now }) {
      service.counts.note(reply);
      return operation.encode(reply, { now });
    },
    send: respond,
    fail: (fault) => respond(answerForFault(service, fault)),
  });
  return null;
}

/** All are submitted in one turn, and answered when all are durable. */
export function runCreateTasks({ service, command, respond }: RunRequest<CreateTasks>): null {
  const { engine, counts } = service;
  const { tenant, actor, items } = command;
  const results = new Results(service, items.length, respond);
  for (const [index, item] of items.entries()) {
    if (!item.ok) {
      counts.refuse(item.fault.code);
      results.set(index, faultAnswer(item.fault));
      continue;
    }
    const task = item.value;
    const create = { type: "create_task", tenant, actor, entropy: unstamped, task, endedDependencies: null } as const;
    createTask<Answer>(engine, create, {
      encode({ reply, now }) {
        counts.note(reply);
        return createdAnswer(reply, { now });
      },
      send: (answer) => results.set(index, answer),
      fail: (fault) => results.fail(fault),
    });
  }
  return null;
}

interface EncodingOutlet<T> extends Outlet<T> {
  readonly encode: (decided: Decision) => T;
}

/** Submits at once, and reads history only where the kernel asks for it. */
export function createTask<T>(engine: Engine, command: CreateTask, outlet: EncodingOutlet<T>): void {
  engine.submit(command, new Creation(engine, command, outlet));
}

class Creation<T> implements Outlet<T | Unsettled> {
  private readonly engine: Engine;
  private readonly outlet: EncodingOutlet<T>;
  /** Null as soon as it is not needed: a task may be large, and this object stays until the commit (0013). */
  private command: CreateTask | null;

  constructor(engine: Engine, command: CreateTask, outlet: EncodingOutlet<T>) {
    this.engine = engine;
    this.outlet = outlet;
    this.command = command;
  }

  encode(decided: Decision): T | Unsettled {
    const { reply } = decided;
    const isDependencyUnknown = reply.type === "refused" && reply.code === "dependency_unknown";
    if (this.command !== null && isDependencyUnknown && this.command.endedDependencies === null)
      return new Unsettled(this.command, decided, reply.missing ?? []);
    if (this.command !== null && reply.type !== "task" && needsHistory(reply))
      return new Unsettled(this.command, decided, null);
    this.command = null;
    return this.outlet.encode(decided);
  }

  send(encoded: T | Unsettled): void {
    if (!(encoded instanceof Unsettled)) return this.outlet.send(encoded);
    this.complete(encoded).catch((fault: Error) => this.outlet.fail(fault));
  }

  fail(fault: Error): void {
    this.outlet.fail(fault);
  }

  private async complete({ command, decided, missing }: Unsettled): Promise<void> {
    const { engine, outlet } = this;
    if (missing === null) {
      const reply = await completeReply(engine.store, command, decided.reply);
      return outlet.send(outlet.encode({ ...decided, reply }));
    }
    const ended = await endedTasks(engine.store, command.tenant, missing);
    if (ended.length === 0) return outlet.send(outlet.encode(decided));
    const statuses: Readonly<Record<string, TaskStatus>> = Object.fromEntries(
      ended.map(({ id, status }) => [id, status] as const),
    );
    createTask(engine, { ...command, endedDependencies: statuses }, outlet);
  }
}

/** A decision that history has to complete; `missing` are the dependencies that the kernel does not know. */
class Unsettled {
  readonly command: CreateTask;
  readonly decided: Decision;
  readonly missing: readonly string[] | null;

  constructor(command: CreateTask, decided: Decision, missing: readonly string[] | null) {
    this.command = command;
    this.decided = decided;
    this.missing = missing;
  }
}
