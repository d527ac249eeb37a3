/** What a cell says of itself on its link: what it hosts, and what it believes is bound. */
import {
  type CellInventoryEntry,
  type CellLinkBinding,
  cellLinkLimits,
  linkReason,
} from "../protocol/resources/cell-link.ts";
import type { CellCore } from "./core.ts";

export function linkInventory(core: CellCore): readonly CellInventoryEntry[] {
  return core.inventory().map(({ resource, driver, capacity, hardware, ready, fault, fenced }) => ({
    resource,
    driver,
    capacity,
    hardware: hardware.slice(0, cellLinkLimits.hardwareMax),
    ready,
    fault: fault === null ? null : linkReason(fault),
    fenced: fenced === null ? null : linkReason(fenced),
  }));
}

export function linkBindings(core: CellCore): readonly CellLinkBinding[] {
  const bindings = core.inventory().flatMap((entry) => entry.bindings);
  return bindings.map(({ lease, generation, fence, endedAs }) => ({
    lease_id: lease,
    generation,
    fence,
    ended_as: endedAs,
  }));
}
