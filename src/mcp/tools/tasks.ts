/** Work: giving it to others, taking it, and the receipts that make a promise of it (T1 to T13). */
import { createHash } from "node:crypto";
import type { Input } from "../../protocol/operation.ts";
import { optional, type TProperties, type TSchema } from "../../protocol/schema/schema.ts";
import { workerId } from "../../protocol/tasks/task-fields.ts";
import { offers } from "../../protocol/tasks/task-shapes.ts";
import { limits } from "../limits.ts";
import { counted, directivesSentence, listIn, named, offersIn, textIn } from "../sentences.ts";
import { filled, operationNamed, toolsIn } from "../tool.ts";
import { holdField } from "./leases.ts";

const receiptFields: TProperties = operationNamed("submit_receipt").input.properties;
const pollFields: TProperties = operationNamed("poll_tasks").input.properties;

function pick(...names: readonly string[]): TProperties {
  return Object.fromEntries(names.map((name) => [name, receiptField(name)]));
}

function receiptField(name: string): TSchema {
  const field = receiptFields[name];
  if (field === undefined) throw new TypeError(`a receipt has no ${name}`);
  return field;
}

function receiptOf(phase: string): (input: Input) => Input {
  return (input) => saidOnce({ ...input, phase });
}

/** The `accepted` receipt that belongs before this one. */
function acceptanceOf({ lease_id, task_id, source_system }: Input): Input {
  const named = Object.entries({ lease_id, task_id, source_system }).filter(([, value]) => value !== undefined);
  return saidOnce({ ...Object.fromEntries(named), phase: "accepted" });
}

/**
 * The same receipt sent twice is one: its key is made of what it says. Only where it names its lease, which is another
 * one at each attempt; else the second attempt's receipt could be taken for the first one's.
 */
export function saidOnce(receipt: Input): Input {
  const { lease_id: lease, dedupe_key: key } = receipt as { lease_id?: unknown; dedupe_key?: unknown };
  if (typeof lease !== "string" || typeof key === "string") return receipt;
  const fields = Object.entries(receipt).filter(([, value]) => value !== undefined && value !== null);
  const said = JSON.stringify(fields.sort(([a], [b]) => (a < b ? -1 : 1)));
  return { ...receipt, dedupe_key: `mcp_${createHash("sha256").update(said).digest("base64url")}` };
}

const whichTask = pick("lease_id", "task_id", "source_system", "dedupe_key");
const stored = "task {task_id}, receipt {receipt_id}.";

export const taskTools = toolsIn("tasks", [
  {
    name: "create_task",
    title: "Create a task",
    effect: "adds",
    description:
      "Gives work to whichever worker can do it, and returns at once. principal_ai is who answers for it (you). List in " +
      "`intents` what the work touches: it is offered only when all of that is free, and leased together with it. Give an " +
      "idempotency_key so that asking twice makes one task. Later: get_task for the result, explain_task if nothing " +
      "happens.",
    keyField: "idempotency_key",
    sentence: "Task {task_id} is {status}; get_task shows what becomes of it.",
  },
  {
    name: "get_task",
    title: "Show a task",
    description: "Shows a task with its status, its result and its receipts.",
    sentence: "Task {task_id} is {status}.",
  },
  {
    name: "explain_task",
    title: "Why is it not running?",
    description: "Says everything that a task waits for: a worker, a capability, a time, other tasks, another's lease.",
    sentence: (body) => {
      const reasons = listIn<{ detail?: string; kind?: string }>(body, "waiting_for");
      if (reasons.length === 0)
        return `Task ${textIn(body, "task_id")} is ${textIn(body, "status")} and waits for nothing.`;
      return `It waits: ${named(reasons, ({ detail, kind }) => detail ?? kind ?? "")}`;
    },
  },
  {
    name: "cancel_task",
    title: "Cancel a task",
    effect: "ends",
    description: "Cancels a task. Its worker is asked to stop; a task that has ended stays as it is.",
    sentence: "Task {task_id} is {status}.",
  },
  {
    name: "lease_next",
    title: "Take work",
    effect: "adds",
    operation: "poll_tasks",
    description:
      "Asks for work as a worker. An offer is yours for a while but no promise: call accept_task with its lease_id before " +
      "you begin, or give_back_task if it is not for you. `leases` of an offer are what the task may touch; they are held " +
      "for you; `coordinate` and `token` of one are where a cell has it and what to show there. No offers: there is no work, " +
      "or a cell is still setting it up; ask again later. worker_id is `type.instance`, such as `coder.7`, the same " +
      "each time.",
    fields: {
      ...pollFields,
      worker_id: optional(workerId),
      hold_ms: holdField(limits.pollHoldMsDefault),
    },
    input: async (input, plane) => {
      const { worker_id: named } = input;
      const worker = named ?? (await plane.workerId()) ?? undefined;
      return filled(input, { worker_id: worker, hold_ms: limits.pollHoldMsDefault });
    },
    output: { shape: { status: 200, description: "What is offered.", schema: offers }, of: offersIn },
    sentence: (body) => {
      const list = listIn<{ lease_id: string; task: { task_id: string; task_summary: string | null } }>(body, "offers");
      if (list.length === 0) return "There is no work now; ask again later.";
      const words = named(
        list,
        ({ lease_id, task }) => `${task.task_id} (lease ${lease_id}) ${task.task_summary ?? ""}`,
      );
      return `Offered: ${words}. Call accept_task with the lease_id before you begin.`;
    },
  },
  {
    name: "accept_task",
    title: "Accept a task",
    operation: "submit_receipt",
    description:
      "Promises to do the offered task: from now on you answer for it until complete_task or escalate_task. Call it " +
      "before you begin. Calling it again is harmless.",
    fields: { ...whichTask, metadata: receiptField("metadata") },
    input: receiptOf("accepted"),
    keyField: "dedupe_key",
    sentence: `Accepted; do it, report_progress now and then, and end with complete_task: ${stored}`,
  },
  {
    name: "report_progress",
    title: "Report progress",
    operation: "heartbeat_task",
    description:
      "Keeps the task's lease, and those of what it touches, alive, and tells how far you are (any JSON). Call it every " +
      "few minutes while you work. Tokens in `leases` are the present ones, and all before are stale: call it before you use " +
      "one. `directives`: cancel means stop now, preempt means finish quickly or give it back. An " +
      "error means that the task is no longer yours: stop, and drop the result.",
    sentence: directivesSentence,
  },
  {
    name: "complete_task",
    title: "Complete a task",
    operation: "submit_receipt",
    description:
      "Ends a task, exactly once (and accepts it first, if you did not): status success, failure or canceled. outcome_kind says what there is: " +
      "response_text (with outcome_text), artifact_pointer (with artifact_location and artifact_mime), mixed or none. A " +
      "failure with retry_requested is tried again. Sent again with the same content, the first answer is repeated. " +
      "stale_fence or already_completed: somebody else has it; drop your result.",
    fields: {
      ...whichTask,
      ...pick("status", "outcome_kind", "outcome_text", "artifact_location", "artifact_pointer", "artifact_mime"),
      ...pick("artifact_checksum", "artifact_size_bytes", "artifact_refs", "retry_requested", "metadata"),
    },
    input: (input) =>
      saidOnce({ ...filled(input, { status: "success", outcome_kind: outcomeOf(input) }), phase: "complete" }),
    keyField: "dedupe_key",
    // A promise comes before its end (T3): a model that forgot it is not sent back for it.
    remedy: { code: "complete_without_accept", input: acceptanceOf },
    sentence: `Completed: ${stored} Its status is {status}.`,
  },
  {
    name: "escalate_task",
    title: "Escalate a task",
    operation: "submit_receipt",
    description:
      "Passes a task on that you accepted and cannot do: escalation_class owner, capability, trust, policy, scope or " +
      "other, and why. It goes to escalation_to, or to whose task it is; with retry_requested another worker may try.",
    fields: {
      ...whichTask,
      ...pick("escalation_class", "escalation_reason", "escalation_to", "retry_requested", "metadata"),
    },
    input: receiptOf("escalate"),
    keyField: "dedupe_key",
    sentence: `Passed on: ${stored} It is with {escalation_to} now.`,
  },
  {
    name: "give_back_task",
    title: "Give a task back",
    operation: "release_task",
    description: "Gives an offer, or a task you accepted, back at once; it costs no attempt. Stop work on it first.",
    sentence: "Given back; the lease is {state}.",
  },
  {
    name: "submit_receipt",
    title: "Submit a receipt",
    effect: "adds",
    description:
      "Adds any receipt to the ledger, short or a full LegiVellum one. accept_task, complete_task and escalate_task are " +
      "shorter ways for the usual ones; a `progress` receipt goes into the ledger, report_progress does not.",
    keyField: "dedupe_key",
    sentence: `Stored: ${stored}`,
  },
  {
    name: "list_inbox",
    title: "Show an inbox",
    operation: "get_inbox",
    description: "Lists what a principal answers for and is not done: its own tasks, and those escalated to it.",
    sentence: (body) => counted(body, "obligations", "open obligation", "Nothing is open."),
  },
  {
    name: "search_receipts",
    title: "Search the ledger",
    operation: "list_receipts",
    description: "Lists receipts, the oldest first: of a task, a phase, a recipient, a worker, or since a time.",
    sentence: (body) => counted(body, "receipts", "receipt", "No receipt matches."),
  },
]);

function outcomeOf({ outcome_text: words, artifact_location: location, artifact_pointer: pointer }: Input): string {
  const hasText = typeof words === "string";
  const hasArtifact = typeof location === "string" || typeof pointer === "string";
  if (hasText && hasArtifact) return "mixed";
  if (hasArtifact) return "artifact_pointer";
  return hasText ? "response_text" : "none";
}
