/** The table of verdicts (W9): what an acquire, or the question after its request, is answered. */
import type { Verdict } from "../../kernel/contract/replies.ts";
import { type Answer, type AnswerContext, answer, inSeconds } from "../answers/answer.ts";
import { statusOf } from "../answers/errors.ts";
import { show } from "../schema/show.ts";
import { observation as shownObservation } from "../schema/views.ts";
import { blockersText, leasesText } from "./lease-json.ts";

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
