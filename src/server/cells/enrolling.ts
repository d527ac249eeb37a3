/** A cell's hello, decided by the kernel and durable before it is welcomed; and the words in which both speak of it. */
import type { Decision } from "../../engine/engine-types.ts";
import { type EnrolCell, unstamped } from "../../kernel/contract/commands.ts";
import type { limits as kernelLimits } from "../../kernel/contract/limits.ts";
import type { CellBinding, CellResource } from "../../kernel/contract/records.ts";
import type { RefusalCode } from "../../kernel/contract/refusals.ts";
import type { CellEnrolled } from "../../kernel/contract/replies.ts";
import {
  type CellHello,
  type CellInventoryEntry,
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
    inventory: hello.inventory.map(cellResource),
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
  switch (code) {
    case "cell_taken":
      return cellCloseCodes.taken;
    case "stale_session":
      return cellCloseCodes.replaced;
    case "forbidden":
    case "cell_unknown":
    case "tenant_unknown":
    case "tenant_suspended":
    case "lease_denied":
      return cellCloseCodes.notAllowed;
    default:
      return cellCloseCodes.badFrame;
  }
}

export function cellResource(entry: CellInventoryEntry): CellResource {
  return entry;
}

function cellBinding({ lease_id, generation, fence, ended_as }: CellLinkBinding): CellBinding {
  return { leaseId: lease_id, generation, fence, endedAs: ended_as };
}
