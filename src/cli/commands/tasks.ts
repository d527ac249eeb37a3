/** Tasks: created, listed, explained, cancelled. */
import { readFileSync } from "node:fs";
import { taskStatuses } from "../../protocol/schema/vocabulary.ts";
import type { Explained, OperationInputs, Task } from "../../sdk/wire.ts";
import type { Call, Command, Flags } from "../command.ts";
import { readIntents } from "../manifest.ts";
import { limitFlag, showList } from "../pages.ts";
import type { Colour } from "../paint.ts";
import { plain, plainLines } from "../plain-text.ts";
import { messageOf, UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";
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
  { title: "SUMMARY", cell: ({ task_summary: summary }) => summary ?? "", gives: "end" },
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
    flags: addFlags,
    examples: [
      ["leasehold tasks add code.review --summary 'review src/auth.ts' --body @request.md", "for a worker that polls"],
      [
        "leasehold tasks add code.fix --mutates src/auth.ts --requires typescript",
        "with what it needs, granted with it",
      ],
      ["echo '{\"n\": 7}' | leasehold tasks add math.square --inputs - --json", "from a pipe"],
    ],
    run: async (call) => {
      const created = await call.ask("create_task", taskOf(call));
      call.out.show(created, () => created.task_id);
    },
  },
  {
    name: "tasks ls",
    summary: "lists tasks: live ones first, then those that have ended",
    usage: "[--status STATUS] [--type TYPE]",
    flags: { ...listFlags, limit: limitFlag },
    examples: [
      ["leasehold tasks ls", "all of them"],
      ["leasehold tasks ls --status dead", "those that no worker could do"],
    ],
    run: (call) =>
      showList(call, "tasks", taskColumns, "There are no tasks.", (page) =>
        call.ask("list_tasks", { ...page, ...call.fields(listFlags) }),
      ),
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
          ...(task.task_body === null ? [] : [`${plain(task.task_body)}\n`]),
          ...(receipts.length === 0 ? [] : [out.table(receipts, receiptColumns, "")]),
          ...(result === null || result.outcome_text === "NA" ? [] : [`${plainLines(result.outcome_text)}\n`]),
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
