/** Lifting a fence (G7): the cell resets the resource and probes it, and only what a probe has seen clean is free again. */
import type { Decision } from "../../engine/engine-types.ts";
import type { ResetResource } from "../../kernel/contract/commands.ts";
import { parseResourceName } from "../../kernel/views.ts";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { verdictAnswer } from "../../protocol/answers/reply-json.ts";
import type { CellDone } from "../../protocol/resources/cell-link.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import { Refused } from "../answering/faults.ts";
import type { Service } from "../service.ts";

/** A driver may take its time to reset and to look; one that takes longer is asked again by an operator. */
const resetMsMax = 55_000;

export function runReset({ service, operation, command, respond }: RunRequest<ResetResource>): null {
  const run = new CommandRun(service, operation, command, respond);
  resetResource(service, command).then(
    (decided) => run.send(decided),
    (fault: unknown) => run.fail(fault),
  );
  return null;
}

async function resetResource(service: Service, command: ResetResource): Promise<Decision> {
  const { engine, cells } = service;
  const { tenant } = command;
  const hosted = await findFencedOfCell(service, command);
  // For an unbound resource the caller's word is the probe; and what is not fenced needs none.
  if (hosted === null) return engine.command({ ...command, probed: false });
  const { cell, resource } = hosted;
  const asked = async (op: "reset" | "probe"): Promise<CellDone | null> => {
    if (!cells.isConnected(tenant, cell)) throw notReady(cell, resource);
    return cells.order(tenant, cell, { op, resource });
  };
  for (const op of ["reset", "probe"] as const) {
    const done = await withinTime(asked(op));
    if (done === null) throw notReady(cell, resource);
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
  return engine.ask(({ tenants }) => {
    const record = tenants.get(tenant)?.resources.get(name.text)?.record;
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

function notReady(cell: string, resource: string): Refused {
  const detail = `The cell ${cell} is not connected, or does not answer; start it, or look at its log, then try again.`;
  return new Refused(verdictAnswer({ type: "paused", reason: "cell_not_ready", detail, resource }, { now: 0 }));
}
