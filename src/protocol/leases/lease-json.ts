/** A lease on the wire, as text and as an object. Nearly every answer and event holds one. */
import type { Values } from "../../kernel/contract/field.ts";
import { type Lease, lease, type Millis } from "../../kernel/contract/records.ts";
import type { Blocker } from "../../kernel/contract/replies.ts";
import type { AnswerContext } from "../answers/answer.ts";
import { membersTextOf, show, type WireObject } from "../schema/convert.ts";
import { escaped } from "../schema/text.ts";
import { blocker } from "../schema/views.ts";

const membersText = membersTextOf<Lease>(lease);

export function leaseText(record: Lease, now: Millis, token: string | null = null): string {
  const text = `{${membersText(record)},"expires_in_ms":${expiresInMs(record, now)}`;
  return token === null ? `${text}}` : `${text},"token":"${escaped(token)}"}`;
}

export function leaseObject(record: Lease, now: Millis, token: string | null = null): WireObject {
  return { ...show(lease, record), expires_in_ms: expiresInMs(record, now), ...(token !== null && { token }) };
}

/** How long it can still be used: not at all once it is held, closing or ended, whenever it would have expired. */
export function expiresInMs({ state, expiresAt }: Lease, now: Millis): number {
  return state === "ACTIVE" || state === "BINDING" ? Math.max(0, expiresAt - now) : 0;
}

export function leasesText(leases: readonly Lease[], now: Millis, tokenOf?: AnswerContext["tokenOf"]): string {
  let text = "";
  for (const lease of leases) {
    if (text !== "") text += ",";
    const hasToken = tokenOf !== undefined && (lease.cell !== null || lease.tokens);
    text += leaseText(lease, now, hasToken ? tokenOf(lease, now) : null);
  }
  return `[${text}]`;
}

export function blockersText(blockers: readonly Blocker[], now: Millis): string {
  return `[${blockers.map((one) => `{${blockerText(shownBlocker(one, now))}}`).join(",")}]`;
}

export function blockerObject(one: Blocker, now: Millis): WireObject {
  return show(blocker, shownBlocker(one, now));
}

type ShownBlocker = Values<typeof blocker>;
const blockerText = membersTextOf<ShownBlocker>(blocker);

function shownBlocker(one: Blocker, now: Millis): ShownBlocker {
  if (one.type === "lease") {
    const { id: leaseId, agentId, resource, predicate, purpose } = one.lease;
    return {
      agentId,
      resource,
      predicate,
      purpose,
      leaseId,
      requestId: null,
      expiresInMs: standsForMs(one.lease, now),
    };
  }
  const { request, resource, predicate } = one;
  const { id: requestId, agentId, purpose } = request;
  return { agentId, resource, predicate, purpose, leaseId: null, requestId, expiresInMs: null };
}

/** How long it can still be in the way: HELD outlasts the expiry (L9). Null where nobody can know. */
function standsForMs({ state, expiresAt, heldUntil }: Lease, now: Millis): number | null {
  if (state === "CLOSING") return null;
  return Math.max(0, (state === "HELD" ? (heldUntil ?? expiresAt) : expiresAt) - now);
}
