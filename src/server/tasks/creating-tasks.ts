/** Creating tasks, one or many: what they depend on, or what they repeat, may have ended; history says how (T12). */
import type { Engine } from "../../engine/engine.ts";
import type { Decision, Outlet } from "../../engine/engine-types.ts";
import { endedTasks, endedTasksByKey } from "../../engine/history.ts";
import { unstamped } from "../../kernel/contract/commands.ts";
import type { Refusal } from "../../kernel/contract/refusals.ts";
import type { Reply } from "../../kernel/contract/replies.ts";
import type { CreateTask } from "../../kernel/contract/task-commands.ts";
import type { EndedTask, TaskStatus } from "../../kernel/contract/task-records.ts";
import { answerForRepeated } from "../../kernel/kernel.ts";
import { type Answer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { CreateTasks } from "../../protocol/answers/queries.ts";
import { createdAnswer } from "../../protocol/tasks/task-json.ts";
import type { RunRequest } from "../answering/command-run.ts";
import { answerForFault } from "../answering/faults.ts";
import { KeyLookup } from "../answering/key-lookup.ts";
import { Results } from "../answering/results.ts";
import { inSlices } from "../answering/slices.ts";
import { artifactsIn } from "../artifacts/references.ts";
import type { Service } from "../service.ts";

export function runCreateTask({ service, operation, command, respond }: RunRequest<CreateTask>): null {
  const { artifacts } = service;
  const fail = (fault: unknown): void => respond(answerForFault(service, fault));
  const create = (): void =>
    createTask(service, command, {
      encode({ reply, now }) {
        service.counts.note(reply);
        return operation.encode(reply, { now });
      },
      send: respond,
      fail,
    });
  const { payloadPointer } = command.task;
  // Most have none.
  if (payloadPointer === null) create();
  else artifacts.refer(command.tenant, artifactsIn(payloadPointer)).then(create, fail);
  return null;
}

export function runCreateTasks(request: RunRequest<CreateTasks>): null {
  const { service, command, respond } = request;
  const pointers = command.items.flatMap((item) => (item.ok ? (item.value.payloadPointer ?? []) : []));
  if (pointers.length === 0) createAll(request);
  else {
    service.artifacts.refer(command.tenant, artifactsIn(pointers)).then(
      () => createAll(request),
      (fault: unknown) => respond(answerForFault(service, fault)),
    );
  }
  return null;
}

/** Answered when all are durable. */
function createAll({ service, command, respond }: RunRequest<CreateTasks>): void {
  const { counts } = service;
  const { tenant, actor, items } = command;
  const results = new Results(service, items.length, respond);
  inSlices(items.length, (index) => {
    const item = items[index];
    if (item?.ok === true) {
      const task = item.value;
      // Of these there may be a thousand in one turn: one object each, in place of copies and closures.
      submitCreation(
        service,
        { type: "create_task", tenant, actor, entropy: unstamped, task, endedDependencies: null, asksHistory: true },
        new ItemOutlet(counts, results, index),
      );
    } else if (item !== undefined) {
      counts.refuse(item.fault.code);
      results.set(index, faultAnswer(item.fault));
    }
    return !results.isOver;
  });
}

/** What answers one of many. */
class ItemOutlet implements EncodingOutlet<Answer> {
  private readonly counts: Service["counts"];
  private readonly results: Results;
  private readonly index: number;

  constructor(counts: Service["counts"], results: Results, index: number) {
    this.counts = counts;
    this.results = results;
    this.index = index;
  }

  encode({ reply, now }: Decision): Answer {
    this.counts.note(reply);
    return createdAnswer(reply, { now });
  }

  send(answer: Answer): void {
    this.results.set(this.index, answer);
  }

  fail(fault: unknown): void {
    this.results.fail(fault);
  }
}

interface EncodingOutlet<T> extends Outlet<T> {
  readonly encode: (decided: Decision) => T;
}

interface Creating {
  readonly engine: Engine;
  readonly taskKeys: TaskKeys;
}

/** Submits at once, and reads history only where the kernel asks for it. */
export function createTask<T>(creating: Creating, command: CreateTask, outlet: EncodingOutlet<T>): void {
  submitCreation(creating, { ...command, asksHistory: true }, outlet);
}

function submitCreation<T>(creating: Creating, command: CreateTask, outlet: EncodingOutlet<T>): void {
  creating.engine.submit(command, new Creation(creating, command, outlet, false));
}

/** T12: what answers a creation whose key is held; it is let go once that is durable. */
function releasing<T>(outlet: EncodingOutlet<T>, release: () => void): EncodingOutlet<T> {
  return {
    encode: outlet.encode.bind(outlet),
    send: (encoded: T) => {
      release();
      outlet.send(encoded);
    },
    fail: (fault: Error) => {
      release();
      outlet.fail(fault);
    },
  };
}

class Creation<T> implements Outlet<T | null> {
  private readonly creating: Creating;
  private readonly outlet: EncodingOutlet<T>;
  /** Null as soon as it is not needed: a task may be large, and this object stays until the commit (0013). */
  private command: CreateTask | null;
  /** The decision that history has to complete. */
  private unsettled: Decision | null = null;
  /** Whether no other creation with the same key is decided meanwhile. */
  private readonly isHeld: boolean;

  constructor(creating: Creating, command: CreateTask, outlet: EncodingOutlet<T>, isHeld: boolean) {
    this.creating = creating;
    this.outlet = outlet;
    this.command = command;
    this.isHeld = isHeld;
  }

  encode(decided: Decision): T | null {
    const { reply } = decided;
    if (isUnknownDependency(reply) || reply.type === "task_key_unknown") {
      this.unsettled = decided;
      return null;
    }
    this.command = null;
    return this.outlet.encode(decided);
  }

  send(encoded: T | null): void {
    const { command, unsettled } = this;
    if (command !== null && unsettled !== null)
      this.complete(command, unsettled).catch((fault: Error) => this.outlet.fail(fault));
    else if (encoded !== null) this.outlet.send(encoded);
  }

  fail(fault: Error): void {
    this.outlet.fail(fault);
  }

  private async complete(command: CreateTask, decided: Decision): Promise<void> {
    const { creating, outlet } = this;
    const { engine, taskKeys } = creating;
    const { tenant, task } = command;
    const { isHeld } = this;
    const again = (changed: CreateTask): void =>
      engine.submit(changed, new Creation(creating, changed, outlet, isHeld));
    if (!isUnknownDependency(decided.reply)) {
      if (!isHeld) return this.hold(command);
      const known = await taskKeys.find(tenant, task.idempotencyKey ?? "");
      if (known === null) return again({ ...command, asksHistory: false });
      return outlet.send(outlet.encode({ ...decided, reply: answerForRepeated(task, known) }));
    }
    const ended = await endedTasks(engine.store, tenant, decided.reply.missing ?? []);
    if (ended.length === 0) return outlet.send(outlet.encode(decided));
    // What was found stays found; another one may have ended meanwhile, and is looked up next (T12).
    const statuses: Readonly<Record<string, TaskStatus>> = {
      ...command.endedDependencies,
      ...Object.fromEntries(ended.map(({ id, status }) => [id, status] as const)),
    };
    again({ ...command, endedDependencies: statuses });
  }

  /** Asked once more with the key in hand: of two at once, the second finds what the first has done. */
  private hold(command: CreateTask): void {
    const { creating, outlet } = this;
    creating.taskKeys.hold(command.tenant, command.task.idempotencyKey ?? "", (release) => {
      creating.engine.submit(command, new Creation(creating, command, releasing(outlet, release), true));
    });
  }
}

function isUnknownDependency(reply: Reply): reply is Refusal {
  return reply.type === "refused" && reply.code === "dependency_unknown";
}

/** T12: what the keys of creations were used for, of tasks that have ended. */
export type TaskKeys = KeyLookup<EndedTask>;

export function taskKeysOf(engine: Engine): TaskKeys {
  return new KeyLookup((tenant, keys) => endedTasksByKey(engine.store, tenant, [...keys]));
}
