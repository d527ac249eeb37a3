/**
 * The default list: what a model needs for leases and tasks, in few words. Each is a tool of another toolset, shown with a
 * shorter description and its main fields. What is not shown is taken all the same.
 */
import { brief, type JsonSchema } from "../schemas.ts";
import type { Tool } from "../tool.ts";

interface Brief {
  readonly name: string;
  readonly description: string;
  /** The fields that are shown, each with its words; empty: the name says it. */
  readonly fields: Readonly<Record<string, string>>;
}

const agent = { agent_id: "", agent_token: "" };

const briefs: readonly Brief[] = [
  {
    name: "acquire_leases",
    description:
      "Call this BEFORE you change, delete, rename or rely on anything that other agents may touch. Name all that the " +
      "step needs in one call: all of it is granted, or nothing. Resources are `TYPE:/path`, such as " +
      "`FILE:/shop/src/auth.ts`; `FILE:/shop/src/**` is a folder and all below it. MUTATES to change, CONSUMES to read " +
      "what must not change meanwhile, DELETES, RENAMES (with `to`), PROVIDES to create or offer, DEPENDS_ON for what must " +
      "stay. The first answer has your agent_id: send it from then on. GRANTED: go on, and call release_leases when done. " +
      "WAIT or STANDBY: you hold nothing; call await_request. DIE: undo what you changed, release_leases, acquire again. " +
      "PAUSED: stop and tell your user. Never touch what was not GRANTED.",
    fields: {
      ...agent,
      intents: "",
      purpose: "What for; others see it.",
      wait_timeout_ms: "How long to stay in line; 0: do not wait.",
    },
  },
  {
    name: "await_request",
    description:
      "Call this after WAIT or STANDBY, at once and again until the answer is another one; each call is held up to 45 s. " +
      "wait_timeout and request_canceled mean that the request is over: acquire again.",
    fields: { request_id: "", agent_token: "" },
  },
  {
    name: "release_leases",
    description: "Call this as soon as a step is done, and after DIE: others wait. Without lease_ids all is released.",
    fields: { ...agent, lease_ids: "", versions: "By lease id: what a changed resource is now, such as a hash." },
  },
  {
    name: "who_holds",
    description:
      "Who holds what overlaps with a resource, what for, and how long. Only acquire_leases promises anything.",
    fields: { resource: "" },
  },
  {
    name: "verify_all",
    description:
      "The truth about your leases. Call this after a pause, a restart or a lost connection; only ACTIVE ones are yours.",
    fields: { ...agent, lease_ids: "" },
  },
  {
    name: "lease_next",
    description:
      "Takes work as a worker. `leases` of an offer are what the task may touch: they are held for you. Do the work, call " +
      "report_progress every few minutes, and end with complete_task. No offers: ask again later.",
    fields: { worker_id: "`type.instance`, the same each time.", accept_types: "Only tasks of these types." },
  },
  {
    name: "report_progress",
    description:
      "Keeps a task and its leases alive, and says how far you are. `directives`: cancel means stop now, preempt means " +
      "finish quickly. An error means that the task is no longer yours: stop, and drop the result.",
    fields: { lease_id: "", progress: "" },
  },
  {
    name: "complete_task",
    description:
      "Ends a task, exactly once: success, failure (with retry_requested it is tried again) or canceled. stale_fence or " +
      "already_completed: somebody else has it; drop your result.",
    fields: {
      lease_id: "",
      status: "",
      outcome_text: "The result, or why it failed.",
      artifact_location: "Where a result in a file is, with artifact_mime.",
      artifact_mime: "",
      retry_requested: "",
    },
  },
  {
    name: "explain_task",
    description: "What a task waits for: a worker, a capability, a time, other tasks, another's lease.",
    fields: { task_id: "" },
  },
];

export function coreTools(all: readonly Tool[]): readonly Tool[] {
  return briefs.map(({ name, description, fields }) => {
    const tool = all.find((one) => one.name === name);
    if (tool === undefined) throw new TypeError(`unknown tool ${name}`);
    return { ...tool, set: "core", description, inputSchema: brief(tool.inputSchema as JsonSchema, fields) };
  });
}
