/** Commands whose answers wait for a cell: what changes a bound lease (G4, G8, L15), and lifting a fence (G7). */
import type { Decision } from "../../engine/engine-types.ts";
import type {
  Command,
  DowngradeLease,
  RenewLease,
  ResetResource,
  TransferLease,
} from "../../kernel/contract/commands.ts";
import type { Lease } from "../../kernel/contract/records.ts";
import type { HeartbeatTask } from "../../kernel/contract/task-commands.ts";
import { boundLeasesOfTask, findRecord, parseResourceName } from "../../kernel/views.ts";
import { errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import type { HeartbeatTasks } from "../../protocol/answers/queries.ts";
import { replyAnswer } from "../../protocol/answers/reply-json.ts";
import { type CellDone, cellEndCodes } from "../../protocol/resources/cell-link.ts";
import { heartbeatTask } from "../../protocol/tasks/workers.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import { Refused } from "../answering/faults.ts";
import { Results } from "../answering/results.ts";
import { inSlices } from "../answering/slices.ts";
import type { Service } from "../service.ts";

/** A driver may take its time to reset and to probe; one that takes longer is asked again by an operator. */
const resetMsMax = 55_000;

type LeaseChange = RenewLease | TransferLease | DowngradeLease;

export const runLeaseChange = runThrough(changeLease);
export const runReset = runThrough(resetResource);
const runThroughCells = runThrough(beatTask);

/** Hardly any task has something on a cell, and then nothing is waited for. */
export function runTaskHeartbeat(request: RunRequest<HeartbeatTask>): null {
  const { service, operation, command, respond } = request;
  const { tenant, leaseId } = command;
  if (service.engine.peek((state) => boundLeasesOfTask(state, tenant, leaseId)).length > 0)
    return runThroughCells(request);
  service.engine.submit(command, new CommandRun(service, operation, command, respond));
  return null;
}

/** T7: each is decided as if it had come alone. Those of one turn of the loop share a commit. */
export function runTaskHeartbeats({ service, command, input, caller, respond }: RunRequest<HeartbeatTasks>): null {
  const { items } = command;
  const results = new Results(service, items.length, respond);
  inSlices(items.length, (index) => {
    const item = items[index];
    if (item?.ok === true) {
      const one = { service, operation: heartbeatTask, command: item.value, input, caller };
      runTaskHeartbeat({ ...one, respond: (answer) => results.set(index, answer) });
    } else if (item !== undefined) {
      service.counts.refuse(item.fault.code);
      results.set(index, faultAnswer(item.fault));
    }
    return true;
  });
  return null;
}

function runThrough<C extends Command>(decide: (service: Service, command: C) => Promise<Decision>) {
  return ({ service, operation, command, respond }: RunRequest<C>): null => {
    const run = new CommandRun(service, operation, command, respond);
    decide(service, command).then(
      (decided) => run.send(decided),
      (fault: unknown) => run.fail(fault),
    );
    return null;
  };
}

/** Answered when its cell has taken it: from then on the old token, or what it could do, is dead everywhere. */
async function changeLease({ engine, cells }: Service, command: LeaseChange): Promise<Decision> {
  const { tenant, leaseId } = command;
  const before = engine.peek((state) => findRecord(state, tenant, "lease", leaseId));
  // Without its cell the lease would be another here than there; so it stays as it is, and its holder can try again.
  if (before !== undefined && before.cell !== null && !cells.isConnected(tenant, before.cell)) {
    throw notReady(before.resource, `The cell ${before.cell} is not connected; nothing has changed. Try again.`);
  }
  const decided = await engine.command(command);
  const { reply } = decided;
  if (reply.type !== "lease" || reply.lease.cell === null || isUnchanged(before, reply.lease)) return decided;
  const taken = await cells.awaitTaken(reply.lease);
  switch (taken.type) {
    case "taken": {
      if (reply.lease.state !== "BINDING") return decided;
      // It was held, and is set up again (L9): the answer has it as it is now, with its coordinate.
      const lease = await engine.ask((state) => findRecord(state, tenant, "lease", leaseId));
      return lease === undefined ? decided : { ...decided, reply: { ...reply, lease } };
    }
    case "silent":
      throw notReady(
        reply.lease.resource,
        `The cell ${reply.lease.cell} has not taken the change in time; ask for the lease, and try again.`,
      );
    case "ended": {
      const code = cellEndCodes.find((known) => known === taken.code) ?? "lease_revoked";
      throw new Refused(errorAnswer(code, "The cell has ended the lease; acquire again.", { lease_id: leaseId }));
    }
  }
}

/** T10, G8: it renews what of the task's manifest is bound, so it is answered when their cells have taken that. */
async function beatTask({ engine, cells }: Service, command: HeartbeatTask): Promise<Decision> {
  const { tenant, leaseId } = command;
  const away = engine
    .peek((state) => boundLeasesOfTask(state, tenant, leaseId))
    .find(({ cell }) => cell !== null && !cells.isConnected(tenant, cell));
  if (away !== undefined) {
    throw notReady(away.resource, `The cell ${away.cell} is not connected; nothing has changed. Try again.`);
  }
  const decided = await engine.command(command);
  if (decided.reply.type !== "task_lease") return decided;
  for (const { lease, taken } of await cells.awaitAll(decided.reply.leases)) {
    const { resource, cell, id } = lease;
    if (taken.type === "silent")
      throw notReady(resource, `The cell ${cell} has not taken the change in time; send the heartbeat again.`);
    if (taken.type === "ended")
      throw new Refused(errorAnswer("lease_revoked", `The cell has ended the lease on ${resource}.`, { lease_id: id }));
  }
  return decided;
}

/** A transfer to its own holder, or a downgrade to what it is: no cell gets an update. */
function isUnchanged(before: Lease | undefined, after: Lease): boolean {
  return before?.generation === after.generation && before.predicate === after.predicate;
}

/** The cell resets the resource and probes it, and only what a probe has seen clean is free again. */
async function resetResource(service: Service, command: ResetResource): Promise<Decision> {
  const { engine, cells } = service;
  const { tenant } = command;
  const hosted = await findFencedOfCell(service, command);
  // For an unbound resource the caller's word is the probe; and what is not fenced needs none.
  if (hosted === null) return engine.command({ ...command, probed: false });
  const { cell, resource } = hosted;
  const asked = async (op: "reset" | "probe"): Promise<CellDone | null> => {
    if (!cells.isConnected(tenant, cell)) throw silent(cell, resource);
    return cells.order(tenant, cell, { op, resource });
  };
  for (const op of ["reset", "probe"] as const) {
    const done = await withinTime(asked(op));
    if (done === null) throw silent(cell, resource);
    if (!done.ok || done.clean === false || (op === "probe" && done.clean !== true)) {
      const detail = done.detail === undefined || done.detail === "" ? `The ${op} has not seen it clean.` : done.detail;
      throw new Refused(errorAnswer("reset_failed", detail, { resource, cell }));
    }
  }
  return engine.command({ ...command, probed: true });
}

function findFencedOfCell({ engine }: Service, { tenant, resource }: ResetResource) {
  const name = parseResourceName(resource);
  if ("problem" in name) return null;
  return engine.ask((state) => {
    const record = findRecord(state, tenant, "resource", name.text);
    if (record === undefined || record.cell === null || !record.fenced) return null;
    return { cell: record.cell, resource: record.name };
  });
}

async function withinTime(done: Promise<CellDone | null>): Promise<CellDone | null> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<null>((resolve) => {
    timer = setTimeout(() => resolve(null), resetMsMax);
  });
  return Promise.race([done, late]).finally(() => clearTimeout(timer));
}

function silent(cell: string, resource: string): Refused {
  return notReady(
    resource,
    `The cell ${cell} is not connected, or does not answer; start it, or look at its log, then try again.`,
  );
}

function notReady(resource: string, detail: string): Refused {
  return new Refused(replyAnswer({ type: "paused", reason: "cell_not_ready", detail, resource }, { now: 0 }));
}
