/** Receipts about tasks of other systems (R1): of custodians, of those that are none, repeated, and while it is off. */
import type { Actor } from "../../src/kernel/contract/commands.ts";
import type { ReceiptInput } from "../../src/kernel/contract/task-commands.ts";
import type { ForeignObligation } from "../../src/kernel/contract/task-records.ts";
import { count } from "../counters.ts";
import { foreignPrefix } from "../invariants/foreign.ts";
import { send } from "../send.ts";
import { actorOf, entropyOf, operator, type SimTenant, supervisor, type World, workerActor } from "../world.ts";
import { blankReceipt } from "./inputs.ts";

export function foreignTurn(world: World, tenant: SimTenant): void {
  const { random, store } = world;
  const asked = { tenant: tenant.id, entropy: entropyOf(world) };
  const { settings, quotas } = store.tenant.get(tenant.id) ?? {};
  if (random.chance(settings?.foreignReceipts === true ? 0.04 : 0.6)) {
    const foreignReceipts = settings?.foreignReceipts !== true;
    send(world, {
      ...asked,
      actor: operator,
      type: "set_tenant_settings",
      tenantId: tenant.id,
      settings: { foreignReceipts },
    });
  }
  if (random.chance(0.2)) {
    const foreignObligationsMax = quotas?.foreignObligationsMax === 1 ? 100 : 1;
    send(world, {
      ...asked,
      actor: operator,
      type: "set_tenant_quotas",
      tenantId: tenant.id,
      quotas: { foreignObligationsMax },
    });
  }
  const open = [...store.foreign_obligation.values()].filter((one) => one.tenant === tenant.id);
  const one = open.length > 0 && random.chance(0.6) ? random.pick(open) : null;
  const writer = random.chance(0.6) && one !== null ? custodianIn(world, tenant, one) : anybody(world, tenant);
  const taskId = one?.taskId ?? `${foreignPrefix}${random.below(8)}`;
  const receipt = { ...receiptFor(world, taskId, one), sourceSystem: writer.name };
  const reply = send(world, {
    ...asked,
    actor: writer.actor,
    type: "submit_receipt",
    receipt,
    unowned: random.chance(0.9),
  });
  if (reply.type === "receipt") count(world.counters, `R1 receipt about another's task: ${reply.receipt.phase}`);
  if (reply.type === "refused" && reply.quota === "foreign_obligations_max")
    count(world.counters, "R8 no more foreign obligations");
  if (reply.type === "refused" && reply.code === "forbidden") count(world.counters, "R7 not its custodian");
}

interface Writer {
  readonly name: string | null;
  readonly actor: Actor;
}

/** The one that answers for it, with its own credential where it has one. */
function custodianIn({ random }: World, tenant: SimTenant, { obligation, acceptedBy }: ForeignObligation): Writer {
  const name = random.chance(0.3) && acceptedBy !== null ? acceptedBy : obligation.custodian;
  const worker = tenant.workers.find(({ id }) => id === name);
  const agent = tenant.agents.find(({ id }) => id === name);
  if (worker !== undefined) return { name, actor: workerActor(worker) };
  return { name, actor: agent === undefined ? supervisor : actorOf(agent) };
}

function anybody({ random }: World, { workers, agents }: SimTenant): Writer {
  const kind = random.weighted({ worker: 5, agent: 3, supervisor: 2, thief: 1 });
  const worker = workers.length > 0 ? random.pick(workers) : undefined;
  const agent = agents.length > 0 ? random.pick(agents) : undefined;
  if (kind === "agent" && agent !== undefined) return { name: random.pick([null, agent.id]), actor: actorOf(agent) };
  if (kind === "supervisor" || worker === undefined)
    return { name: random.pick([null, "elsewhere"]), actor: supervisor };
  const actor = workerActor(worker);
  return { name: worker.id, actor: kind === "thief" ? { ...actor, keyId: "key-3" } : actor };
}

function receiptFor({ random, store }: World, taskId: string, one: ForeignObligation | null): ReceiptInput {
  const phase = random.weighted({ accepted: one === null ? 8 : 2, complete: 4, escalate: 3, progress: 2 });
  const blank = {
    ...blankReceipt(phase, taskId),
    dedupeKey: random.chance(0.3) ? `foreign-${random.below(20)}` : null,
  };
  const ids = [...store.foreign_obligation.values()].map(({ obligation }) => obligation.id);
  const obligationId = random.chance(0.1) ? random.pick([...ids, `given-${random.below(2 ** 30)}`]) : null;
  switch (phase) {
    case "accepted":
      return {
        ...blank,
        obligationId,
        taskSummary: random.chance(0.95) ? "another's work" : null,
        taskType: random.pick([null, "build"]),
        forPrincipal: random.pick([null, null, "builder", "innocent", one?.obligation.custodian ?? null]),
        recipientAi: random.pick([null, "builder", "boss"]),
        fromPrincipal: random.pick([null, "lead"]),
      };
    case "complete":
      return { ...blank, obligationId, status: random.pick(["success", "failure", "canceled", null]) };
    case "escalate":
      return {
        ...blank,
        obligationId,
        escalationClass: "owner",
        escalationReason: random.chance(0.95) ? "not mine" : null,
        escalationTo: random.pick([null, "boss", "builder.0", "builder"]),
      };
    case "progress":
      return { ...blank, outcomeText: "half done" };
  }
}
