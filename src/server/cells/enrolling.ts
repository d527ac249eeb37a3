/** A cell's hello, decided by the kernel and durable before it is welcomed; and the words in which both speak of it. */
import type { Decision } from "../../engine/engine-types.ts";
import { type EnrolCell, unstamped } from "../../kernel/contract/commands.ts";
import type { limits as kernelLimits } from "../../kernel/contract/limits.ts";
import type { CellBinding } from "../../kernel/contract/records.ts";
import type { RefusalCode } from "../../kernel/contract/refusals.ts";
import type { CellEnrolled } from "../../kernel/contract/replies.ts";
import {
  type CellHello,
  type CellLinkBinding,
  type CellLinkKey,
  type CellWelcome,
  cellCloseCodes,
} from "../../protocol/resources/cell-link.ts";
import type { CellKey } from "../../token/node/cell-keys.ts";
import type { Caller } from "../service.ts";

/** How often a cell is to be heard of; three may be lost before it is taken for gone. */
const heartbeatMs = 5_000;
const aliveMs = 15_000 satisfies (typeof kernelLimits)["cellAliveMs"];

export function enrolCommand({ tenant, actor }: Caller, hello: CellHello): EnrolCell {
  return {
    type: "enrol_cell",
    tenant,
    actor,
    entropy: unstamped,
    cellId: hello.cell,
    session: hello.session,
    version: hello.version,
    inventory: hello.inventory,
    bindings: hello.bindings.map(cellBinding),
  };
}

export function welcomeFrame(
  { now }: Decision,
  tenant: string,
  keys: readonly CellKey[],
  { refused }: CellEnrolled,
): CellWelcome {
  return {
    type: "welcome",
    now,
    tenant,
    keys: linkKeys(keys),
    heartbeat_ms: heartbeatMs,
    alive_ms: aliveMs,
    refused: refused.map(({ resource, message }) => ({ resource, message })),
  };
}

export function linkKeys(keys: readonly CellKey[]): readonly CellLinkKey[] {
  return keys.map(({ id, key, retiresAt }) => ({
    id,
    key: Buffer.from(key).toString("base64url"),
    retires_at: retiresAt,
  }));
}

/** Why the link of a cell that the kernel does not take is closed. */
export function closeCodeFor(code: RefusalCode): number {
  if (code === "cell_taken") return cellCloseCodes.taken;
  if (code === "stale_session") return cellCloseCodes.replaced;
  return notAllowed.includes(code) ? cellCloseCodes.notAllowed : cellCloseCodes.badFrame;
}

const notAllowed: readonly RefusalCode[] = [
  "forbidden",
  "cell_unknown",
  "tenant_unknown",
  "tenant_suspended",
  "lease_denied",
];

function cellBinding({ lease_id, generation, fence, ended_as }: CellLinkBinding): CellBinding {
  return { leaseId: lease_id, generation, fence, endedAs: ended_as };
}
