/** Verbs for the tests of cells, in the world of test-world.ts: cells that enrol, beat and end, and who leases on them. */
import type { Actor, EnrolCell } from "../contract/commands.ts";
import type { Cell, CellBinding, CellResource, Lease } from "../contract/records.ts";
import { type AskOf, createWorld, found, type Intents, type ReplyOf, type Terms, type World } from "./test-world.ts";

export type CellWorld = ReturnType<typeof createCellWorld>;

/** As a cell of this id, with its own key. */
export function cellActor(cellId: string): Actor {
  return { role: "cell", agentId: null, epoch: null, keyId: `key-${cellId}` };
}

export function hosts(resource: string, more: Partial<CellResource> = {}): CellResource {
  return {
    resource,
    driver: "tcp",
    capacity: null,
    hardware: [],
    ready: true,
    fault: null,
    fenced: null,
    ...more,
  };
}

export function bindingOf({ id, generation, fence }: Lease, more: Partial<CellBinding> = {}): CellBinding {
  return { leaseId: id, generation, fence, endedAs: null, ...more };
}

export function createCellWorld(...agents: readonly string[]) {
  const world = createWorld(...agents);
  const { ask, expect } = world;
  for (const cellId of ["c1", "c2"]) {
    const key = {
      id: `key-${cellId}`,
      hash: "h",
      role: "cell",
      tenant: "t1",
      label: null,
      scopes: null,
      expiresAt: null,
    } as const;
    expect("key", ask({ type: "create_key", key }));
  }
  const enrolAsk = (
    cellId: string,
    inventory: readonly (CellResource | string)[],
    bindings: readonly CellBinding[] = [],
    session = "s1",
  ): AskOf<EnrolCell> => ({
    type: "enrol_cell",
    actor: cellActor(cellId),
    cellId,
    session,
    version: "0.1.0",
    inventory: inventory.map((entry) => (typeof entry === "string" ? hosts(entry) : entry)),
    bindings,
  });
  return {
    ...shared(world),
    enrolAsk,
    enrol: (...args: Parameters<typeof enrolAsk>): ReplyOf<"cell_enrolled"> =>
      expect("cell_enrolled", ask(enrolAsk(...args))),
    beat: (cellId: string, inventory: readonly CellResource[] | null = null, session = "s1"): Cell =>
      expect("cell", ask({ type: "cell_heartbeat", actor: cellActor(cellId), cellId, session, inventory })).cell,
    leaves: (cellId: string, session = "s1"): Cell =>
      expect("cell", ask({ type: "cell_left", actor: cellActor(cellId), cellId, session, reason: "shut down" })).cell,
    ends: (cellId: string, lease: Lease, code: string, failure: string | null = null): void => {
      const { id: leaseId, generation } = lease;
      expect("done", ask({ type: "cell_ended", actor: cellActor(cellId), cellId, leaseId, generation, code, failure }));
    },
    withdrawCell: (cellId: string, revoke = false): Cell =>
      expect("cell", ask({ type: "withdraw_cell", cellId, revoke })).cell,
    readmit: (cellId: string): Cell => expect("cell", ask({ type: "readmit_cell", cellId })).cell,
    cell: (cellId: string): Cell =>
      found(world.base.state.tenants.get("t1")?.cells.get(cellId), `cell ${cellId}`).record,
    /** BINDING; and then set up and collected. */
    binding: (agentId: string, intents: Intents, terms: Terms = {}): Lease => {
      const { requestId } = world.waits(agentId, intents, terms);
      const [leaseId = ""] = found(world.request(requestId), "request").leaseIds;
      return found(world.lease(leaseId), "lease");
    },
    active(agentId: string, intents: Intents, terms: Terms = {}): Lease {
      const lease = this.binding(agentId, intents, terms);
      world.bound(lease);
      world.collect(`req_${lease.id.slice(4)}`);
      return found(world.lease(lease.id), "lease");
    },
    get now() {
      return world.now;
    },
    get happened() {
      return world.happened;
    },
    get events() {
      return world.events;
    },
  };
}

/** Getters are listed above, because a spread would freeze them. */
function shared(world: World): Omit<World, "now" | "happened" | "events" | "ready"> {
  return world;
}
