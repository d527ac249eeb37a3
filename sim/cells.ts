/** What cells do: bind and tear down as ordered, fail, forget the order, or report for an old generation (G6, G7). */
import type { Actor } from "../src/kernel/contract/commands.ts";
import { hostOf } from "./hosting.ts";
import { send } from "./send.ts";
import { type CellJob, entropyOf, operator, type SimCell, type World } from "./world.ts";

export function cellTurn(world: World): void {
  const { random, jobs } = world;
  // Mostly the last order; older ones have often timed out, and are reported all the same.
  const at = random.chance(0.8) ? jobs.length - 1 : random.below(jobs.length);
  const [job] = jobs.splice(at, 1);
  if (job === undefined) return;
  const outcome = random.weighted({ done: 86, failed: 5, forgotten: 5, twice: 4 });
  if (outcome === "forgotten") return; // It will time out.
  if (outcome === "twice") jobs.push(job);
  const host = hostOf(world, job.lease);
  // A supervisor reports for it; what it really has set up is not tracked.
  if (host === undefined) report(world, job, outcome === "failed", operator, null);
  else work(world, host, job, outcome === "failed");
}

function report(world: World, job: CellJob, failed: boolean, actor: Actor, cellId: string | null): void {
  const { random, store } = world;
  const generation = store.lease.get(`${job.tenant} ${job.lease.id}`)?.generation ?? 1;
  send(world, {
    tenant: job.tenant,
    actor,
    entropy: entropyOf(world),
    type: reportOf(job, failed),
    cellId,
    leaseId: job.lease.id,
    generation: random.chance(0.95) ? generation : generation + 1,
    coordinate: job.does === "bind" ? "127.0.0.1:7200" : null,
    reason: failed ? "the process did not answer" : null,
  });
}

/** A cell that enrolled: its reports are true. */
function work(world: World, cell: SimCell, job: CellJob, failed: boolean): void {
  const { id, generation, fence, resource } = job.lease;
  if (job.does === "bind") {
    // It does not bind what it has torn down, or what comes after its end (see src/cell/core.ts).
    const isOver = cell.over.has(id) || world.now >= job.until;
    if (!isOver && !failed) cell.bindings.set(id, { resource, generation, fence, endedAs: null });
    return report(world, job, isOver || failed, cell.actor, cell.id);
  }
  cell.over.add(id);
  const binding = cell.bindings.get(id);
  if (!failed) cell.bindings.delete(id);
  else if (binding !== undefined) cell.bindings.set(id, { ...binding, endedAs: "lease_revoked" });
  report(world, job, failed, cell.actor, cell.id);
}

function reportOf({ does }: CellJob, failed: boolean) {
  if (does === "bind") return failed ? "bind_failed" : "bind_confirmed";
  return failed ? "teardown_failed" : "teardown_confirmed";
}
