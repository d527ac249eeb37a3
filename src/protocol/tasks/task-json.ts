/**
 * Tasks, offers and workers on the wire. Offers are what a busy server sends most, so their text is put together
 * directly; the kernel's own ids need no escaping.
 */
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import type { Directive, Offer } from "../../kernel/contract/replies.ts";
import {
  type Payload,
  type Task,
  task as taskFields,
  type Worker,
  worker as workerFields,
} from "../../kernel/contract/task-records.ts";
import type { TaskObligation } from "../answers/queries.ts";
import { expiresInMs, leasesText } from "../leases/lease-json.ts";
import { isoTime } from "../schema/iso-time.ts";
import { escaped } from "../schema/json-text.ts";
import { show, type WireObject } from "../schema/show.ts";
import { taskObligation } from "../schema/views.ts";

type TokenOf = (lease: Lease, now: Millis) => string | null;

export function offersText(offers: readonly Offer[], now: Millis, tokenOf?: TokenOf): string {
  let text = "";
  for (const offer of offers) {
    if (text !== "") text += ",";
    text += offerText(offer, now, tokenOf);
  }
  return `{"offers":[${text}]}`;
}

export function offerText({ task, payload, lease, leases, attempt }: Offer, now: Millis, tokenOf?: TokenOf): string {
  const text =
    `{"lease_id":"${lease.id}",${lastsText(lease, now)},"fence":${lease.fence}` +
    `,"attempt":${attempt},"task":${offeredText(task, payload)}`;
  return leases.length === 0 ? `${text}}` : `${text},"leases":${leasesText(leases, now, tokenOf)}}`;
}

/** The nine fields of the AsyncGate document. */
function offeredText({ id, spec }: Task, payload: Payload | null): string {
  const { principalAi, taskType, taskSummary, payloadPointer, expectedOutcomeKind, expectedArtifactMime } = spec;
  const inputs = payload?.inputs ?? null;
  return (
    `{"task_id":"${id}","principal_ai":"${escaped(principalAi)}","task_type":"${escaped(taskType)}"` +
    `,"task_summary":${text(taskSummary)},"task_body":${text(payload?.taskBody ?? null)}` +
    `,"payload_pointer":${text(payloadPointer)},"inputs":${inputs === null ? "null" : JSON.stringify(inputs)}` +
    `,"expected_outcome_kind":${text(expectedOutcomeKind)},"expected_artifact_mime":${text(expectedArtifactMime)}}`
  );
}

export function taskLeaseText(
  lease: Lease,
  leases: readonly Lease[],
  directives: readonly Directive[],
  now: Millis,
  tokenOf?: TokenOf,
): string {
  const asked = directives.length === 0 ? "[]" : JSON.stringify(directives);
  const text = `{${lastsText(lease, now)},"directives":${asked}`;
  return leases.length === 0 ? `${text}}` : `${text},"leases":${leasesText(leases, now, tokenOf)}}`;
}

function lastsText(lease: Lease, now: Millis): string {
  return `"lease_expires_at":"${isoTime(lease.expiresAt)}","expires_in_ms":${expiresInMs(lease, now)}`;
}

function text(value: string | null): string {
  return value === null ? "null" : `"${escaped(value)}"`;
}

export function createdText({ id, status }: Task, warnings: readonly string[] = []): string {
  const warned = warnings.length === 0 ? "" : `,"warnings":${JSON.stringify(warnings)}`;
  return `{"task_id":"${id}","status":"${status}"${warned}}`;
}

export function taskObject(task: Task): WireObject {
  return show(taskFields, task);
}

export function obligationObject({ task, obligation }: TaskObligation): WireObject {
  const { id: taskId, spec, status, lastReceiptId } = task;
  const closedAt = obligation.state === "CLOSED" ? task.endedAt : null;
  return show(taskObligation, { ...spec, ...obligation, closedAt, taskId, status, lastReceiptId });
}

export function workerObject({ worker, leases }: { readonly worker: Worker; readonly leases: number }): WireObject {
  return { ...show(workerFields, worker), leases };
}
