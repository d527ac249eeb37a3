/** What cells do: set up and tear down as they are told, fail at it, forget it, or answer for a time long past (G6, G7). */
import { send } from "./send.ts";
import { type CellJob, entropyOf, operator, type World } from "./world.ts";

export function cellTurn(world: World): void {
  const { random, jobs, store } = world;
  // Mostly what was asked last; what is older has often run out of time, and is reported all the same.
  const at = random.chance(0.8) ? jobs.length - 1 : random.below(jobs.length);
  const [job] = jobs.splice(at, 1);
  if (job === undefined) return;
  const outcome = random.weighted({ done: 86, failed: 5, forgotten: 5, twice: 4 });
  if (outcome === "forgotten") return; // Its time will run out.
  if (outcome === "twice") jobs.push(job);
  const generation = store.lease.get(`${job.tenant} ${job.leaseId}`)?.generation ?? 1;
  send(world, {
    tenant: job.tenant,
    actor: operator,
    entropy: entropyOf(world),
    type: reportOf(job, outcome === "failed"),
    leaseId: job.leaseId,
    generation: random.chance(0.95) ? generation : generation + 1,
    coordinate: job.does === "bind" ? "127.0.0.1:7200" : null,
    reason: outcome === "failed" ? "the process did not answer" : null,
  });
}

function reportOf({ does }: CellJob, failed: boolean) {
  if (does === "bind") return failed ? "bind_failed" : "bind_confirmed";
  return failed ? "teardown_failed" : "teardown_confirmed";
}
