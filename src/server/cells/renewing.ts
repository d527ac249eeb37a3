/** A renewal of a bound lease is answered when its cell has taken it: then the old token is dead everywhere (G8). */
import type { Decision } from "../../engine/engine-types.ts";
import type { RenewLease } from "../../kernel/contract/commands.ts";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import { verdictAnswer } from "../../protocol/answers/reply-json.ts";
import { cellEndCodes } from "../../protocol/resources/cell-link.ts";
import { CommandRun, type RunRequest } from "../answering/command-run.ts";
import { Refused } from "../answering/faults.ts";
import type { Service } from "../service.ts";
export function runRenew({ service, operation, command, respond }: RunRequest<RenewLease>): null {
  const run = new CommandRun(service, operation, command, respond);
  renewLease(service, command).then(
    (decided) => run.send(decided),
    (fault: unknown) => run.fail(fault),
  );
  return null;
}

async function renewLease({ engine, cells }: Service, command: RenewLease): Promise<Decision> {
  const { tenant, leaseId } = command;
  const before = engine.peek(({ tenants }) => tenants.get(tenant)?.leases.get(leaseId)?.record);
  // Without its cell the lease would be longer here than there; so it stays as it is, and its holder can try again.
  if (before !== undefined && before.cell !== null && !cells.isConnected(tenant, before.cell)) {
    throw notReady(before.resource, `The cell ${before.cell} is not connected; nothing has changed. Try again.`);
  }
  const decided = await engine.command(command);
  const { reply } = decided;
  if (reply.type !== "lease" || reply.lease.cell === null) return decided;
  const taken = await cells.awaitTaken(reply.lease);
  switch (taken.type) {
    case "taken":
      return decided;
    case "silent":
      throw notReady(
        reply.lease.resource,
        `The cell ${reply.lease.cell} has not taken the new generation in time; ask for the lease, and renew it again.`,
      );
    case "ended": {
      const code = cellEndCodes.find((known) => known === taken.code) ?? "lease_revoked";
      throw new Refused(errorAnswer(code, "The cell has ended the lease; acquire again.", { lease_id: leaseId }));
    }
  }
}

function notReady(resource: string, detail: string): Refused {
  return new Refused(verdictAnswer({ type: "paused", reason: "cell_not_ready", detail, resource }, { now: 0 }));
}
