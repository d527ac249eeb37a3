/**
 * What the control plane tells a cell to do, done, and the answer. Commands are begun in the order in which they came
 * and end in any: a bind that takes its time holds up no teardown of another lease.
 */

import { type CellDo, type CellDone, type CellLinkLease, linkReason } from "../protocol/resources/cell-link.ts";
import type { CellLease } from "./binding.ts";
import type { CellCore } from "./core.ts";
import { CellFailure, reasonOf } from "./failure.ts";

export async function execute(core: CellCore, command: CellDo): Promise<CellDone> {
  const { seq } = command;
  try {
    return { type: "done", seq, ok: true, ...(await perform(core, command)) };
  } catch (error) {
    // What a driver threw and the core did not convert is a failure of the step itself.
    const step = command.op === "update" ? "bind" : command.op;
    const code = error instanceof CellFailure ? error.code : `${step}_failed`;
    return { type: "done", seq, ok: false, code, detail: linkReason(reasonOf(error)) };
  }
}

type Result = Omit<Extract<CellDone, { ok: true }>, "type" | "seq" | "ok">;

async function perform(core: CellCore, command: CellDo): Promise<Result> {
  // Every command waits for the same step, so that none that came later acts before one that came earlier.
  await core.start();
  switch (command.op) {
    case "bind":
      return await core.bind(leaseOf(command.lease), command.lease.ttl_ms);
    case "update":
      return await core.renew(leaseOf(command.lease));
    case "teardown":
      await core.teardown(command.lease_id, command.code);
      return {};
    case "reset":
    case "probe": {
      const { clean, detail } = await core[command.op](command.resource);
      return { clean, detail: linkReason(detail) };
    }
  }
}

function leaseOf({ expires_at: expiresAt, ttl_ms: _ttlMs, ...lease }: CellLinkLease): CellLease {
  return { ...lease, expiresAt };
}
