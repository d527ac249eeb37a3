/** Tasks: created, listed, explained, cancelled. */
import { readFileSync } from "node:fs";
import { taskStatuses } from "../../protocol/schema/vocabulary.ts";
import type { Explained, OperationInputs, Task } from "../../sdk/wire.ts";
import type { Call, Command, Flags } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { readIntents } from "../manifest.ts";
import { limitFlag, limitOf, listAll, type Page, showList } from "../pages.ts";
import type { Colour } from "../paint.ts";
import { plain, plainLines } from "../plain-text.ts";
import { messageOf, UsageProblem } from "../problem.ts";
import { untilStopped } from "../stop-signals.ts";
import type { Column } from "../table.ts";
import { hasEnded, type TaskWithReceipts, waitForTasks, waitLimitFlag } from "../task-waiting.ts";
import { PartState } from "../watch/part.ts";
import { tasksPart } from "../watch/tasks-part.ts";
import { watchFlag, watchLists } from "../watch/watch.ts";
import { receiptColumns } from "./receipts.ts";

const taskColours: Readonly<Record<Task["status"], Colour>> = {
  succeeded: "green",
  failed: "red",
  dead: "red",
  retry_pending: "yellow",
  queued: "dim",
  canceled: "dim",
  leased: "cyan",
  accepted: "cyan",
};

const taskColumns: readonly Column<Task>[] = [
  { title: "TASK", cell: ({ task_id: id }) => id },
  { title: "TYPE", cell: ({ task_type: type }) => type, gives: "end" },
  { title: "STATUS", cell: ({ status }) => status, colour: ({ status }) => taskColours[status] },
  { title: "TRIES", cell: ({ attempts, max_attempts: max }) => `${attempts}/${max}` },
  {
    title: "WORKER",
    cell: ({ leases }) => leases.map(({ worker_id: worker }) => worker).join(" ") || "-",
    gives: "end",
  },
  { title: "FOR", cell: ({ principal_ai: principal }) => principal, gives: "end" },
  { title: "SUMMARY", cell: ({ task_summary: summary }) => summary ?? "", gives: "end", last: true },
];

const shortColumns: readonly Column<Task>[] = [
  { title: "TASK", cell: ({ task_id: id }) => id },
  { title: "STATUS", cell: ({ status }) => status, colour: ({ status }) => taskColours[status] },
];

const addFlags: Flags = {
  principal: { sign: "AI", words: "whose task it is [LEASEHOLD_PRINCIPAL, else the user's name]" },
  summary: { sign: "TEXT", words: "in a line, for people", field: "task_summary" },
  body: { sign: "TEXT", words: "the full text; @FILE reads a file, - standard input" },
  inputs: { sign: "JSON", words: "any JSON; @FILE and - as for --body" },
  payload: { sign: "POINTER", words: "where more of it lies", field: "payload_pointer" },
  priority: { sign: "N", words: "larger is more urgent [0]; -N for less" },
  requires: { sign: "CAP", words: "a capability that the worker must have", many: true, field: "requires" },
  mutates: { sign: "RES", words: "what it will change: offered only when that is free", many: true },
  consumes: { sign: "RES", words: "what it will read", many: true },
  delay: { sign: "TIME", words: "not before", field: "delay_ms" },
  attempts: { sign: "N", words: "accepted attempts before it is dead [3]", min: 1, field: "max_attempts" },
  lease: { sign: "TIME", words: "how long a worker has without a heartbeat [15m]", field: "lease_duration_ms" },
  after: { sign: "TASK", words: "a task that must have succeeded first", many: true, field: "depends_on" },
  "concurrency-key": { sign: "KEY", words: "tasks with this key share a limit", field: "concurrency_key" },
  "concurrency-limit": { sign: "N", words: "how many of them run at once [1]", min: 1, field: "concurrency_limit" },
  speculative: { words: "give it to two workers; the first to complete wins", field: "speculative" },
  preemptible: { words: "may be asked to make room for a more urgent one", field: "preemptible" },
  parent: { sign: "TASK", words: "the task that this is a part of", field: "parent_task_id" },
  "idempotency-key": { sign: "KEY", words: "a repeated request returns the first task", field: "idempotency_key" },
};

const listFlags: Flags = {
  status: {
    sign: "STATUS",
    words: `only in this status: ${taskStatuses.join(", ")}`,
    choices: taskStatuses,
    field: "status",
  },
  type: { sign: "TYPE", words: "only of this type", field: "task_type" },
};

export const commands: readonly Command[] = [
  {
    name: "tasks add",
    summary: "creates a task",
    usage: "TYPE [--summary TEXT] [--body TEXT] [--inputs JSON] …",
    flags: {
      ...addFlags,
      wait: { words: "wait for its end, and print its result; the exit code tells how it ended" },
      limit: { sign: "TIME", words: "with --wait: wait this long at most [for ever]" },
    },
    examples: [
      ["leasehold tasks add code.fix --body @bug.md --wait", "and print what the worker answered"],
      ["leasehold tasks add code.review --summary 'review src/auth.ts' --body @request.md", "for a worker that polls"],
      [
        "leasehold tasks add code.fix --mutates src/auth.ts --requires typescript",
        "with what it needs, granted with it",
      ],
      ["echo '{\"n\": 7}' | leasehold tasks add math.square --inputs - --json", "from a pipe"],
    ],
    run: async (call) => {
      if (call.isSet("limit") && !call.isSet("wait")) throw new UsageProblem("--limit goes with --wait");
      const created = await call.ask("create_task", taskOf(call));
      if (!call.isSet("wait")) return void call.out.show(created, () => created.task_id);
      if (process.stderr.isTTY === true) call.out.note(`created ${created.task_id}; waits for its end`);
      return showEnd(call, [created.task_id], call.durationMs("limit"));
    },
  },
  {
    name: "tasks wait",
    summary: "waits until tasks have ended, and shows their results",
    usage: "TASK… [-w TIME]",
    words: [1, 256],
    about: `The exit code is 0 if all have succeeded, 1 if one has failed, was canceled or is dead, and 7 if one has not ended
within --wait. It goes on through a restart of the server.`,
    flags: { wait: waitLimitFlag },
    examples: [
      ["leasehold tasks wait T-01m7gwjckrcqwzyjd2r67n", "then its result is printed"],
      ["leasehold tasks wait -w 10m T-01m7gwjckrcqwzyjd2r67n --json | jq .tasks[0].status", "for a script"],
    ],
    run: (call) => showEnd(call, call.words, call.durationMs("wait")),
  },
  {
    name: "tasks ls",
    summary: "lists tasks: live ones first, then those that have ended",
    usage: "[--status STATUS] [--type TYPE] [--watch]",
    flags: { ...listFlags, watch: watchFlag, limit: limitFlag },
    examples: [
      ["leasehold tasks ls", "all of them"],
      ["leasehold tasks ls --watch", "and what becomes of them"],
      ["leasehold tasks ls --status dead", "those that no worker could do"],
    ],
    run: (call) => {
      const ask = (page: Page) => call.ask("list_tasks", { ...page, ...call.fields(listFlags) });
      if (!call.isSet("watch")) return showList(call, "tasks", taskColumns, "There are no tasks.", ask);
      const read = () => listAll("tasks", limitOf(call), ask);
      return watchLists(call, { lists: [new PartState(tasksPart(read, taskColumns, call.fields(listFlags)))] });
    },
  },
  {
    name: "tasks show",
    summary: "shows a task, its result and its receipts",
    usage: "TASK",
    examples: [
      ["leasehold tasks show T-01m7gwjckrcqwzyjd2r67n --json | jq -r .result.outcome_text", "only the result"],
    ],
    run: async (call) => {
      const { out } = call;
      const task = await call.ask("get_task", { task_id: call.word });
      const { result, receipts } = task;
      out.show(task, () =>
        [
          out.table([task], taskColumns, ""),
          ...labelled("body", task.task_body),
          ...(receipts.length === 0 ? [] : [out.table(receipts, receiptColumns, "")]),
          ...(task.status === "succeeded" ? [] : labelled("last failure", lastFailure(task))),
          ...labelled("result", result?.outcome_text ?? null),
        ].join(out.isTerminal ? "\n" : ""),
      );
    },
  },
  {
    name: "tasks explain",
    summary: "says why a task is not running",
    usage: "TASK",
    examples: [["leasehold tasks explain T-01m7gwjckrcqwzyjd2r67n", "what does it wait for?"]],
    run: async (call) => {
      const explained = await call.ask("explain_task", { task_id: call.word });
      call.out.show(explained, () => explainedWords(explained));
    },
  },
  {
    name: "tasks cancel",
    summary: "cancels a task; its worker is notified",
    usage: "TASK [--reason TEXT]",
    flags: { reason: { sign: "TEXT", words: "why" } },
    examples: [["leasehold tasks cancel T-01m7gwjckrcqwzyjd2r67n --reason 'no longer needed'", "stop it"]],
    run: async (call) => {
      const input = { task_id: call.word, reason: call.text("reason") };
      call.out.row(await call.ask("cancel_task", input), shortColumns);
    },
  },
  {
    name: "tasks redrive",
    summary: "sends a dead task again",
    usage: "TASK",
    examples: [["leasehold tasks redrive T-01m7gwjckrcqwzyjd2r67n", "now that it can be done"]],
    run: async (call) => call.out.row(await call.ask("redrive_task", { task_id: call.word }), shortColumns),
  },
];

function labelled(label: string, text: string | null): readonly string[] {
  return text === null || text === "NA" ? [] : [`${label}: ${plainLines(text)}\n`];
}

/** Waits, and shows what became of them. */
async function showEnd(call: Call, taskIds: readonly string[], limitMs: number | null): Promise<number> {
  const client = await call.connect();
  const tasks = await untilStopped((stopped) => {
    const signals = [stopped, ...(limitMs === null ? [] : [AbortSignal.timeout(limitMs)])];
    return waitForTasks(client, taskIds, AbortSignal.any(signals));
  });
  call.out.show({ tasks }, () => tasks.map((task) => endWords(task)).join("\n"));
  const open = tasks.filter((task) => !hasEnded(task));
  for (const { task_id: id, status } of open) call.out.note(`${id} has not ended: it is ${status}`);
  if (open.length > 0) return exitCodes.notSo;
  const failed = tasks.filter(({ status }) => status !== "succeeded");
  for (const task of failed) call.out.note(`${task.task_id} is ${task.status}${whyText(task)}`);
  return failed.length > 0 ? exitCodes.failed : exitCodes.done;
}

/** In a pipe the result alone: it is what the caller asked for. */
function endWords({ task_id: id, status, result }: TaskWithReceipts): string {
  const text = result === null || result.outcome_text === "NA" ? null : plainLines(result.outcome_text);
  return text ?? `${id} ${status}`;
}

/** What the last attempt said when it failed. */
function lastFailure({ receipts }: TaskWithReceipts): string | null {
  const failed = receipts.findLast(({ phase, status }) => phase === "complete" && status === "failure");
  const text = failed?.outcome_text;
  return text === undefined || text === "NA" ? null : text;
}

function whyText(task: TaskWithReceipts): string {
  const text = lastFailure(task);
  return text === null ? "" : `: ${plain(text.split("\n")[0] ?? "").slice(0, 200)}`;
}

/** What it waits for comes as free JSON, so that a newer server can name more. */
function explainedWords({ task_id: id, status, waiting_for: reasons }: Explained): string {
  const lines = reasons.map((reason) => {
    const { kind, detail } = (reason ?? {}) as { readonly kind?: unknown; readonly detail?: unknown };
    return typeof detail === "string" ? `${String(kind)}: ${detail}` : JSON.stringify(reason);
  });
  const head = `${id} is ${status}${lines.length === 0 ? ", and waits for nothing" : ", and waits for"}`;
  return [head, ...lines.map((line) => `  ${plain(line)}`)].join("\n");
}

function taskOf(call: Call): OperationInputs["create_task"] {
  const { LEASEHOLD_PRINCIPAL, USER } = call.environment;
  const inputs = contentOf(call, "inputs");
  const intents = readIntents(call);
  return {
    ...call.fields(addFlags),
    task_type: call.word,
    principal_ai: call.text("principal") ?? (LEASEHOLD_PRINCIPAL || USER || "operator"),
    task_body: contentOf(call, "body"),
    task_priority: priorityOf(call),
    ...(inputs !== null && { inputs: jsonOf(inputs) }),
    ...(intents.length > 0 && { intents }),
  };
}

function priorityOf(call: Call): number | null {
  const text = call.text("priority");
  if (text === null) return null;
  if (!/^-?\d{1,9}$/.test(text))
    throw new UsageProblem(`--priority is "${text}"; give a whole number, such as --priority=-1`);
  return Number(text);
}

/** As `curl -d`: the text itself, a file's, or standard input. */
function contentOf(call: Call, flag: string): string | null {
  const text = call.text(flag);
  if (text === "-") return readFileSync(0, "utf8");
  if (text === null || !text.startsWith("@")) return text;
  try {
    return readFileSync(text.slice(1), "utf8");
  } catch (error) {
    throw new UsageProblem(`--${flag}: ${messageOf(error)}`);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageProblem(`--inputs is not JSON: ${messageOf(error)}`);
  }
}
