/** `asyncgate.*` for those who do the work, and what the server says of itself. */
import type { Input } from "../../protocol/operation.ts";
import { receipt } from "../../protocol/receipts/receipt-shapes.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { anything, flag, integer, list, nullable, optional, record, text, time } from "../../protocol/schema/schema.ts";
import { taskId, taskLeaseId, workerId } from "../../protocol/tasks/task-fields.ts";
import { taskLease } from "../../protocol/tasks/task-shapes.ts";
import type { Offer } from "../../sdk/wire.ts";
import type { Body, Reply } from "../control-plane.ts";
import { counted, directivesSentence, listIn, offersIn } from "../sentences.ts";
import type { Tool } from "../tool.ts";
import { saidOnce } from "../tools/tasks.ts";
import { type Ask, gateTool, health } from "./gate-tool.ts";

const held = { worker_id: workerId, task_id: optional(taskId), lease_id: taskLeaseId };
const receiptSentence = "Receipt {receipt_id} ({phase}) of task {task_id} is stored.";
const names = { minLength: 1, maxLength: limits.idLengthMax };
const keptLease = record({ ok: flag(), expires_at: time(), ...taskLease.properties });

export const workerTools: readonly Tool[] = [
  gateTool({
    name: "asyncgate.lease_next",
    title: "Take work",
    effect: "adds",
    description:
      "Asks for work. What comes is offered, and yours for a while: asyncgate.start_task accepts it. How long a lease " +
      "lasts is the task's affair.",
    operations: ["poll_tasks"],
    fields: {
      worker_id: workerId,
      capabilities: optional(list(text(names), { maxItems: 32, description: "What you can do." })),
      accept_types: optional(
        list(text(names), { maxItems: 32, description: "A filter: only tasks of these types are offered." }),
      ),
      max_tasks: optional(integer({ minimum: 1, maximum: limits.taskPollMax })),
      lease_ttl_seconds: optional(integer({ description: "Taken, and not used: see expires_at." })),
    },
    shape: record({
      tasks: list(
        record({
          tenant_id: text(),
          task_id: text(),
          lease_id: text(),
          expires_at: time(),
          lease_expires_at: time(),
          fence: integer(),
          attempt: integer(),
          type: text(),
          principal_ai: text(),
          payload: anything(),
          payload_pointer: nullable(text()),
          task_summary: nullable(text()),
          task_body: nullable(text()),
          expected_outcome_kind: nullable(text()),
          expected_artifact_mime: nullable(text()),
        }),
      ),
    }),
    input: ({ lease_ttl_seconds: _unused, ...same }) => same,
    output: (body, _args, { tenant }) => ({
      tasks: listIn<Offer>(offersIn(body), "offers").map((offer) => claimed(offer, tenant)),
    }),
    sentence: (body) => counted(body, "tasks", "task", "There is no work now; ask again later."),
  }),
  gateTool({
    name: "asyncgate.renew_lease",
    title: "Keep a task",
    description: "Extends a task's lease by its duration from now. An error means that it is no longer yours: stop.",
    operations: ["heartbeat_task"],
    fields: { ...held, extend_by_seconds: optional(integer({ description: "Taken, and not used." })) },
    shape: keptLease,
    input: ({ lease_id }) => ({ lease_id }),
    output: kept,
    sentence: directivesSentence,
  }),
  gateTool({
    name: "asyncgate.report_progress",
    title: "Report progress",
    description: "Tells how far you are, and extends the lease. `directives` may ask you to stop.",
    operations: ["heartbeat_task"],
    fields: { ...held, progress: anything({ description: "Any JSON." }) },
    shape: keptLease,
    input: ({ lease_id, progress }) => ({ lease_id, progress }),
    output: kept,
    sentence: directivesSentence,
  }),
  gateTool({
    name: "asyncgate.start_task",
    title: "Accept a task",
    description: "Accepts an offered task: from now on you answer for it. Call it before you begin.",
    operations: ["submit_receipt"],
    fields: held,
    shape: record({ ok: flag(), ...receipt.properties, status: text({ description: "Of the task: running." }) }),
    input: accepted,
    output: (body) => {
      const { started_at: began, stored_at: stored } = body;
      return { ok: true, ...body, status: "running", started_at: began ?? stored };
    },
    sentence: receiptSentence,
  }),
  gateTool({
    name: "asyncgate.complete",
    title: "Complete a task",
    description: "Ends a task with success, exactly once. One that was not accepted yet is accepted with it.",
    operations: ["submit_receipt"],
    fields: {
      ...held,
      result: anything({ description: "Any JSON; it becomes the receipt's outcome_text." }),
      artifacts: optional(
        anything({ description: "`{uri, mime, checksum, size_bytes}`, or a list of such; the first is the outcome." }),
      ),
    },
    shape: record({ ok: flag(), ...receipt.properties }),
    input: ({ lease_id, result, artifacts }) => ({ lease_id, status: "success", ...outcomeOf(result, artifacts) }),
    ask: complete,
    output: (body) => ({ ok: true, ...body }),
    sentence: receiptSentence,
  }),
  gateTool({
    name: "asyncgate.fail",
    title: "Fail a task",
    description: "Ends an attempt with failure; with retryable it is tried again, if attempts are left.",
    operations: ["submit_receipt", "get_task"],
    fields: {
      ...held,
      error: anything({ description: "Any JSON; it becomes the receipt's outcome_text." }),
      retryable: optional(flag({ description: "Whether to try again." })),
    },
    shape: record({
      ok: flag(),
      requeued: nullable(flag({ description: "Null where the task can no longer be seen." })),
      next_eligible_at: nullable(time()),
      ...receipt.properties,
    }),
    input: ({ lease_id, error, retryable }) => ({
      lease_id,
      status: "failure",
      ...outcomeOf(error, null),
      retry_requested: retryable === true,
    }),
    ask: fail,
    output: (body) => ({ ok: true, ...body }),
    sentence: receiptSentence,
  }),
  gateTool({
    name: "asyncgate.get_config",
    title: "Show the configuration",
    description: "Shows the limits and defaults that tasks and receipts are held to.",
    operations: ["list_task_types"],
    fields: {},
    shape: record({
      version: text(),
      instance_id: text(),
      receipt_mode: text(),
      capabilities: list(text()),
      receipt_schema_version: text(),
      max_tasks_per_lease: integer(),
      task_body_bytes_max: integer(),
      task_types: list(anything()),
    }),
    output: ({ task_types }, _args, { tenant }) => ({
      version: "1",
      instance_id: tenant,
      receipt_mode: "standalone",
      capabilities: ["lease_based_execution", "receipt_emission"],
      receipt_schema_version: "1.0",
      max_tasks_per_lease: limits.taskPollMax,
      task_body_bytes_max: limits.taskBodyBytesMax,
      task_types,
    }),
    sentence: "The structured content has it.",
  }),
  health("asyncgate.health", "AsyncGate"),
];

function claimed({ lease_id, lease_expires_at, fence, attempt, task: offered }: Offer, tenant: string): Body {
  const { task_id, task_type: type, inputs: payload, ...rest } = offered;
  const lease = { lease_id, expires_at: lease_expires_at, lease_expires_at, fence, attempt };
  return { tenant_id: tenant, task_id, ...lease, type, payload, ...rest };
}

function kept(body: Body): Body {
  const { lease_expires_at: expires_at } = body;
  return { ok: true, expires_at, ...body };
}

function accepted({ lease_id }: Input): Input {
  return saidOnce({ phase: "accepted", lease_id });
}

/** The receipt's outcome: what was said, and the first artifact, which it points to. */
function outcomeOf(result: unknown, artifacts: unknown): Input {
  const isSaid = result !== undefined && result !== null;
  const refs = artifacts === undefined || artifacts === null ? [] : [artifacts].flat();
  const artifact = artifactOf(refs[0]);
  const kind = artifact === null ? (isSaid ? "response_text" : "none") : isSaid ? "mixed" : "artifact_pointer";
  return {
    outcome_kind: kind,
    ...(isSaid && { outcome_text: typeof result === "string" ? result : JSON.stringify(result) }),
    ...(refs.length > 0 && { artifact_refs: refs }),
    ...artifact,
  };
}

/** Of AsyncGate's references, and of DepotGate's pointers as they are. */
function artifactOf(given: unknown): Input | null {
  if (typeof given !== "object" || given === null) return null;
  const ref = given as Readonly<Record<string, unknown>>;
  const { size_bytes, bytes, size: length } = ref;
  const textOf = (...fields: readonly string[]): string | undefined =>
    fields.map((field) => ref[field]).find((value) => typeof value === "string" && value !== "" && value !== "NA") as
      | string
      | undefined;
  const pointer = textOf("uri", "pointer", "artifact_pointer", "location", "artifact_id");
  if (pointer === undefined) return null;
  const size = [size_bytes, bytes, length].find((value) => Number.isSafeInteger(value));
  return {
    artifact_pointer: pointer,
    artifact_location: textOf("location", "artifact_location") ?? pointer,
    artifact_mime: textOf("mime", "mime_type", "artifact_mime"),
    artifact_checksum: textOf("checksum", "content_hash", "sha256", "artifact_checksum"),
    artifact_size_bytes: size,
  };
}

/** Their workers may complete what they never accepted; here a promise comes first (T3), so it is made for them. */
async function complete(ask: Ask, fields: Input): Promise<Reply> {
  const receiptOf = saidOnce({ phase: "complete", ...fields });
  const answered = await ask("submit_receipt", receiptOf);
  const { error } = answered.body;
  if (error !== "complete_without_accept") return answered;
  const promised = await ask("submit_receipt", accepted(fields));
  return promised.status >= 400 ? promised : ask("submit_receipt", receiptOf);
}

/** With what became of the task: whether it is tried again, and when. */
async function fail(ask: Ask, fields: Input): Promise<Reply> {
  const answered = await complete(ask, fields);
  if (answered.status >= 400) return answered;
  const { task_id } = answered.body;
  const seen = await ask("get_task", { task_id });
  const { status, not_before_at: notBefore = null } = seen.body;
  const requeued = seen.status < 400 ? status === "queued" || status === "retry_pending" : null;
  const next = requeued === true ? notBefore : null;
  return { ...answered, body: { ...answered.body, requeued, next_eligible_at: next } };
}
