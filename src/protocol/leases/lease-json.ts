/** A lease on the wire: its record, how long it can still be used, and its token. Nearly every answer and event has one. */
import { type Lease, lease, type Millis } from "../../kernel/contract/records.ts";
import { type FormContext, membersTextOf, registerForm, show, type WireObject } from "../schema/convert.ts";
import { escaped } from "../schema/text.ts";

const membersText = membersTextOf<Lease>(lease);

export function leaseText(record: Lease, now: Millis, token: string | null = null): string {
  const text = `{${membersText(record)},"expires_in_ms":${expiresInMs(record, now)}`;
  return token === null ? `${text}}` : `${text},"token":"${escaped(token)}"}`;
}

export function leaseObject(record: Lease, now: Millis, token: string | null = null): WireObject {
  return { ...show(lease, record), expires_in_ms: expiresInMs(record, now), ...(token !== null && { token }) };
}

export const leaseForm = {
  text: (record: Lease, context: FormContext): string =>
    leaseText(record, context.now, record.cell === null && !record.tokens ? null : tokenOf(record, context)),
  object: (record: Lease, context: FormContext): object =>
    leaseObject(record, context.now, record.cell === null && !record.tokens ? null : tokenOf(record, context)),
};
registerForm(lease, leaseForm);

function tokenOf(record: Lease, { now, tokenOf }: FormContext): string | null {
  return tokenOf === undefined ? null : tokenOf(record, now);
}

/** How long it can still be used: not at all once it is held, closing or ended, whenever it would have expired. */
export function expiresInMs({ state, expiresAt }: Lease, now: Millis): number {
  return state === "ACTIVE" || state === "BINDING" ? Math.max(0, expiresAt - now) : 0;
}
