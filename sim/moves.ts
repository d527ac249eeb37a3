/**
 * A move is a command in which numbers stand for names ("the third of the present leases"). So fast-check can draw a
 * list of moves and shrink it, and the kernel, the oracle and a restored kernel can play the same list.
 */
import type { Actor, Command, CommandBase, DeclareResource } from "../src/kernel/contract/commands.ts";
import type { IntentInput } from "../src/kernel/contract/inputs.ts";
import { predicates } from "../src/kernel/contract/predicates.ts";
import { agentStates, type Strategy } from "../src/kernel/contract/records.ts";
import { openPolicy } from "../src/kernel/testing/test-world.ts";

export const verbs = [
  "acquire",
  "heartbeat",
  "heartbeat_all",
  "release_lease",
  "release_all",
  "renew_lease",
  "transfer_lease",
  "downgrade_lease",
  "cancel_request",
  "collect_request",
  "verify_all",
  "restart_agent",
  "register_agent",
  "transition_agent",
  "save_digest",
  "resume_agent",
  "revoke",
  "pause_agent",
  "unpause_agent",
  "fence_resource",
  "reset_resource",
  "withdraw_resource",
  "declare_resource",
  "suspend_tenant",
  "resume_tenant",
  "set_tenant_settings",
  "report_binding",
  "cell_speaks",
] as const;
export type Verb = (typeof verbs)[number];

export interface Move {
  readonly verb: Verb;
  readonly agent: number;
  readonly other: number;
  readonly nth: number;
  readonly intents: readonly {
    readonly name: number;
    readonly predicate: number;
    readonly units: number;
    readonly to: number;
  }[];
  readonly ttl: number;
  readonly wait: number;
  readonly standby: number;
  readonly idle: number;
  readonly key: number;
  readonly who: number;
  readonly flag: boolean;
  readonly clock: ClockMove;
}

/** How far time advances before the command: mostly not at all, often to a deadline, or a millisecond beside it. */
export type ClockMove =
  | { readonly type: "by"; readonly ms: number }
  | { readonly type: "deadline"; readonly off: number };

export interface Board {
  readonly agents: readonly string[];
  readonly names: readonly string[];
  /** The counted resources and their units. */
  readonly capacities: Readonly<Record<string, number>>;
  /** Of those, how long their units take to come back (G15); null: with the lease. */
  readonly refillMs: number | null;
  readonly strategy: Strategy;
  /** The bound resources (G6); the oracle has no cells, so its boards have none. */
  readonly bound: readonly string[];
  /** Whether patterns are acquired with `pick`, which the oracle does not know either. */
  readonly choice: boolean;
}

/** What a move's numbers select from; ids are those of the kernel or oracle that plays the move. */
export interface Targets {
  readonly leases: readonly { readonly id: string; readonly agentId: string; readonly generation: number }[];
  readonly requests: readonly { readonly id: string; readonly agentId: string }[];
  readonly epochOf: (agentId: string) => number;
}

export const operator: Actor = { role: "operator", agentId: null, epoch: null };
export const tenantId = "t1";

const ttls = [null, 100, 1_000, 5_000, 20_000, 60_000, 400_000, 50];
const waits = [null, 0, 500, 5_000, 30_000, 700_000];
const standbys = [0, 0, 0, 400, 6_000, 55_000, 55_000];
const idles = [null, null, null, 2_000, 15_000];
const keys = [null, null, null, "k1", "k2", "k3"];

/** The commands that set the board up. */
export function opening(board: Board): Command[] {
  const asked = { tenant: tenantId, actor: operator, entropy: [1, 2] as const };
  return [
    { ...asked, type: "create_tenant", tenantId },
    { ...asked, ...openPolicy },
    { ...asked, type: "set_tenant_settings", tenantId, settings: { strategy: board.strategy } },
    ...board.names
      .filter((name) => isDeclared(board, name))
      .map(
        (resource): Command => ({
          ...asked,
          type: "declare_resource",
          resource,
          ...declarationOf(board, resource),
        }),
      ),
    ...board.agents.map((agentId): Command => ({ ...asked, type: "register_agent", agentId, labels: null })),
  ];
}

export function commandFor(move: Move, board: Board, known: Targets, entropy: readonly [number, number]): Command {
  const agentId = nth(board.agents, move.agent);
  const lease = known.leases[move.nth % Math.max(1, known.leases.length)] ?? { id: "lse_none", agentId, generation: 1 };
  const request = known.requests[move.nth % Math.max(1, known.requests.length)] ?? { id: "req_none", agentId };
  const named = move.other < 4 ? null : [lease.id];
  const resource = nth(board.names, move.nth);
  const version = move.ttl % 2 === 0 ? null : `v${move.nth % 3}`;
  const self = (id: string) => ({ tenant: tenantId, actor: actorFor(move, board, known, id), entropy });
  const above = { tenant: tenantId, actor: operator, entropy };
  switch (move.verb) {
    case "acquire":
      return {
        ...self(agentId),
        type: "acquire",
        agentId,
        intents: move.intents.map((intent) => intentFor(intent, board)),
        ttlMs: nth(ttls, move.ttl),
        waitTimeoutMs: nth(waits, move.wait),
        standbyMs: nth(standbys, move.standby),
        idleTimeoutMs: nth(idles, move.idle),
        purpose: null,
        tokens: false,
        dryRun: move.flag && move.nth % 4 === 0,
        requestKey: nth(keys, move.key),
      };
    case "heartbeat":
      return { ...self(lease.agentId), type: "heartbeat", leaseId: lease.id, activity: move.flag };
    case "heartbeat_all":
      return { ...self(agentId), type: "heartbeat_all", agentId, leaseIds: named, activity: move.flag };
    case "release_lease":
      return { ...self(lease.agentId), type: "release_lease", leaseId: lease.id, version };
    case "release_all":
      return {
        ...self(agentId),
        type: "release_all",
        agentId,
        leaseIds: named,
        versions: version === null ? null : { [resource]: version },
      };
    case "renew_lease": {
      const generation = move.flag ? null : lease.generation + (move.ttl === 0 ? 1 : 0);
      return { ...self(lease.agentId), type: "renew_lease", activity: false, leaseId: lease.id, generation };
    }
    case "transfer_lease":
      return {
        ...self(lease.agentId),
        type: "transfer_lease",
        leaseId: lease.id,
        toAgentId: nth(board.agents, move.other),
        version,
      };
    case "downgrade_lease":
      return {
        ...self(lease.agentId),
        type: "downgrade_lease",
        leaseId: lease.id,
        predicate: nth(predicates, move.other),
        version,
      };
    case "cancel_request":
      return { ...self(request.agentId), type: move.verb, requestId: request.id };
    case "collect_request": {
      const collect = move.flag ? null : move.nth % 3 === 0;
      return { ...self(request.agentId), type: move.verb, requestId: request.id, collect };
    }
    case "verify_all":
      return { ...self(agentId), type: "verify_all", agentId, leaseIds: named };
    case "restart_agent":
      return { ...self(agentId), type: "restart_agent", agentId };
    case "register_agent":
      return { ...above, type: "register_agent", agentId, labels: null };
    case "transition_agent":
      return { ...self(agentId), type: "transition_agent", agentId, to: nth(agentStates, move.nth) };
    case "save_digest":
      return {
        ...self(agentId),
        type: "save_digest",
        agentId,
        digest: {
          checkpointId: "c1",
          resumePoint: "here",
          context: { note: move.nth },
          intentBacklog: move.intents.map((intent) => intentFor(intent, board)),
          resolutionStrategy: "RETRY",
          assumptions: move.flag ? [] : [{ resource, version: `v${move.nth % 3}` }],
        },
      };
    case "resume_agent":
      return {
        ...self(agentId),
        type: "resume_agent",
        agentId,
        assumptions: move.flag ? [] : [{ resource, version: `v${move.nth % 3}` }],
      };
    case "revoke": {
      const targets = [{ leaseId: lease.id }, { agentId }, { resourcePrefix: resource }];
      return { ...above, type: "revoke", target: nth(targets, move.other), reason: "test" };
    }
    case "pause_agent":
    case "unpause_agent":
      return { ...above, type: move.verb, agentId };
    case "fence_resource":
      return { ...above, type: "fence_resource", resource, reason: "test" };
    case "reset_resource":
      return { ...above, type: "reset_resource", resource, probed: true };
    case "withdraw_resource":
      return { ...above, type: "withdraw_resource", resource, revoke: move.flag };
    case "declare_resource": {
      const { capacity, refillMs, cell } = declarationOf(board, resource);
      return {
        ...above,
        type: "declare_resource",
        refillMs,
        resource,
        capacity: capacity && 1 + (move.other % 4),
        cell,
      };
    }
    case "report_binding": {
      const type = nth(
        ["bind_confirmed", "teardown_confirmed", "bind_failed", "teardown_failed"] as const,
        move.other % 5,
      );
      const { id: leaseId, generation } = lease;
      return { ...above, type, cellId: null, leaseId, generation, coordinate: "here", reason: null };
    }
    case "cell_speaks":
      return cellCommand(move, board, known, above);
    case "suspend_tenant":
    case "resume_tenant":
      return { ...above, type: move.verb, tenantId, reason: "test" };
    case "set_tenant_settings":
      return {
        ...above,
        type: "set_tenant_settings",
        tenantId,
        settings: { strategy: move.flag ? "wait_die" : "wound_wait" },
      };
  }
}

/** The cell's commands and its withdrawal: mostly it enrols and sends heartbeats, so that it is mostly READY. */
function cellCommand(move: Move, board: Board, known: Targets, above: CommandBase): Command {
  const cellId = "cell-1";
  const session = `s${move.ttl % 2}`;
  const inventory = board.bound
    .filter((_, index) => move.idle !== index)
    .map((resource, index) => ({
      resource,
      driver: "tcp",
      capacity: board.capacities[resource] ?? null,
      hardware: move.flag ? ["h100"] : [],
      ready: move.wait !== index,
      fault: null,
      fenced: move.key === 3 + index ? "left behind" : null,
    }));
  const lease = known.leases[move.nth % Math.max(1, known.leases.length)];
  switch (move.nth % 6) {
    case 0:
    case 1: {
      const bindings = known.leases
        .filter((_, index) => index % 3 !== move.key % 3)
        .map(({ id, generation }, index) => {
          const isOver = index % 4 === move.key % 4;
          return { leaseId: id, generation, fence: 0, endedAs: isOver ? "lease_expired" : null };
        });
      return { ...above, type: "enrol_cell", cellId, session, version: null, inventory, bindings };
    }
    case 2:
    case 3:
      return { ...above, type: "cell_heartbeat", cellId, session, inventory: move.flag ? inventory : null };
    case 4: {
      const failure = move.key === 3 ? "it does not die" : null;
      const code = move.flag ? "lease_expired" : "lease_revoked";
      const { id: leaseId, generation } = lease ?? { id: "lse_none", generation: 1 };
      return { ...above, type: "cell_ended", cellId, leaseId, generation, code, failure };
    }
    default:
      if (move.other === 0) return { ...above, type: "withdraw_cell", cellId, revoke: move.flag };
      if (move.other === 1) return { ...above, type: "cell_left", cellId, session, reason: "shut down" };
      return { ...above, type: "readmit_cell", cellId };
  }
}

function isDeclared({ capacities, bound }: Board, name: string): boolean {
  return Object.hasOwn(capacities, name) || bound.includes(name);
}

function declarationOf(
  { capacities, refillMs, bound }: Board,
  name: string,
): Pick<DeclareResource, "capacity" | "refillMs" | "cell"> {
  const capacity = capacities[name] ?? null;
  const isBound = bound.includes(name);
  return { capacity, refillMs: capacity === null || isBound ? null : refillMs, cell: isBound ? "cell-1" : null };
}

/** Mostly the agent itself; sometimes another agent, an earlier instance, or a supervisor. */
function actorFor(move: Move, board: Board, known: Targets, agentId: string): Actor {
  const epoch = known.epochOf(agentId);
  if (move.who === 0) return operator;
  if (move.who === 1) return { role: "agent", agentId, epoch: epoch - 1 };
  const other = nth(board.agents, move.other);
  if (move.who === 2) return { role: "agent", agentId: other, epoch: known.epochOf(other) };
  return { role: "agent", agentId, epoch };
}

function intentFor(intent: Move["intents"][number], board: Board): IntentInput {
  const predicate = nth(predicates, intent.predicate);
  const resource = nth(board.names, intent.name);
  const units = Object.hasOwn(board.capacities, resource) ? intent.units : null;
  const to = predicate === "RENAMES" ? nth(board.names, intent.to) : null;
  const leavesChoice = board.choice && to === null && resource.includes("*") && intent.to > 1;
  return leavesChoice
    ? { predicate, resource, units: intent.units, to, pick: "any" }
    : { predicate, resource, units, to };
}

function nth<T>(list: readonly T[], at: number): T {
  const found = list[at % list.length];
  if (found === undefined) throw new Error("nothing to choose from");
  return found;
}
