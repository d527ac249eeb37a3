/** Tasks: giving work to others, and what became of it. */
import { readFileSync } from "node:fs";
import { taskStatuses } from "../../protocol/schema/vocabulary.ts";
import type { OperationInputs, Task } from "../../sdk/wire.ts";
import type { Call, Command, Flags } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { readIntents } from "../manifest.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { plain } from "../plain-text.ts";
import { UsageProblem } from "../problem.ts";
import { receiptColumns } from "../receipt-words.ts";
import type { Column } from "../table.ts";
import { explainedWords, taskColour, taskColumns } from "../task-words.ts";

const addFlags: Flags = {
  principal: { sign: "AI", words: "whose task it is [LEASEHOLD_PRINCIPAL, else the user's name]" },
  summary: { sign: "TEXT", words: "in a line, for people" },
  body: { sign: "TEXT", words: "all there is to say; @FILE reads a file, - standard input" },
  inputs: { sign: "JSON", words: "any JSON; @FILE and - as for --body" },
  payload: { sign: "POINTER", words: "where more of it lies" },
  priority: { sign: "N", words: "larger is more urgent [0]; -N for less" },
  requires: { sign: "CAP", words: "a capability that the worker must have", many: true },
  mutates: { sign: "RES", words: "what it will change: offered only when that is free", many: true },
  consumes: { sign: "RES", words: "what it will read", many: true },
  delay: { sign: "TIME", words: "not before" },
  attempts: { sign: "N", words: "accepted attempts before it is dead [3]" },
  lease: { sign: "TIME", words: "how long a worker has without a sign of life [15m]" },
  after: { sign: "TASK", words: "a task that must have succeeded first", many: true },
  "concurrency-key": { sign: "KEY", words: "tasks with this key share a limit" },
  "concurrency-limit": { sign: "N", words: "how many of them run at once [1]" },
  speculative: { words: "give it to two workers; the first to complete wins" },
  preemptible: { words: "may be asked to make room for a more urgent one" },
  parent: { sign: "TASK", words: "the task that this is a part of" },
  "idempotency-key": { sign: "KEY", words: "sent again, the first task is the answer" },
};

export const tasksAddCommand: Command = {
  name: "tasks add",
  summary: "creates a task",
  usage: "TYPE [--summary TEXT] [--body TEXT] [--inputs JSON] …",
  words: [1, 1],
  flags: addFlags,
  examples: [
    ["leasehold tasks add code.review --summary 'review src/auth.ts' --body @request.md", "for a worker that polls"],
    ["leasehold tasks add code.fix --mutates src/auth.ts --requires typescript", "with what it needs, granted with it"],
    ["echo '{\"n\": 7}' | leasehold tasks add math.square --inputs - --json", "from a pipe"],
  ],
  run: async (call) => {
    const { out } = call;
    const task = taskOf(call);
    const created = await (await call.connect()).call("create_task", task);
    out.show(created, () => created.task_id);
    return exitCodes.done;
  },
};

export const tasksListCommand: Command = {
  name: "tasks ls",
  summary: "lists tasks: the living first, then those that have ended",
  usage: "[--status STATUS] [--type TYPE]",
  words: [0, 0],
  flags: {
    status: { sign: "STATUS", words: `only in this status: ${taskStatuses.join(", ")}` },
    type: { sign: "TYPE", words: "only of this type" },
    limit: limitFlag,
  },
  examples: [
    ["leasehold tasks ls", "all of them"],
    ["leasehold tasks ls --status dead", "what nobody could do"],
  ],
  run: async (call) => {
    const { out } = call;
    const status = call.choice("status", taskStatuses);
    const type = call.text("type");
    const limit = limitOf(call);
    const client = await call.connect();
    const { items, hasMore } = await listAll(
      limit,
      (page) =>
        client.call("list_tasks", {
          ...page,
          ...(status !== null && { status }),
          ...(type !== null && { task_type: type }),
        }),
      (page) => page.tasks,
    );
    out.show(
      { tasks: items, has_more: hasMore },
      () => `${out.table(items, taskColumns, "There are no tasks.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};

export const tasksShowCommand: Command = {
  name: "tasks show",
  summary: "shows a task, its result and its receipts",
  usage: "TASK",
  words: [1, 1],
  flags: {},
  examples: [["leasehold tasks show T-01m7gwjckrcqwzyjd2r67n --json | jq -r .result.outcome_text", "only the result"]],
  run: async (call) => {
    const { out } = call;
    const task = await (await call.connect()).call("get_task", { task_id: call.words[0] ?? "" });
    const { result, receipts } = task;
    out.show(task, () =>
      [
        out.table([task], taskColumns, ""),
        ...(task.task_body === null ? [] : [`${plain(task.task_body)}\n`]),
        ...(receipts.length === 0 ? [] : [out.table(receipts, receiptColumns, "")]),
        ...(result === null || result.outcome_text === "NA" ? [] : [`${result.outcome_text}\n`]),
      ].join(out.isTerminal ? "\n" : ""),
    );
    return exitCodes.done;
  },
};

export const tasksExplainCommand: Command = {
  name: "tasks explain",
  summary: "says why a task is not running",
  usage: "TASK",
  words: [1, 1],
  flags: {},
  examples: [["leasehold tasks explain T-01m7gwjckrcqwzyjd2r67n", "what does it wait for?"]],
  run: async (call) => {
    const { out } = call;
    const explained = await (await call.connect()).call("explain_task", { task_id: call.words[0] ?? "" });
    out.show(explained, () => explainedWords(explained));
    return exitCodes.done;
  },
};

export const tasksCancelCommand: Command = {
  name: "tasks cancel",
  summary: "cancels a task; its worker is told",
  usage: "TASK [--reason TEXT]",
  words: [1, 1],
  flags: { reason: { sign: "TEXT", words: "why" } },
  examples: [["leasehold tasks cancel T-01m7gwjckrcqwzyjd2r67n --reason 'no longer needed'", "stop it"]],
  run: async (call) => {
    const reason = call.text("reason");
    const wanted = { task_id: call.words[0] ?? "", ...(reason !== null && { reason }) };
    return show(call, await (await call.connect()).call("cancel_task", wanted));
  },
};

export const tasksRedriveCommand: Command = {
  name: "tasks redrive",
  summary: "sends a dead task again",
  usage: "TASK",
  words: [1, 1],
  flags: {},
  examples: [["leasehold tasks redrive T-01m7gwjckrcqwzyjd2r67n", "now that it can be done"]],
  run: async (call) => show(call, await (await call.connect()).call("redrive_task", { task_id: call.words[0] ?? "" })),
};

const shortColumns: readonly Column<Task>[] = [
  { title: "TASK", cell: ({ task_id: id }) => id },
  { title: "STATUS", cell: ({ status }) => status, colour: ({ status }) => taskColour(status) },
];

function show(call: Call, task: Task): number {
  call.out.show(task, () => call.out.table([task], shortColumns, ""));
  return exitCodes.done;
}

function taskOf(call: Call): OperationInputs["create_task"] {
  const { LEASEHOLD_PRINCIPAL, USER } = call.environment;
  const texts = {
    task_summary: call.text("summary"),
    task_body: contentOf(call, "body"),
    payload_pointer: call.text("payload"),
    concurrency_key: call.text("concurrency-key"),
    parent_task_id: call.text("parent"),
    idempotency_key: call.text("idempotency-key"),
  };
  const numbers = {
    max_attempts: call.integer("attempts", 1),
    concurrency_limit: call.integer("concurrency-limit", 1),
    delay_ms: call.durationMs("delay"),
    lease_duration_ms: call.durationMs("lease"),
    task_priority: priorityOf(call),
  };
  const inputs = contentOf(call, "inputs");
  const intents = readIntents(call);
  return {
    task_type: call.words[0] ?? "",
    principal_ai: call.text("principal") ?? (LEASEHOLD_PRINCIPAL || USER || "operator"),
    ...given(texts),
    ...given(numbers),
    ...(inputs !== null && { inputs: jsonOf(inputs) }),
    ...(intents.length > 0 && { intents }),
    ...(call.isSet("requires") && { requires: call.texts("requires") }),
    ...(call.isSet("after") && { depends_on: call.texts("after") }),
    ...(call.isSet("speculative") && { speculative: true }),
    ...(call.isSet("preemptible") && { preemptible: true }),
  };
}

function given<T>(values: Readonly<Record<string, T | null>>): Readonly<Record<string, T>> {
  return Object.fromEntries(Object.entries(values).flatMap(([name, value]) => (value === null ? [] : [[name, value]])));
}

function priorityOf(call: Call): number | null {
  const text = call.text("priority");
  if (text === null) return null;
  if (!/^-?\d{1,9}$/.test(text))
    throw new UsageProblem(`--priority is "${text}"; give a whole number, such as --priority=-1`);
  return Number(text);
}

/** As `curl -d`: the text itself, a file's, or what comes in. */
function contentOf(call: Call, flag: string): string | null {
  const text = call.text(flag);
  if (text === "-") return readFileSync(0, "utf8");
  if (text === null || !text.startsWith("@")) return text;
  try {
    return readFileSync(text.slice(1), "utf8");
  } catch (error) {
    throw new UsageProblem(`--${flag}: ${error instanceof Error ? error.message : error}`);
  }
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageProblem(`--inputs is no JSON: ${error instanceof Error ? error.message : error}`);
  }
}
