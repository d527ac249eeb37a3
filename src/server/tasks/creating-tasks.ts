/** Creating tasks, one or many: what they depend on may have ended, and then history says how (T12). */

import { readEndedTask } from "../../engine/codec/task-text.ts";
import type { Engine } from "../../engine/engine.ts";
import { drawEntropy } from "../../engine/entropy.ts";
import type { Decided } from "../../engine/terms.ts";
import type { CreateTask } from "../../kernel/contract/task-commands.ts";
import type { TaskStatus } from "../../kernel/contract/task-records.ts";
import { type Answer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { CreateTasks } from "../../protocol/answers/queries.ts";
import { createdAnswer } from "../../protocol/tasks/task-replies.ts";
import { createGathering } from "../receipts/gathering.ts";
import { answerFromHistory, isForHistory } from "../receipts/task-history.ts";
import type { Service } from "../service.ts";

/** Submits at once, and looks into history only where the kernel asks for it. What `word` returns says the answer. */
export function createTask(
  engine: Engine,
  command: CreateTask,
  word: (decided: Decided) => () => void,
  failed: (fault: unknown) => void,
): void {
  engine.prepare(
    command,
    (decided) => {
      if (isSettled(decided, command)) return word(decided);
      return () => void complete(engine, command, decided).then((completed) => word(completed)(), failed);
    },
    failed,
  );
}

function isSettled({ reply }: Decided, { endedDependencies }: CreateTask): boolean {
  if (reply.type === "refused") return reply.code !== "dependency_unknown" || endedDependencies !== null;
  return !isForHistory(reply);
}

async function complete(engine: Engine, command: CreateTask, decided: Decided): Promise<Decided> {
  const { reply } = decided;
  if (reply.type !== "refused") return { ...decided, reply: await answerFromHistory(engine, command, reply) };
  const ended = await engine.store.endedTasks(command.tenant, reply.missing ?? []);
  if (ended.length === 0) return decided;
  const statuses = ended.map(({ body }) => readEndedTask(body)).map(({ id, status }) => [id, status] as const);
  const endedDependencies: Readonly<Record<string, TaskStatus>> = Object.fromEntries(statuses);
  // Drawn anew: the first try has used its numbers for nothing, but the clock has moved on.
  const again = { ...command, endedDependencies, entropy: drawEntropy() };
  return new Promise((resolve, reject) => createTask(engine, again, (found) => () => resolve(found), reject));
}

/** All are submitted in one turn, and answered when all are durable. */
export function createTasks(
  { engine, tally }: Service,
  { tenant, actor, items }: CreateTasks,
  respond: (answer: Answer) => void,
  failed: (fault: unknown) => void,
): void {
  const gathering = createGathering(items.length, respond, failed);
  for (const [index, item] of items.entries()) {
    if (!item.ok) {
      tally.refuse(item.fault.code);
      gathering.settle(index, faultAnswer(item.fault));
      continue;
    }
    const task = item.value;
    const entropy = drawEntropy();
    createTask(
      engine,
      { type: "create_task", tenant, actor, entropy, task, endedDependencies: null },
      ({ reply, now }) => {
        const answered = createdAnswer(reply, { now });
        return () => {
          tally.note(reply);
          gathering.settle(index, answered);
        };
      },
      gathering.fail,
    );
  }
}
