/**
 * The sentences of a story. A template's `{word}` is a phrase that the sentence takes, and `[…]` may be left out. Each
 * sentence becomes a command of the kernel.
 */
import type { Actor, Command } from "../../src/kernel/contract/commands.ts";
import type { IntentInput } from "../../src/kernel/contract/inputs.ts";
import { blankReceipt, blankTask } from "../tasks/inputs.ts";

/** A command before the story adds its tenant and entropy. */
export type CommandDraft = DraftOf<Command>;
type DraftOf<C> = C extends Command ? Omit<C, "tenant" | "entropy"> : never;

/** What a sentence needs to know of the story so far. */
export interface Cast {
  readonly tenant: string;
  /** The id behind a short name such as `lease 1`. */
  readonly idOf: (name: string) => string;
  /** The epoch of the agent's present instance (A3). */
  readonly epochOf: (agentId: string) => number;
  /** The lease's generation, which a cell names in its reports. */
  readonly generationOf: (leaseId: string) => number;
}

/** The phrases of a sentence, read. What a sentence does not have is empty or null. */
interface Words {
  /** The agent as `agentId`; `alice@1` is the instance of epoch 1. */
  actor: Actor;
  agentId: string;
  toAgentId: string;
  workerId: string;
  cellId: string;
  leaseId: string;
  generation: number;
  requestId: string;
  taskId: string;
  intents: readonly IntentInput[];
  resource: string;
  /** A word in capitals: a predicate or an agent's state. */
  name: string;
  /** A word in small letters: a type of task, a key, a version, a status. */
  word: string | null;
  number: number | null;
  ttlMs: number | null;
  waitMs: number | null;
  standbyMs: number | null;
}

const operator: Actor = { role: "operator", agentId: null, epoch: null };
const intent = "[A-Z_]+ [A-Z]+:/[^ ]*(?: x\\d+| to [A-Z]+:/[^ ]*)?";
const time = "\\d+(?:ms|s|m)?";

const phrases = {
  agent: "[a-z]+(?:@\\d+)?",
  receiver: "[a-z]+",
  worker: "worker [a-z]+\\.\\d+",
  cell: "cell [a-z]+\\d*",
  lease: "lease \\d+",
  request: "request \\d+",
  task: "task \\d+",
  manifest: `${intent}(?: and ${intent})*`,
  resource: "[A-Z]+:/[^ ]*",
  name: "[A-Z_]+",
  word: "[a-z0-9_-]+",
  number: "\\d+",
  ttl: time,
  wait: time,
  standby: time,
};

type Build = (words: Words, cast: Cast) => CommandDraft;

const sentences: readonly (readonly [template: string, build: Build])[] = [
  // Agents.
  ["{agent} registers", ({ agentId }) => ({ type: "register_agent", actor: operator, agentId, labels: null })],
  ["{agent} announces a restart", ({ actor, agentId }) => ({ type: "restart_agent", actor, agentId })],
  ["{agent} becomes {name}", ({ actor, agentId, name }) => ({ type: "transition_agent", actor, agentId, to: name })],
  ["{agent} verifies its leases", ({ actor, agentId }) => ({ type: "verify_all", actor, agentId, leaseIds: null })],
  ["{agent} saves a digest", ({ actor, agentId }) => ({ type: "save_digest", actor, agentId, digest })],
  ["{agent} is resumed", ({ agentId }) => ({ type: "resume_agent", actor: operator, agentId, assumptions: [] })],

  // Requests.
  [
    "{agent} acquires {manifest}[ for {ttl}][ waiting at most {wait}][ standing by at most {standby}][ under key {word}]",
    (words) => acquire(words),
  ],
  ["{agent} tries {manifest}", (words) => ({ ...acquire(words), dryRun: true })],
  [
    "{agent} asks for {request}",
    ({ actor, requestId }) => ({ type: "collect_request", collect: null, actor, requestId }),
  ],
  ["{agent} cancels {request}", ({ actor, requestId }) => ({ type: "cancel_request", actor, requestId })],

  // Leases.
  ["{agent} heartbeats {lease}", ({ actor, leaseId }) => ({ type: "heartbeat", actor, leaseId, activity: false })],
  [
    "{agent} renews {lease}",
    ({ actor, leaseId }) => ({ type: "renew_lease", activity: false, actor, leaseId, generation: null }),
  ],
  [
    "{agent} releases {lease}[ at version {word}]",
    ({ actor, leaseId, word }) => ({ type: "release_lease", actor, leaseId, version: word }),
  ],
  [
    "{agent} transfers {lease} to {receiver}",
    ({ actor, leaseId, toAgentId }) => ({ type: "transfer_lease", version: null, actor, leaseId, toAgentId }),
  ],
  [
    "{agent} downgrades {lease} to {name}",
    ({ actor, leaseId, name }) => ({ type: "downgrade_lease", version: null, actor, leaseId, predicate: name }),
  ],
  [
    "operator revokes {lease}",
    ({ leaseId }) => ({ type: "revoke", actor: operator, target: { leaseId }, reason: "operator" }),
  ],

  // The tenant, resources and cells.
  [
    "operator switches to Wound-Wait",
    (_, { tenant }) => ({
      type: "set_tenant_settings",
      actor: operator,
      tenantId: tenant,
      settings: { strategy: "wound_wait" },
    }),
  ],
  [
    "operator declares {resource} with {number} units",
    ({ resource, number }) => ({
      type: "declare_resource",
      refillMs: null,
      actor: operator,
      resource,
      capacity: number,
      cell: null,
    }),
  ],
  [
    "operator fences {resource}",
    ({ resource }) => ({ type: "fence_resource", actor: operator, resource, reason: "suspect" }),
  ],
  [
    "operator resets {resource}",
    ({ resource }) => ({ type: "reset_resource", actor: operator, resource, probed: true }),
  ],
  [
    "operator withdraws {resource}",
    ({ resource }) => ({ type: "withdraw_resource", actor: operator, resource, revoke: false }),
  ],
  ["operator withdraws {cell}", ({ cellId }) => ({ type: "withdraw_cell", actor: operator, cellId, revoke: false })],
  ["operator readmits {cell}", ({ cellId }) => ({ type: "readmit_cell", actor: operator, cellId })],
  [
    "{cell} enrols with {resource}",
    ({ cellId, resource }) => ({
      type: "enrol_cell",
      actor: operator,
      cellId,
      session,
      version: null,
      inventory: [{ resource, driver: "tcp", capacity: null, hardware: [], ready: true, fault: null, fenced: null }],
      bindings: [],
    }),
  ],
  [
    "{cell} heartbeats",
    ({ cellId }) => ({ type: "cell_heartbeat", actor: operator, cellId, session, inventory: null }),
  ],
  ["{cell} binds {lease}", (words) => report("bind_confirmed", words)],
  ["{cell} tears down {lease}", (words) => report("teardown_confirmed", words)],
  ["{cell} fails to tear down {lease}", (words) => report("teardown_failed", words)],

  // Tasks.
  [
    "operator creates a {word} task[ on {manifest}][ leased for {ttl}][ with at most {number} attempts]",
    (words) => create(words, { maxAttempts: words.number }),
  ],
  [
    "operator creates a {word} task with at most {number} offers",
    (words) => create(words, { maxOffers: words.number }),
  ],
  ["operator creates a speculative {word} task", (words) => create(words, { speculative: true })],
  ["operator cancels {task}", ({ taskId }) => ({ type: "cancel_task", actor: operator, taskId, reason: null })],
  ["operator redrives {task}", ({ taskId }) => ({ type: "redrive_task", actor: operator, taskId })],
  [
    "{worker} polls",
    ({ workerId }) => ({
      type: "poll_tasks",
      actor: operator,
      workerId,
      capabilities: null,
      maxTasks: 1,
      preferredKinds: null,
      requestKey: null,
      reclaim: false,
    }),
  ],
  [
    "{worker} heartbeats {lease}",
    ({ leaseId }) => ({ type: "heartbeat_task", actor: operator, leaseId, progress: undefined }),
  ],
  ["{worker} gives back {lease}", ({ leaseId }) => ({ type: "release_task", actor: operator, leaseId })],
  ["{worker} accepts {task} under {lease}", (words) => receipt("accepted", words, {})],
  [
    "{worker} completes {task} under {lease}[ with key {word}]",
    (words) => receipt("complete", words, { status: "success", dedupeKey: words.word }),
  ],
  [
    "{worker} fails {task} under {lease}, to be retried",
    (words) => receipt("complete", words, { status: "failure", retryRequested: true }),
  ],
];

const session = "session-1";
const digest = {
  checkpointId: "checkpoint-1",
  resumePoint: "step 1",
  context: null,
  intentBacklog: [],
  resolutionStrategy: "RETRY",
  assumptions: [],
};

function acquire({ actor, agentId, intents, ttlMs, waitMs, standbyMs, word }: Words) {
  return {
    type: "acquire",
    actor,
    agentId,
    intents,
    ttlMs,
    waitTimeoutMs: waitMs,
    standbyMs: standbyMs ?? 0,
    idleTimeoutMs: null,
    purpose: null,
    tokens: false,
    dryRun: false,
    requestKey: word,
  } as const;
}

type BindingReport = "bind_confirmed" | "teardown_confirmed" | "teardown_failed";

function report(type: BindingReport, { cellId, leaseId, generation }: Words): CommandDraft {
  return { type, actor: operator, cellId, leaseId, generation, coordinate: null, reason: null };
}

function create({ word, intents, ttlMs }: Words, more: Partial<ReturnType<typeof blankTask>>): CommandDraft {
  const task = { ...blankTask(word ?? "", "planner"), leaseDurationMs: ttlMs, ...more };
  return {
    type: "create_task",
    actor: operator,
    task: intents.length === 0 ? task : { ...task, intents },
    endedDependencies: null,
  };
}

function receipt(
  phase: string,
  { taskId, leaseId, workerId }: Words,
  more: Partial<ReturnType<typeof blankReceipt>>,
): CommandDraft {
  const content = { ...blankReceipt(phase, taskId), leaseId, sourceSystem: workerId, ...more };
  return { type: "submit_receipt", actor: operator, receipt: content };
}

const compiled = sentences.map(([template, build]) => ({ form: formOf(template), build }));

/** Throws for a sentence that no template matches. */
export function readSentence(text: string, cast: Cast): CommandDraft {
  for (const { form, build } of compiled) {
    const match = form.exec(text);
    if (match !== null) return build(readWords(match.groups ?? {}, cast), cast);
  }
  throw new Error(`not a sentence of a story: "${text}"; sim/stories/sentences.ts lists them`);
}

function formOf(template: string): RegExp {
  const pattern = template
    .replaceAll("[", "(?:")
    .replaceAll("]", ")?")
    .replaceAll(/\{(\w+)\}/g, (_, name: string) => `(?<${name}>${phrases[name as keyof typeof phrases]})`);
  return new RegExp(`^${pattern}$`);
}

function readWords(groups: { readonly [phrase in keyof typeof phrases]?: string }, cast: Cast): Words {
  const [agentId = "", epoch] = (groups.agent ?? "").split("@");
  const idOf = (phrase: string | undefined) => (phrase === undefined ? "" : cast.idOf(phrase));
  const leaseId = idOf(groups.lease);
  return {
    actor: { role: "agent", agentId, epoch: epoch === undefined ? cast.epochOf(agentId) : Number(epoch) },
    agentId,
    toAgentId: groups.receiver ?? "",
    workerId: (groups.worker ?? "").replace("worker ", ""),
    cellId: (groups.cell ?? "").replace("cell ", ""),
    leaseId,
    generation: cast.generationOf(leaseId),
    requestId: idOf(groups.request),
    taskId: idOf(groups.task),
    intents: groups.manifest === undefined ? [] : groups.manifest.split(" and ").map(intentOf),
    resource: groups.resource ?? "",
    name: groups.name ?? "",
    word: groups.word ?? null,
    number: groups.number === undefined ? null : Number(groups.number),
    ttlMs: millisOf(groups.ttl),
    waitMs: millisOf(groups.wait),
    standbyMs: millisOf(groups.standby),
  };
}

/** "MUTATES FILE:/a", "CONSUMES GPU:/pool x2", "RENAMES FILE:/a to FILE:/b". */
function intentOf(text: string): IntentInput {
  const [predicate = "", resource = "", more = "", to = null] = text.split(" ");
  if (to !== null) return { predicate, resource, to };
  return more === "" ? { predicate, resource } : { predicate, resource, units: Number(more.slice(1)) };
}

export function millisOf(text: string): number;
export function millisOf(text: string | undefined): number | null;
export function millisOf(text: string | undefined): number | null {
  if (text === undefined) return null;
  const [, count, unit] = /^(\d+)(ms|s|m)?$/.exec(text) ?? [];
  if (count === undefined) throw new Error(`not a time: "${text}"; write 0, 250ms, 30s or 5m`);
  return Number(count) * (unit === "m" ? 60_000 : unit === "s" ? 1_000 : 1);
}
