/** What a command is answered with, described as data. Records in a reply are as they were when the command was decided. */
import {
  choice,
  type Fields,
  flag,
  hidden,
  integer,
  list,
  named,
  omitted,
  only,
  optional,
  record,
  remaining,
  text,
  time,
  type Values,
} from "./field.ts";
import { policy } from "./policy-records.ts";
import { agent, cell, digest, key, lease, leaseStates, resource, tenant } from "./records.ts";
import { denialReasons, type RefusalCode, refusalCodes } from "./refusals.ts";
import { obligation, payload, receipt, task, taskTypeRecord } from "./task-records.ts";
import { write } from "./write-records.ts";

/** Something that stands in the way (W11): a live lease, or a request that waits ahead. */
export const blocker = {
  ...only(lease, "agentId", "resource", "predicate", "purpose"),
  holder: hidden(text()),
  leaseId: omitted(optional(text())),
  requestId: omitted(optional(text())),
  /** How long it can still be in the way at most: HELD outlasts the expiry (L9). Null where nobody can know. */
  until: named("expires_in_ms", omitted(optional(remaining()))),
};
export interface Blocker extends Values<typeof blocker> {}

const blocked = {
  blockers: named("blocked_by", list(record(blocker))),
  blockersTotal: named("blocked_by_total", integer()),
};

/** G15: when enough units of a resource come back, where that is waited for. */
const unitsBackAt = named("units_back_in_ms", omitted(optional(remaining())));

/** Expected, and a value like every other reply: it names what is wrong, and changes nothing. */
export const refusal = {
  code: named("error", choice(refusalCodes)),
  /** A sentence: what is wrong, and what to do. */
  detail: text(),
};

/** What a code adds to it; none of it is there where it says nothing. */
export const refusalContext = {
  /** The part of the command that is at fault, as a path on the wire ("intents.0.resource"). */
  field: text(),
  reason: choice(denialReasons),
  leaseId: text(),
  from: text(),
  to: text(),
  generation: integer(),
  taskId: text(),
  winningReceiptId: text(),
  /** Tasks that must be looked up in history first. */
  missing: list(text()),
  /** Of a full quota: its name on the wire, and how far it is used. */
  quota: text(),
  used: integer(),
  limit: integer(),
  /** Of a policy that does not allow it: its id, the rule, what was asked for, and what it allows instead (S4). */
  policy: text(),
  rule: text(),
  asked: text(),
  allowed: list(text()),
  ...blocked,
  /** In a word or two: what is wrong with a receipt's or a task's field, or why a lease has ended. */
  problem: named("reason", text()),
};
export interface Refusal extends Values<typeof refusal>, Partial<Values<typeof refusalContext>> {
  readonly type: "refused";
}

/** A4: what others did to the resources that concern an agent while it could not see them, oldest first. */
export const observation = {
  since: time(),
  /** More was changed than is listed, or history that far back is gone. */
  truncated: flag(),
  changes: list(record(write)),
};
export interface Observation extends Values<typeof observation> {}
export const observationUpdate = named("observation_update", omitted(optional(record(observation))));

/** A5: what became of one assumption. */
export const judgement = {
  resource: text(),
  expected: text(),
  /** The version that was reported last; null where the last write reported none, or nothing is known. */
  actual: optional(text()),
  outcome: choice(["holds", "failed", "unverified"]),
};
export interface Judgement extends Values<typeof judgement> {}

export const pauseReasons = [
  "resource_fenced",
  "resource_withdrawn",
  "tenant_suspended",
  "agent_paused",
  "cell_not_ready",
] as const;
export type PauseReason = (typeof pauseReasons)[number];

const lostLease = {
  id: text(),
  /** null: not alive; the store's history knows whether and how it ended. */
  lease: optional(record(lease)),
  code: optional(text<RefusalCode>()),
};
export interface LostLease extends Values<typeof lostLease> {}

/** A lease that lives, and that a heartbeat did not extend: with which code. */
const notExtended = { id: text(), state: choice(leaseStates), code: text<RefusalCode>() };
export interface NotExtended extends Values<typeof notExtended> {}

/** A task offered to a worker: its lease, and those of its manifest (T10). */
const offer = {
  task: record(task),
  payload: optional(record(payload)),
  lease: record(lease),
  leases: list(record(lease)),
  /** The attempt that this would be, or is, if it was accepted before (`reclaim`). */
  attempt: integer(),
  /** The receipt that accepted it, where it is an obligation already (T3). */
  acceptedAs: optional(text()),
};
export interface Offer extends Values<typeof offer> {}

export const directives = ["cancel", "preempt"] as const;
export type Directive = (typeof directives)[number];

const leases = list(record(lease));
const created = hidden(flag());
/** What of the input was capped (L2). */
const warnings = omitted(optional(list(text()), []));

/** The verdicts on an acquire (W9). A dry run leaves no request behind (W12), so its id is empty. */
export const verdicts = {
  granted: {
    requestId: text(),
    leases,
    warnings: list(text()),
    observation: observationUpdate,
    /** Of a grant that is not collected: by when it must be (W8). */
    claimBy: named("claim_within_ms", omitted(optional(remaining()))),
  },
  waiting: {
    requestId: text(),
    /** 1 for the first in line. */
    position: integer(),
    ...blocked,
    unitsBackAt,
    waitTimeoutMs: integer(),
    claimWithinMs: integer(),
    warnings,
  },
  /** W14: it would have died, and stands by for at most `waitTimeoutMs` from when it was submitted. */
  standby: {
    requestId: text(),
    ...blocked,
    unitsBackAt,
    waitTimeoutMs: integer(),
    claimWithinMs: integer(),
    warnings,
  },
  died: {
    retryAfterMs: integer(),
    attempt: integer({ min: 1 }),
    priority: named("priority_timestamp", integer()),
    ...blocked,
  },
  paused: { reason: choice(pauseReasons), detail: text(), resource: omitted(optional(text())) },
} satisfies Readonly<Record<string, Fields>>;

export const taskReplies = {
  task: { task: record(task), created, warnings },
  /** No live task has the creation's idempotency key; an ended one may have it (T12). */
  task_key_unknown: { key: text() },
  /** Nothing is decided: the payload of this task, or the digest of this agent, has to be brought into memory first (S4). */
  payload_away: { taskId: optional(text()), agentId: optional(text()) },
  /** `more`: the search was cut short; asking again at once goes on with it. */
  offers: { offers: list(record(offer)), more: hidden(flag()) },
  task_lease: { lease: record(lease), leases, directives: list(choice(directives)) },
  receipt: { receipt: record(receipt) },
  /** Sent before: the first receipt is the answer, and the ledger knows it (R3). */
  receipt_known: { receiptId: text() },
  /** A task's obligation, changed by hand (R5). */
  obligation: { task: record(task), obligation: record(obligation) },
  task_type: { taskType: record(taskTypeRecord), warnings },
} satisfies Readonly<Record<string, Fields>>;

export const otherReplies = {
  agent: { agent: record(agent), created },
  lease: { lease: record(lease) },
  leases: {
    leases,
    lost: list(record(lostLease)),
    /** Of heartbeats: those of `leases` that keep their present end. */
    notExtended: omitted(optional(list(record(notExtended)), [])),
    /** How many there are; null where all are listed. */
    total: named("leases_total", omitted(optional(integer()))),
  },
  digest: { digest: record(digest) },
  /** One assumption failed: the digest is dropped, and the agent is in PLANNING (A5). */
  resumed: {
    agent: record(agent),
    digest: record(digest),
    leases,
    observation: record(observation),
    assumptions: list(record(judgement)),
  },
  revoked: { count: named("revoked", integer()) },
  /** Memory does not know the key, and the store may: it is asked before the request is decided (W10). */
  request_key_unknown: { key: text(), fingerprint: text() },
  /** Only the server itself asks for it. */
  forgotten: { count: integer() },
  resource: { resource: record(resource), created },
  /** What a cell and the kernel believed, compared: what the cell is to do, and what of its inventory was not taken. */
  cell_enrolled: {
    cell: record(cell),
    bind: leases,
    update: leases,
    teardown: list(record({ leaseId: text(), code: text() })),
    refused: list(record({ resource: text(), message: text() })),
  },
  cell: { cell: record(cell) },
  tenant: { tenant: record(tenant), created },
  key: { key: record(key) },
  policy: { policy: record(policy), created },
  done: {},
} satisfies Readonly<Record<string, Fields>>;

type RepliesOf<R> = { [K in keyof R & string]: { readonly type: K } & Values<R[K]> }[keyof R & string];

export type Verdict = RepliesOf<typeof verdicts>;
export type TaskReply = RepliesOf<typeof taskReplies>;
export type CellEnrolled = Extract<RepliesOf<typeof otherReplies>, { readonly type: "cell_enrolled" }>;
export type Reply = Refusal | Verdict | TaskReply | WithUpdate<RepliesOf<typeof otherReplies>>;

/** A4: present where it lets a paused agent go on: a transition, or a heartbeat that collects a grant. */
type WithUpdate<R> = R extends { readonly type: "agent" | "lease" | "leases" }
  ? R & { readonly observation?: Observation | null }
  : R;
