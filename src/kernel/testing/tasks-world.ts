/**
 * Verbs for the tests of tasks, in the world of test-world.ts: a principal that creates, workers that poll, and their
 * receipts. As there, a verb expects to succeed; `refused` and `refusedReceipt` expect a refusal that changes nothing.
 */
import type { Actor } from "../contract/commands.ts";
import { blank } from "../contract/field.ts";
import { receiptInput, taskInput } from "../contract/inputs.ts";
import type { RefusalCode } from "../contract/refusals.ts";
import type { Offer } from "../contract/replies.ts";
import type {
  CreateTask,
  PollTasks,
  ReceiptInput,
  SetTaskType,
  SubmitReceipt,
  TaskInput,
} from "../contract/task-commands.ts";
import type { DedupeMark, Receipt, Task, TaskType, Worker } from "../contract/task-records.ts";
import type { WaitingFor } from "../kernel.ts";
import type { TaskEntry } from "../memory/task-state.ts";
import { explain } from "../views.ts";
import { type AskOf, createWorld, found, type Intents, intentOf, operator, type ReplyOf } from "./test-world.ts";

export const plainTask: TaskInput = { ...blank(taskInput), taskType: "build", principalAi: "delegate.root" };

export const plainReceipt: ReceiptInput = { ...blank(receiptInput), phase: "progress" };

/** What only tasks, workers and receipts are refused for; each is met in bad-tasks.test.ts. */
export const taskRefusals = [
  "invalid_worker_id",
  "invalid_task",
  "invalid_receipt",
  "task_unknown",
  "dependency_unknown",
  "complete_without_accept",
  "already_completed",
  "stale_fence",
  "dedupe_conflict",
  "idempotency_key_reused",
  "task_not_dead",
  "obligation_unknown",
  "obligation_not_overdue",
  "quota_exceeded",
  "tenant_suspended",
] as const satisfies readonly RefusalCode[];

/** A task by what is unusual about it; its manifest as text, as in test-world.ts. */
export type TaskWish = Partial<Omit<TaskInput, "intents">> & { readonly intents?: Intents };

export type PollTerms = Partial<Omit<AskOf<PollTasks>, "type" | "workerId">>;

export type TaskWorld = ReturnType<typeof createTaskWorld>;

/** What an ended lease is known by: the offer that it was, or its task's. */
type HeldOffer = Pick<Offer, "task" | "lease">;

export function createTaskWorld(...agents: readonly string[]) {
  const world = createWorld(...agents);
  const { ask, expect } = world;
  const entry = () => found(world.base.state.tenants.get(world.tenant), world.tenant);
  const entryOf = (taskId: string): TaskEntry => found(entry().tasks.get(taskId), taskId);
  const task = (taskId: string): Task => entryOf(taskId).record;
  const explained = (taskId: string): readonly WaitingFor[] =>
    explain(world.base.state, world.tenant, taskId, world.now);

  const creation = ({ intents, ...claim }: TaskWish = {}): AskOf<CreateTask> => ({
    type: "create_task",
    task: {
      ...plainTask,
      ...claim,
      intents: intents === undefined ? null : (typeof intents === "string" ? [intents] : intents).map(intentOf),
    },
    endedDependencies: null,
  });
  const create = (claim: TaskWish = {}): string => expect("task", ask(creation(claim))).task.id;
  const polling = (workerId: string, terms: PollTerms = {}): AskOf<PollTasks> => ({
    type: "poll_tasks",
    workerId,
    capabilities: null,
    maxTasks: 1,
    preferredKinds: null,
    requestKey: null,
    reclaim: false,
    ...terms,
  });
  const polls = (workerId: string, terms: PollTerms = {}): readonly Offer[] =>
    expect("offers", ask(polling(workerId, terms))).offers;
  /** The one offer that the worker gets. */
  const offered = (workerId: string, terms: PollTerms = {}): Offer => {
    const offers = polls(workerId, terms);
    if (offers.length !== 1) throw new Error(`Expected one offer, got ${offers.length}`);
    return found(offers[0], "offer");
  };
  const receipt = (
    phase: string,
    held: HeldOffer | string,
    change: Partial<ReceiptInput> = {},
    actor: Actor = operator,
  ): AskOf<SubmitReceipt> => {
    const named = typeof held === "string" ? { taskId: held } : { taskId: held.task.id, leaseId: held.lease.id };
    return { type: "submit_receipt", actor, receipt: { ...plainReceipt, phase, ...named, ...change } };
  };
  const submit = (
    phase: string,
    held: HeldOffer | string,
    change: Partial<ReceiptInput> = {},
    actor?: Actor,
  ): Receipt => expect("receipt", ask(receipt(phase, held, change, actor))).receipt;

  return {
    ...world,
    // A getter is lost when it is spread.
    get now() {
      return world.now;
    },
    get events() {
      return world.events;
    },
    get happened() {
      return world.happened;
    },
    get ready() {
      return world.ready;
    },
    creation,
    create,
    polling,
    polls,
    offered,
    /** The worker gets nothing. */
    idles: (workerId: string, terms?: PollTerms): void => {
      const offers = polls(workerId, terms);
      if (offers.length > 0) throw new Error(`Expected nothing, got ${offers.map((one) => one.task.id).join(", ")}`);
    },
    receipt,
    submit,
    accept: (held: HeldOffer | string, change?: Partial<ReceiptInput>): Receipt => submit("accepted", held, change),
    succeed: (held: HeldOffer | string, change: Partial<ReceiptInput> = {}): Receipt =>
      submit("complete", held, { status: "success", ...change }),
    fail: (held: HeldOffer | string, change: Partial<ReceiptInput> = {}): Receipt =>
      submit("complete", held, { status: "failure", ...change }),
    escalate: (held: HeldOffer | string, change: Partial<ReceiptInput> = {}): Receipt =>
      submit("escalate", held, { escalationClass: "capability", escalationReason: "cannot", ...change }),
    /** An offer, accepted. */
    start: (workerId: string, terms?: PollTerms): Offer => {
      const offer = offered(workerId, terms);
      submit("accepted", offer);
      return offer;
    },
    refusedReceipt: (code: RefusalCode, phase: string, held: HeldOffer | string, change?: Partial<ReceiptInput>) =>
      world.refused(code, receipt(phase, held, change)),
    beat: ({ lease }: HeldOffer, progress?: unknown): ReplyOf<"task_lease"> =>
      expect("task_lease", ask({ type: "heartbeat_task", leaseId: lease.id, progress })),
    giveBack: ({ lease }: HeldOffer): void => void expect("lease", ask({ type: "release_task", leaseId: lease.id })),
    cancelTask: (taskId: string, reason: string | null = null): Task =>
      expect("task", ask({ type: "cancel_task", taskId, reason })).task,
    recover: (obligationId: string, custodian: string, reason = "its worker is gone"): ReplyOf<"obligation"> =>
      expect("obligation", ask({ type: "recover_obligation", obligationId, custodian, reason })),
    redrive: (taskId: string): Task => expect("task", ask({ type: "redrive_task", taskId })).task,
    setType: (taskType: string, settings: SetTaskType["settings"]): TaskType =>
      expect("task_type", ask({ type: "set_task_type", taskType, settings })).taskType,

    // What is there.
    task,
    taskIfAlive: (taskId: string): Task | undefined => entry().tasks.get(taskId)?.record,
    statusOf: (taskId: string): Task["status"] =>
      entry().tasks.get(taskId)?.record.status ?? world.endedTask(taskId).status,
    placeOf: (taskId: string): TaskEntry["place"] => entryOf(taskId).place,
    tasks: (): Task[] => Array.from(entry().tasks.values(), ({ record }) => record),
    worker: (workerId: string): Worker => found(entry().book.workers.get(workerId), workerId).record,
    receiptsOf: (taskId: string): readonly Receipt[] => world.receipts.filter((one) => one.taskId === taskId),
    phasesOf: (taskId: string): readonly string[] =>
      world.receipts
        .filter((one) => one.taskId === taskId)
        .map(({ phase, status, escalationReason }) => [phase, status ?? escalationReason ?? ""].join(" ").trimEnd()),
    explain: explained,
    kindsOf: (taskId: string): readonly string[] => explained(taskId).map(({ kind }) => kind),
    marksOf: (taskId: string): readonly DedupeMark[] => task(taskId).dedupes,
  };
}
