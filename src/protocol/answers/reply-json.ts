/** From a reply to an answer. What only some operations show differently is said with them, by the functions below. */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { LostLease, Reply } from "../../kernel/contract/replies.ts";
import { expiresInMs, leasesText, leaseText } from "../leases/lease-json.ts";
import { verdictAnswer } from "../leases/verdict-json.ts";
import {
  agentObject,
  agentState,
  cellObject,
  cellViewObject,
  digestObject,
  keyObject,
  openRequestObject,
  resourceObject,
  tenantObject,
} from "../operating/record-json.ts";
import { receiptsText } from "../receipts/receipt-json.ts";
import { verifiedTokenObject } from "../resources/token-json.ts";
import { isoTime } from "../schema/iso-time.ts";
import { show } from "../schema/show.ts";
import { leaseEnd, registered, observation as shownObservation, tokenKey, verifiedLease } from "../schema/views.ts";
import { unknownState } from "../schema/vocabulary.ts";
import { obligationObject, taskObject, taskTypeObject, workerObject } from "../tasks/task-json.ts";
import { taskReplyAnswer } from "../tasks/task-replies.ts";
import { type Answer, type AnswerContext, answer, answerJson, errorAnswer, refusalAnswer } from "./answer.ts";
import type { QueryReply } from "./queries.ts";

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
      return answerJson(200, digestObject(reply.digest));
    case "resumed":
      return resumedAnswer(reply, context);
    case "revoked":
      return answerJson(200, { revoked: reply.count });
    case "resource":
      return answerJson(reply.created ? 201 : 200, resourceObject(reply.resource));
    case "cell":
      return answerJson(200, cellObject(reply.cell));
    case "tenant":
      return answerJson(reply.created ? 201 : 200, tenantObject(reply.tenant));
    case "key":
      return answerJson(201, { ...keyObject(reply.key), key: context.keySecret });
    case "done":
      return answer(200, "{}");
    case "agent_page":
      return answerJson(200, { agents: reply.agents.map(agentObject), next_cursor: reply.nextCursor });
    case "lease_page":
      return answer(
        200,
        `{"leases":${leasesText(reply.leases, context.now)},"next_cursor":${JSON.stringify(reply.nextCursor)}}`,
      );
    case "request_page":
      return answerJson(200, {
        requests: reply.requests.map((open) => openRequestObject(open, context.now)),
        next_cursor: reply.nextCursor,
      });
    case "resource_page":
      return answerJson(200, { resources: reply.resources.map(resourceObject), next_cursor: reply.nextCursor });
    case "cell_page":
      return answerJson(200, { cells: reply.cells.map(cellViewObject), next_cursor: reply.nextCursor });
    case "tenant_page":
      return answerJson(200, { tenants: reply.tenants.map(tenantObject), next_cursor: reply.nextCursor });
    case "key_page":
      return answerJson(200, { keys: reply.keys.map(keyObject), next_cursor: reply.nextCursor });
    case "task_page":
      return answerJson(200, { tasks: reply.tasks.map(taskObject), next_cursor: reply.nextCursor });
    case "task_type_page":
      return answerJson(200, { task_types: reply.taskTypes.map(taskTypeObject), next_cursor: reply.nextCursor });
    case "worker_page": {
      const workers = reply.workers.map(({ worker, leases }) => workerObject(worker, leases));
      return answerJson(200, { workers, next_cursor: reply.nextCursor });
    }
    case "obligation_page": {
      const obligations = reply.obligations.map(({ task, obligation }) => obligationObject(task, obligation));
      return answerJson(200, { obligations, next_cursor: reply.nextCursor });
    }
    case "receipt_page":
      return answer(
        200,
        `{"receipts":${receiptsText(reply.receipts)},"next_cursor":${JSON.stringify(reply.nextCursor)}}`,
      );
    case "token_verified":
      return answerJson(200, verifiedTokenObject(reply, context.now));
    case "token_keys":
      return answerJson(200, { keys: reply.keys.map((key) => show(tokenKey, key)) });
    // Cells are answered over their own link.
    case "cell_enrolled":
      throw new TypeError("an enrolment is not an answer");
    default:
      return taskReplyAnswer(reply, context);
  }
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
  return reply.type === "key" ? answerJson(200, keyObject(reply.key)) : replyAnswer(reply, context);
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
    digest: digestObject(digest),
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

/** Another's lease looks like one that never was: whoever guesses ids learns nothing. */
function isShown(lost: LostLease): lost is LostLease & { readonly lease: Lease } {
  return lost.lease !== null && lost.code !== "not_lease_holder" && lost.code !== "forbidden";
}
