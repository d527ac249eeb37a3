/** From a reply to an answer. What only some operations show differently is said with them, by the functions below. */
import type { Fields, Values } from "../../kernel/contract/field.ts";
import { policy as policyFields } from "../../kernel/contract/policy-records.ts";
import {
  cell as cellFields,
  digest as digestFields,
  type Key,
  key as keyFields,
  type Lease,
  type Millis,
  tenant as tenantFields,
} from "../../kernel/contract/records.ts";
import {
  type LostLease,
  type Observation,
  observation as observationFields,
  type Reply,
} from "../../kernel/contract/replies.ts";
import { task as taskFields, taskTypeRecord } from "../../kernel/contract/task-records.ts";
import { expiresInMs, leaseForm, leaseObject } from "../leases/lease-json.ts";
import { activityObject } from "../operating/activity-json.ts";
import {
  agentObject,
  agentState,
  cellViewObject,
  openRequestObject,
  policyVerdictObject,
  resourceObject,
} from "../operating/record-json.ts";
import { verifiedTokenObject } from "../resources/token-json.ts";
import { formOf, show, type WireObject } from "../schema/convert.ts";
import { isoTime } from "../schema/text.ts";
import * as views from "../schema/views.ts";
import { unknownState } from "../schema/vocabulary.ts";
import { obligationObject, taskReplyAnswer, workerObject } from "../tasks/task-json.ts";
import {
  type Answer,
  type AnswerContext,
  answer,
  answerJson,
  errorAnswer,
  inSeconds,
  refusalAnswer,
} from "./answer.ts";
import { statusOf } from "./errors.ts";
import type { OperationView, Page, QueryReply } from "./queries.ts";

export function replyAnswer(reply: QueryReply, context: AnswerContext): Answer {
  switch (reply.type) {
    case "refused":
      return refusalAnswer(reply, context.now);
    case "granted":
      return answer(200, grantedForm, reply.requestId === "" ? withoutId(reply) : reply, context);
    case "waiting":
      return answer(202, waitingForm, reply.requestId === "" ? withoutId(reply) : reply, context);
    case "standby":
      return answer(202, standbyForm, reply.requestId === "" ? withoutId(reply) : reply, context);
    case "died": {
      const retryAfter = inSeconds(reply.retryAfterMs);
      return { ...answer(statusOf("die"), diedForm, reply, context), code: "die", retryAfter };
    }
    case "paused":
      return { ...answer(statusOf("paused"), pausedForm, reply, context), code: "paused" };
    case "lease":
      if (reply.observation == null) return answer(200, leaseForm, reply.lease, context);
      return answerJson(200, { ...leaseForm.object(reply.lease, context), ...updateOf(reply) });
    case "leases":
      return answer(200, heartbeatsForm, heartbeatsOf(reply), context);
    case "agent":
      return answerJson(reply.created ? 201 : 200, { ...agentObject(reply.agent, context), ...updateOf(reply) });
    case "digest":
      return answerJson(200, show(digestFields, reply.digest));
    case "resumed":
      return resumedAnswer(reply, context);
    case "revoked":
      return answerJson(200, { revoked: reply.count });
    case "request_key_unknown":
      // The caller asks the store before it is encoded (W10).
      throw new TypeError(`${reply.type} is not an answer yet`);
    case "forgotten":
      return answerJson(200, { forgotten: reply.count });
    case "resource":
      return answerJson(reply.created ? 201 : 200, resourceObject(reply.resource));
    case "cell":
      return answerJson(200, show(cellFields, reply.cell));
    case "tenant":
      return answerJson(reply.created ? 201 : 200, show(tenantFields, reply.tenant));
    case "key":
      return answerJson(201, newKeyObject(reply.key, context));
    case "policy":
      return answerJson(reply.created ? 201 : 200, show(policyFields, reply.policy));
    case "policy_verdict":
      return answerJson(200, policyVerdictObject(reply));
    case "policy_page":
      return pageAnswer(reply, "policies", showAll(policyFields, reply.policies));
    case "done":
      return answerJson(200, {});
    case "agent_page":
      return pageAnswer(
        reply,
        "agents",
        reply.agents.map((agent) => agentObject(agent, context)),
      );
    case "lease_page":
      return answer(200, leasePageForm, reply, { now: context.now });
    case "request_page":
      return pageAnswer(
        reply,
        "requests",
        reply.requests.map((open) => openRequestObject(open, context.now)),
      );
    case "resource_page":
      return pageAnswer(reply, "resources", reply.resources.map(resourceObject));
    case "cell_page":
      return pageAnswer(
        reply,
        "cells",
        reply.cells.map((cell) => cellViewObject(cell, context)),
      );
    case "audit_page":
      return pageAnswer(reply, "entries", reply.entries);
    case "tenant_page":
      return pageAnswer(reply, "tenants", showAll(tenantFields, reply.tenants));
    case "key_page":
      return pageAnswer(reply, "keys", showAll(keyFields, reply.keys));
    case "task_page":
      return pageAnswer(reply, "tasks", showAll(taskFields, reply.tasks));
    case "task_type_page":
      return pageAnswer(reply, "task_types", showAll(taskTypeRecord, reply.taskTypes));
    case "worker_page":
      return pageAnswer(
        reply,
        "workers",
        reply.workers.map((worker) => workerObject(worker, context)),
      );
    case "obligation_page":
      return pageAnswer(reply, "obligations", reply.obligations.map(obligationObject));
    case "receipt_page":
      return answer(200, receiptPageForm, reply, context);
    case "token_verified":
      return answerJson(200, verifiedTokenObject(reply, context.now));
    case "token_keys":
      return answerJson(200, { keys: showAll(views.tokenKey, reply.keys) });
    case "observation":
      return answerJson(200, show(observationFields, reply.observation));
    case "usage":
      return answerJson(200, { tenant_id: reply.tenantId, usage: reply.usage });
    case "overview":
      return answerJson(200, { at: isoTime(reply.at), sequence: reply.sequence, ...reply.counts });
    case "operation":
      return answerJson(200, operationObject(reply.operation));
    case "activity_page":
      return pageAnswer(
        reply,
        "agents",
        reply.agents.map((one) => activityObject(one, context.now)),
      );
    case "wait_page":
      return pageAnswer(reply, "waits", reply.waits);
    case "history_page":
      return answerJson(200, {
        at: isoTime(reply.at),
        complete: reply.complete,
        leases: reply.leases.map((lease) => heldObject(lease, context.now)),
        waits: reply.waits,
        next_cursor: reply.nextCursor,
      });
    // Cells are answered over their own link.
    case "cell_enrolled":
      throw new TypeError("an enrolment is not an answer");
    default:
      return taskReplyAnswer(reply, context);
  }
}

/** Without its token: what is read from history proves nothing. */
function heldObject(lease: Lease, now: Millis): WireObject {
  const { endedAt, endReason } = lease;
  const end = { ended_at: endedAt === null ? null : isoTime(endedAt), end_reason: endReason };
  return { ...leaseObject(lease, now), ...end };
}

function operationObject({ id, action, state, dryRun, matched, done, failed, ...more }: OperationView): WireObject {
  const { detail, begunAt, endedAt } = more;
  const times = { begun_at: isoTime(begunAt), ended_at: endedAt === null ? null : isoTime(endedAt) };
  return { operation_id: id, action, state, dry_run: dryRun, matched, done, failed, detail, ...times };
}

function showAll(fields: Fields, records: readonly object[]): readonly WireObject[] {
  return records.map((one) => show(fields, one));
}

function pageAnswer({ nextCursor, sequence }: Page, name: string, items: readonly object[]): Answer {
  return answerJson(200, { [name]: items, ...(sequence !== undefined && { sequence }), next_cursor: nextCursor });
}

/** A dry run (W12) leaves no request behind that could be asked for. */
function withoutId<T extends { readonly requestId: string }>(verdict: T): Omit<T, "requestId"> & { requestId: null } {
  return { ...verdict, requestId: null };
}

export function registeredAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type !== "agent") return replyAnswer(reply, context);
  const { agent, created } = reply;
  const { agentToken } = context;
  const token = { agentToken: agentToken?.token, agentTokenExpiresInMs: agentToken?.expiresInMs };
  return answerJson(created ? 201 : 200, show(views.registered, { ...agent, ...token, state: agentState(agent) }));
}

/** L8: the truth about each lease, the ended and the unknown ones too. */
export function verifiedAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type !== "leases") return replyAnswer(reply, context);
  const { now } = context;
  const leases = reply.leases.map((lease) => verifiedObject(lease, now));
  const lost = reply.lost.map((one) =>
    isShown(one) ? verifiedObject(one.lease, now) : show(views.leaseEnd, shownLost(one)),
  );
  const total = reply.total === null ? {} : { leases_total: reply.total };
  return answerJson(200, { now: isoTime(now), leases: [...leases, ...lost], ...total });
}

/** L5: what is left of a released lease is its name and how it ended. */
export function releasedAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type === "lease") return answer(200, leaseEndForm, ended(reply.lease), context);
  if (reply.type !== "leases") return replyAnswer(reply, context);
  const leases = [...reply.leases.map(ended), ...reply.lost.map(shownLost)];
  return answer(200, leaseEndsForm, { leases, total: reply.total }, context);
}

/** There is no new secret to show. */
export function changedKeyAnswer(reply: QueryReply, context: AnswerContext): Answer {
  return reply.type === "key" ? answerJson(200, show(keyFields, reply.key)) : replyAnswer(reply, context);
}

export function rotatedKeyAnswer(reply: QueryReply, context: AnswerContext): Answer {
  return reply.type === "key" ? answerJson(200, newKeyObject(reply.key, context)) : replyAnswer(reply, context);
}

function newKeyObject(key: Key, { keySecret, warnings = [] }: AnswerContext): object {
  return { ...show(keyFields, key), key: keySecret, ...(warnings.length > 0 && { warnings }) };
}

/** A5: where an assumption failed, the agent was taken up but must plan again. */
function resumedAnswer(reply: Extract<Reply, { type: "resumed" }>, { agentToken }: AnswerContext): Answer {
  const { digest, agent, assumptions } = reply;
  const token = { agent_token: agentToken?.token, agent_token_expires_in_ms: agentToken?.expiresInMs };
  const rest = { epoch: agent.epoch, ...token, ...updateOf(reply), assumptions };
  const failed = assumptions.filter(({ outcome }) => outcome === "failed");
  if (failed.length === 0) return answerJson(200, { digest: show(digestFields, digest), ...rest });
  const detail = "What the agent relied on has changed; its digest is dropped and it is in PLANNING, so plan again.";
  const shown = failed.map(({ resource, expected, actual }) => ({ resource, expected, actual }));
  return errorAnswer("assumption_failed", detail, { failed: shown, ...rest });
}

/** A4: beside everything else that the answer has. */
function updateOf({ observation }: { readonly observation?: Observation | null }): object {
  return observation == null ? {} : { observation_update: show(observationFields, observation) };
}

type LeaseEnd = Values<typeof views.leaseEnd>;

function ended({ id, state }: Lease): LeaseEnd {
  return { id, state, code: null };
}

function heartbeatsOf(reply: Extract<Reply, { readonly type: "leases" }>) {
  const { leases, lost, notExtended, total, observation = null } = reply;
  const kept = notExtended === null || notExtended.length === 0 ? null : notExtended;
  return { leases, lost: lost.map(shownLost), notExtended: kept, total, observation };
}

/** `error` says why one that is alive could not be served (`renew_required`, `verify_required`). */
function shownLost(lost: LostLease): LeaseEnd {
  const { id, code } = lost;
  return isShown(lost) ? { id, state: lost.lease.state, code } : { id, state: unknownState, code: null };
}

function verifiedObject(lease: Lease, now: Millis) {
  return show(views.verifiedLease, { ...lease, expiresInMs: expiresInMs(lease, now) });
}

/** Another's lease looks like one that never was: a caller that guesses ids learns nothing. */
function isShown(lost: LostLease): lost is LostLease & { readonly lease: Lease } {
  return lost.lease !== null && lost.code !== "not_lease_holder" && lost.code !== "forbidden";
}

const grantedForm = formOf<object>(views.granted);
const waitingForm = formOf<object>(views.waiting);
const standbyForm = formOf<object>(views.standby);
const diedForm = formOf<object>(views.died);
const pausedForm = formOf<object>(views.paused);
const leaseEndForm = formOf<LeaseEnd>(views.leaseEnd);
const leaseEndsForm = formOf<object>(views.leaseEnds);
const heartbeatsForm = formOf<object>(views.heartbeats);
const leasePageForm = formOf<object>(views.leasePage);
const receiptPageForm = formOf<object>(views.receiptPage);
