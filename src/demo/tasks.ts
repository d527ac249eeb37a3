/** Work to be done: a planner that adds tasks, two workers, one that comes too late, and a question to a person. */
import { LeaseholdError, TaskEscalated, TaskFailed } from "../sdk/index.ts";
import { taskSummaries } from "./cast.ts";
import { fileNamed } from "./editing.ts";
import { about, pause, repeat, type Stage } from "./stage.ts";

const principal = "planner";
/** Every nth task fails once, and every nth is a question for a person. */
const failsEvery = 7;
const asksEvery = 11;

export async function plan(stage: Stage): Promise<void> {
  await repeat(stage, async (nth) => {
    await stage.client.call("create_task", {
      task_type: nth % 4 === 3 ? "review" : "chore",
      principal_ai: principal,
      task_summary: taskSummaries[nth % taskSummaries.length] ?? null,
      inputs: { number: nth },
      task_priority: nth % 5 === 0 ? 5 : 0,
      requeue_delay_ms: 3_000,
      // What is offered with the task: no worker starts on it while an editor has the file.
      ...(nth % 6 === 4 && { intents: [{ predicate: "MUTATES", resource: fileNamed("docs/api.md") }] }),
    });
    await pause(stage, about(stage, 2.5));
  });
}

export async function workOnTasks(stage: Stage, workerId: string): Promise<void> {
  const worker = stage.client.worker({
    workerId,
    types: ["chore", "review"],
    concurrency: 2,
    drainOn: [],
    drainMs: 0,
    backOff: { errorMs: 1_000 },
    handler: async (task, { attempt, signal }) => {
      await pause(stage, about(stage, 3), signal);
      const { number } = task.inputs as { readonly number: number };
      if (number % asksEvery === asksEvery - 1) {
        stage.say(`A worker asks sam, a person, about "${task.task_summary}". See Inbox on the page.`);
        throw new TaskEscalated("two licences contradict each other; which one holds?", { class: "owner", to: "sam" });
      }
      if (number % failsEvery === failsEvery - 1 && attempt === 1) throw new TaskFailed("the registry did not answer");
      return `done, number ${number}`;
    },
  });
  await new Promise<void>((resolve) => stage.signal.addEventListener("abort", () => resolve(), { once: true }));
  await worker.drain();
}

/** A worker that accepts, falls asleep, and sends its result when another worker has the task. It is refused. */
export async function completeTooLate(stage: Stage): Promise<void> {
  const { client, say } = stage;
  await pause(stage, 10);
  await repeat(stage, async (nth) => {
    await client.call("create_task", {
      task_type: "deploy",
      principal_ai: principal,
      task_summary: "deploy the preview",
      inputs: { number: nth },
      lease_duration_ms: 4_000,
      requeue_delay_ms: 500,
    });
    const late = await take(stage, "deployer.sleepy");
    if (late === null) return;
    await pause(stage, 5.5);
    const next = await take(stage, "deployer.awake");
    const code = await complete(stage, late);
    say(
      `A worker finished "deploy the preview" too late: refused, ${code ?? "not at all"}; another worker has it now.`,
    );
    if (next !== null) await complete(stage, next);
    await pause(stage, about(stage, 40));
  });
}

async function take({ client }: Stage, workerId: string): Promise<string | null> {
  const polled = await client.call("poll_tasks", {
    worker_id: workerId,
    accept_types: ["deploy"],
    accept: true,
    hold_ms: 5_000,
  });
  return polled !== null && "lease_id" in polled ? polled.lease_id : null;
}

async function complete({ client }: Stage, leaseId: string): Promise<string | null> {
  try {
    await client.call("submit_receipt", { phase: "complete", status: "success", lease_id: leaseId });
    return null;
  } catch (error) {
    if (error instanceof LeaseholdError) return error.code;
    throw error;
  }
}
