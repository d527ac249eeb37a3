/**
 * Cells that enrol: they send heartbeats, lose their connection, crash and return with or without their bindings, end
 * bindings by themselves, and leave. What a cell has set up is the truth; the kernel only learns of it by reports.
 */
import type { CellResource, Lease } from "../src/kernel/contract/records.ts";
import type { CellEnrolled } from "../src/kernel/contract/replies.ts";
import { count } from "./counters.ts";
import { violated } from "./invariants/step.ts";
import { send } from "./send.ts";
import { entropyOf, operator, type SimCell, type SimTenant, type World } from "./world.ts";

const habits = {
  beat: 60,
  inventory: 8,
  reconnect: 6,
  die: 9,
  leave: 1,
  end: 12,
  stale: 3,
  withdraw: 2,
  readmit: 8,
  stranger: 2,
};

/** In most worlds with bound resources their cell enrols; in the others a supervisor reports for it. */
export function openCells(world: World, tenant: SimTenant): void {
  if (tenant.bound.length === 0 || world.random.chance(0.3)) return;
  const keyId = `cell-key-${tenant.id}`;
  const key = {
    id: keyId,
    hash: "h",
    role: "cell",
    tenant: tenant.id,
    label: null,
    scopes: null,
    expiresAt: null,
  } as const;
  send(world, { tenant: tenant.id, actor: operator, entropy: entropyOf(world), type: "create_key", key });
  const actor = { role: "cell", agentId: null, epoch: null, keyId } as const;
  const cell = { tenant: tenant.id, id: "cell-1", actor, session: "", bindings: new Map(), over: new Set<string>() };
  world.cells.push(cell);
  enrol(world, cell);
}

export function hostOf({ cells }: World, { tenant, cell: id }: Lease): SimCell | undefined {
  return cells.find((cell) => cell.tenant === tenant && cell.id === id);
}

export function hostingTurn(world: World): void {
  const { random, counters, mail, step } = world;
  const cell = random.pick(world.cells);
  const { tenant, id: cellId, session, actor } = cell;
  const asked = { tenant, actor, entropy: entropyOf(world), cellId };
  switch (random.weighted(habits)) {
    case "beat":
    case "inventory": {
      const inventory = random.chance(0.12) ? inventoryOf(world, cell) : null;
      const reply = send(world, { ...asked, type: "cell_heartbeat", session, inventory });
      if (reply.type === "refused") enrol(world, cell);
      return;
    }
    case "reconnect":
      return enrol(world, cell);
    case "die":
      return restartCell(world, cell);
    case "leave":
      for (const leaseId of cell.bindings.keys()) cell.over.add(leaseId);
      cell.bindings.clear();
      send(world, { ...asked, type: "cell_left", session, reason: "shut down" });
      return;
    case "end":
      return endOne(world, cell);
    case "stale":
      send(world, { ...asked, type: "cell_heartbeat", session: "an older one", inventory: null });
      mail.push({ atStep: step + 20, command: { ...asked, type: "cell_left", session, reason: "late" } });
      return;
    case "withdraw":
      send(world, { ...asked, actor: operator, type: "withdraw_cell", revoke: random.chance(0.5) });
      return;
    case "readmit":
      send(world, { ...asked, actor: operator, type: "readmit_cell" });
      return;
    case "stranger": {
      const other = { ...actor, keyId: "another" };
      const hello = { session: "x", version: null, inventory: [], bindings: [] };
      send(world, { ...asked, actor: other, type: "enrol_cell", ...hello });
      send(world, { ...asked, actor: operator, cellId: "no such cell", type: "readmit_cell" });
      send(world, { ...asked, type: "enrol_cell", ...hello, session: "" });
      count(counters, "a stranger wanted to be a cell");
      return;
    }
  }
}

/** A new connection: messages on the former one are lost, and the cell reports its bindings again. */
function enrol(world: World, cell: SimCell): void {
  const { tenant, id: cellId, actor, bindings } = cell;
  world.jobs.splice(0, world.jobs.length, ...world.jobs.filter(({ lease }) => hostOf(world, lease) !== cell));
  cell.session = `session-${world.random.below(2 ** 30)}`;
  const reply = send(world, {
    tenant,
    actor,
    entropy: entropyOf(world),
    type: "enrol_cell",
    cellId,
    session: cell.session,
    version: "0.1.0",
    inventory: inventoryOf(world, cell),
    bindings: [...bindings].map(([leaseId, { generation, fence, endedAs }]) => ({
      leaseId,
      generation,
      fence,
      endedAs,
    })),
  });
  if (reply.type === "cell_enrolled") obey(world, cell, reply);
}

/** Some orders are done at once, the rest later. */
function obey(world: World, cell: SimCell, { bind, update, teardown }: CellEnrolled): void {
  for (const lease of bind) if (world.random.chance(0.9)) tell(world, lease, "bind");
  for (const { id, generation, fence } of update) {
    const binding = cell.bindings.get(id);
    if (binding === undefined) violated("G6", "a cell is to renew what it does not have", id);
    cell.bindings.set(id, { ...binding, generation, fence });
  }
  for (const { leaseId } of teardown) {
    const lease = world.store.lease.get(`${cell.tenant} ${leaseId}`);
    // The cell tears down what the kernel does not know, without a report.
    if (lease !== undefined) tell(world, lease, "teardown");
    else cell.bindings.delete(leaseId);
  }
}

export function tell({ jobs }: World, lease: Lease, does: "bind" | "teardown"): void {
  jobs.push({ tenant: lease.tenant, lease, does, until: Math.max(lease.expiresAt, lease.cellBy ?? 0) });
}

/** Before it enrols it tears down what its journal names, and fences what it cannot tear down. */
function restartCell(world: World, cell: SimCell): void {
  for (const [leaseId, binding] of cell.bindings) {
    cell.over.add(leaseId);
    if (world.random.chance(0.85)) cell.bindings.delete(leaseId);
    else cell.bindings.set(leaseId, { ...binding, endedAs: "lease_revoked" });
  }
  if (world.random.chance(0.8)) enrol(world, cell);
}

/** By its own clock, or because of a fault. The report may be lost, come late, or twice. */
function endOne(world: World, cell: SimCell): void {
  const { random, mail, step, counters } = world;
  const [leaseId, binding] = random.pick([...cell.bindings, ["lse_none", null] as const]);
  const isClean = random.chance(0.8);
  if (binding !== null) {
    cell.over.add(leaseId);
    if (isClean) cell.bindings.delete(leaseId);
    else cell.bindings.set(leaseId, { ...binding, endedAs: "lease_expired" });
  }
  const command = {
    tenant: cell.tenant,
    actor: cell.actor,
    entropy: entropyOf(world),
    type: "cell_ended",
    cellId: cell.id,
    leaseId,
    generation: binding?.generation ?? 1,
    code: random.pick(["lease_expired", "lease_revoked"]),
    failure: isClean ? null : "it is still there",
  } as const;
  if (random.chance(0.15)) mail.push({ atStep: step + random.between(1, 60), command });
  else if (random.chance(0.9)) send(world, command);
  if (binding !== null) count(counters, "G11 a cell ended a binding by itself");
}

function inventoryOf(world: World, cell: SimCell): CellResource[] {
  const { random, store } = world;
  const hosted = world.tenants.find(({ id }) => id === cell.tenant)?.bound ?? [];
  return hosted
    .filter(() => random.chance(0.95))
    .map((resource) => {
      const stuck = [...cell.bindings.values()].some((one) => one.resource === resource && one.endedAs !== null);
      return {
        resource,
        driver: "process",
        capacity: store.resource.get(`${cell.tenant} ${resource}`)?.capacity ?? null,
        hardware: [],
        ready: random.chance(0.95),
        fault: random.chance(0.05) ? "the disk is full" : null,
        fenced: stuck ? "something is left" : null,
      };
    });
}

/** G7: a reset runs the driver's reset, and everything is torn down before it is reported. */
export function cleanUp(world: World, tenant: string, resource: string): void {
  for (const cell of world.cells) {
    if (cell.tenant !== tenant) continue;
    for (const [leaseId, binding] of cell.bindings) if (binding.resource === resource) cell.bindings.delete(leaseId);
  }
  world.jobs.splice(
    0,
    world.jobs.length,
    ...world.jobs.filter(({ lease }) => lease.tenant !== tenant || lease.resource !== resource),
  );
}
