/** From a reply to an answer. What only some operations show differently is said with them, by the functions below. */
import type { Fields } from "../../kernel/contract/field.ts";
import {
  cell as cellFields,
  digest as digestFields,
  key as keyFields,
  type Lease,
  type Millis,
  tenant as tenantFields,
} from "../../kernel/contract/records.ts";
import type { LostLease, Reply, Verdict } from "../../kernel/contract/replies.ts";
import { task as taskFields, taskTypeRecord } from "../../kernel/contract/task-records.ts";
import { blockersText, expiresInMs, leasesText, leaseText } from "../leases/lease-json.ts";
import {
  agentObject,
  agentState,
  cellViewObject,
  openRequestObject,
  resourceObject,
} from "../operating/record-json.ts";
import { receiptsText } from "../receipts/receipt-json.ts";
import { verifiedTokenObject } from "../resources/token-json.ts";
import { show, type WireObject } from "../schema/convert.ts";
import { isoTime } from "../schema/text.ts";
import { leaseEnd, registered, observation as shownObservation, tokenKey, verifiedLease } from "../schema/views.ts";
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
import type { Page, QueryReply } from "./queries.ts";

export function replyAnswer(reply: QueryReply, context: AnswerContext): Answer {
  switch (reply.type) {
    case "refused":
      return refusalAnswer(reply, context.now);
    case "granted":
    case "waiting":
    case "died":
    case "paused":
      return verdictAnswer(reply, context);
    case "lease":
      return answer(200, leaseText(reply.lease, context.now, context.tokenOf?.(reply.lease, context.now) ?? null));
    case "leases":
      return answer(200, heartbeatsText(reply.leases, reply.lost, context));
    case "agent":
      return answerJson(reply.created ? 201 : 200, agentObject(reply.agent));
    case "digest":
      return answerJson(200, show(digestFields, reply.digest));
    case "resumed":
      return resumedAnswer(reply, context);
    case "revoked":
      return answerJson(200, { revoked: reply.count });
    case "resource":
      return answerJson(reply.created ? 201 : 200, resourceObject(reply.resource));
    case "cell":
      return answerJson(200, show(cellFields, reply.cell));
    case "tenant":
      return answerJson(reply.created ? 201 : 200, show(tenantFields, reply.tenant));
    case "key":
      return answerJson(201, { ...show(keyFields, reply.key), key: context.keySecret });
    case "done":
      return answer(200, "{}");
    case "agent_page":
      return pageAnswer(reply, "agents", reply.agents.map(agentObject));
    case "lease_page":
      return pageText(reply, "leases", leasesText(reply.leases, context.now));
    case "request_page":
      return pageAnswer(
        reply,
        "requests",
        reply.requests.map((open) => openRequestObject(open, context.now)),
      );
    case "resource_page":
      return pageAnswer(reply, "resources", reply.resources.map(resourceObject));
    case "cell_page":
      return pageAnswer(reply, "cells", reply.cells.map(cellViewObject));
    case "tenant_page":
      return pageAnswer(reply, "tenants", showAll(tenantFields, reply.tenants));
    case "key_page":
      return pageAnswer(reply, "keys", showAll(keyFields, reply.keys));
    case "task_page":
      return pageAnswer(reply, "tasks", showAll(taskFields, reply.tasks));
    case "task_type_page":
      return pageAnswer(reply, "task_types", showAll(taskTypeRecord, reply.taskTypes));
    case "worker_page":
      return pageAnswer(reply, "workers", reply.workers.map(workerObject));
    case "obligation_page":
      return pageAnswer(reply, "obligations", reply.obligations.map(obligationObject));
    case "receipt_page":
      return pageText(reply, "receipts", receiptsText(reply.receipts));
    case "token_verified":
      return answerJson(200, verifiedTokenObject(reply, context.now));
    case "token_keys":
      return answerJson(200, { keys: showAll(tokenKey, reply.keys) });
    // Cells are answered over their own link.
    case "cell_enrolled":
      throw new TypeError("an enrolment is not an answer");
    default:
      return taskReplyAnswer(reply, context);
  }
}

function showAll(fields: Fields, records: readonly object[]): readonly WireObject[] {
  return records.map((one) => show(fields, one));
}

function pageAnswer({ nextCursor }: Page, name: string, items: readonly object[]): Answer {
  return answerJson(200, { [name]: items, next_cursor: nextCursor });
}

function pageText({ nextCursor }: Page, name: string, items: string): Answer {
  return answer(200, `{"${name}":${items},"next_cursor":${JSON.stringify(nextCursor)}}`);
}

export function registeredAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type !== "agent") return replyAnswer(reply, context);
  const { agent, created } = reply;
  const { agentToken } = context;
  return answerJson(created ? 201 : 200, show(registered, { ...agent, agentToken, state: agentState(agent) }));
}

/** L8: the truth about each lease, the ended and the unknown ones too. */
export function verifiedAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type !== "leases") return replyAnswer(reply, context);
  const { now } = context;
  const leases = reply.leases.map((lease) => verifiedObject(lease, now));
  const lost = reply.lost.map((one) => (isShown(one) ? verifiedObject(one.lease, now) : lostObject(one)));
  return answerJson(200, { now: isoTime(now), leases: [...leases, ...lost] });
}

/** L5: what is left of a released lease is its name and how it ended. */
export function releasedAnswer(reply: QueryReply, context: AnswerContext): Answer {
  if (reply.type === "lease")
    return answer(200, `{"id":${JSON.stringify(reply.lease.id)},"state":"${reply.lease.state}"}`);
  if (reply.type !== "leases") return replyAnswer(reply, context);
  const ended = reply.leases.map((lease) => show(leaseEnd, lease));
  return answerJson(200, { leases: [...ended, ...reply.lost.map(lostObject)] });
}

/** The kernel answers with the key that was; there is no secret to show. */
export function deletedKeyAnswer(reply: QueryReply, context: AnswerContext): Answer {
  return reply.type === "key" ? answerJson(200, show(keyFields, reply.key)) : replyAnswer(reply, context);
}

export interface FailedAssumption {
  readonly resource: string;
  readonly expected: string;
  /** null: nobody has reported a version. */
  readonly actual: string | null;
}
export type Resumed = Extract<Reply, { type: "resumed" }>;

/** A5: the agent was taken up, but must plan again. */
export function assumptionFailedAnswer(
  reply: Resumed,
  failed: readonly FailedAssumption[],
  context: AnswerContext,
): Answer {
  const detail = "What the agent relied on has changed; its digest is dropped and it is in PLANNING, so plan again.";
  const { digest: _dropped, ...rest } = resumedObject(reply, context);
  return errorAnswer("assumption_failed", detail, { failed, ...rest });
}

function resumedAnswer(reply: Resumed, context: AnswerContext): Answer {
  return answerJson(200, resumedObject(reply, context));
}

/** The update is part of every resumption (A4); where nothing was looked up, nothing happened since. */
function resumedObject({ digest, agent, observe }: Resumed, { agentToken, observation }: AnswerContext) {
  return {
    digest: show(digestFields, digest),
    epoch: agent.epoch,
    agent_token: agentToken,
    observation_update: show(shownObservation, observation ?? { since: observe.since, truncated: false, changes: [] }),
  };
}

function heartbeatsText(leases: readonly Lease[], lost: readonly LostLease[], { now, tokenOf }: AnswerContext): string {
  const lostText = lost.length === 0 ? "[]" : JSON.stringify(lost.map(lostObject));
  return `{"leases":${leasesText(leases, now, tokenOf)},"lost":${lostText},"directives":[]}`;
}

/** `error` says why one that is alive could not be served (`renew_required`, `verify_required`). */
function lostObject(lost: LostLease) {
  const { id } = lost;
  return show(leaseEnd, isShown(lost) ? { id, state: lost.lease.state, code: lost.code } : { id, state: unknownState });
}

function verifiedObject(lease: Lease, now: Millis) {
  return show(verifiedLease, { ...lease, expiresInMs: expiresInMs(lease, now) });
}

/** Another's lease looks like one that never was: a caller that guesses ids learns nothing. */
function isShown(lost: LostLease): lost is LostLease & { readonly lease: Lease } {
  return lost.lease !== null && lost.code !== "not_lease_holder" && lost.code !== "forbidden";
}

/** The table of verdicts (W9): what an acquire, or the question after its request, is answered. */
export function verdictAnswer(verdict: Verdict, context: AnswerContext): Answer {
  switch (verdict.type) {
    case "granted":
      return answer(200, grantedText(verdict, context));
    case "waiting":
      return answer(202, waitingText(verdict, context));
    case "died":
      return {
        ...answer(statusOf("die"), diedText(verdict, context)),
        code: "die",
        retryAfter: inSeconds(verdict.retryAfterMs),
      };
    case "paused":
      return { ...answer(statusOf("paused"), pausedText(verdict)), code: "paused" };
  }
}

type Granted = Extract<Verdict, { type: "granted" }>;
type Waiting = Extract<Verdict, { type: "waiting" }>;
type Died = Extract<Verdict, { type: "died" }>;
type Paused = Extract<Verdict, { type: "paused" }>;

function grantedText({ requestId, leases, warnings }: Granted, { now, tokenOf, observation }: AnswerContext): string {
  const update =
    observation === undefined ? "" : `,"observation_update":${JSON.stringify(show(shownObservation, observation))}`;
  const text = `{"verdict":"GRANTED","request_id":${requestIdText(requestId)},"leases":${leasesText(leases, now, tokenOf)}`;
  return `${text},"warnings":${warnings.length === 0 ? "[]" : JSON.stringify(warnings)}${update}}`;
}

function waitingText(verdict: Waiting, { now }: AnswerContext): string {
  const { requestId, position, blockers, blockersTotal, waitTimeoutMs, claimWithinMs, warnings } = verdict;
  const warned = warnings.length === 0 ? "" : `,"warnings":${JSON.stringify(warnings)}`;
  return (
    `{"verdict":"WAIT","request_id":${requestIdText(requestId)},"position":${position}` +
    `,"blocked_by":${blockersText(blockers, now)},"blocked_by_total":${blockersTotal}` +
    `,"wait_timeout_ms":${waitTimeoutMs},"claim_within_ms":${claimWithinMs}${warned}}`
  );
}

const dieDetail =
  "An older agent is in the way; roll back, let go of what you hold, and ask again after retry_after_ms.";

function diedText({ retryAfterMs, attempt, priority, blockers, blockersTotal }: Died, { now }: AnswerContext): string {
  return (
    `{"verdict":"DIE","error":"die","detail":"${dieDetail}","retry_after_ms":${retryAfterMs},"attempt":${attempt}` +
    `,"priority_timestamp":${priority},"blocked_by":${blockersText(blockers, now)},"blocked_by_total":${blockersTotal}}`
  );
}

function pausedText({ reason, detail, resource }: Paused): string {
  return JSON.stringify({ verdict: "PAUSED", error: "paused", reason, detail, ...(resource !== null && { resource }) });
}

/** A dry run (W12) leaves no request behind that could be asked for. */
function requestIdText(requestId: string): string {
  return requestId === "" ? "null" : JSON.stringify(requestId);
}
