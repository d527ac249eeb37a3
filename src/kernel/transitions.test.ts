/** Walks every table of states against the kernel: each state is brought about, and each move is tried in it. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { type AgentMove, agentTransitions, moveTo } from "./agents/agent-life.ts";
import { limits } from "./contract/limits.ts";
import type { AgentState, Cell, Lease, LeaseState, RequestState } from "./contract/records.ts";
import type { Offer } from "./contract/replies.ts";
import type { Obligation, TaskStatus } from "./contract/task-records.ts";
import { type LeaseMove, leaseTransitions } from "./leases/lease-life.ts";
import type { Transitions } from "./memory/transitions.ts";
import { type RequestMove, requestTransitions } from "./requests/request-states.ts";
import { type CellMove, cellTransitions } from "./resources/cell-states.ts";
import { type ObligationMove, obligationTransitions, type TaskMove, taskTransitions } from "./tasks/task-states.ts";
import { cellActor, createCellWorld } from "./testing/cell-world.ts";
import { createTaskWorld } from "./testing/tasks-world.ts";
import { found } from "./testing/test-world.ts";

/** Something in a kernel that is in a state, and can be made to move. */
interface Scene<Move extends string> {
  state(): string | undefined;
  make(move: Move): void;
}

/** A refused move leaves the state as it was, or lets another move happen: it never leads where it leads elsewhere. */
function walk<State extends string, Move extends string>(
  what: string,
  table: Transitions<State, Move>,
  open: (state: State, move: Move) => Scene<Move>,
): void {
  for (const state of Object.keys(table) as State[]) {
    for (const move of Object.keys(table[state]) as Move[]) {
      const to = table[state][move];
      test(`${what}: ${move} in ${state} ${to === "refused" ? "is refused" : `leads to ${to}`}`, () => {
        const scene = open(state, move);
        assert.equal(scene.state(), state);
        scene.make(move);
        const now = scene.state();
        if (to !== "refused") return assert.equal(now, to);
        const elsewhere = Object.values<Readonly<Record<Move, string>>>(table).map((row) => row[move]);
        assert.ok(now === state || !elsewhere.includes(now ?? ""), `${move} led from ${state} to ${now}`);
      });
    }
  }
}

walk<LeaseState, LeaseMove>("lease", leaseTransitions, (state, move) => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const ends = { RELEASED: "release", EXPIRED: "expire", REVOKED: "revoke" } as const;
  const end = (leaseId: string, by: LeaseMove): void => {
    if (by === "expire") world.pass(limits.ttlMsMin);
    else if (by === "revoke") world.ask({ type: "revoke", target: { leaseId }, reason: "test" });
    else world.ask({ type: "release_lease", actor: world.as("a"), leaseId, version: null });
  };
  const short = { ttlMs: limits.ttlMsMin };
  const bindingPair = (): Lease => {
    const { requestId } = world.waits("a", ["MUTATES GPU:/0", "MUTATES FILE:/x"], short);
    const [gpu = "", file = ""] = found(world.request(requestId), "request").leaseIds;
    // The one that has no cell waits for the other, and ends without a teardown.
    return found(world.lease(move === "revoke" ? file : gpu), "lease");
  };
  const begin = (): Lease => {
    switch (state) {
      case "BINDING":
        return bindingPair();
      case "ACTIVE":
        return move === "close" ? world.active("a", "MUTATES GPU:/0") : world.grant("a", "MUTATES FILE:/x", short);
      case "HELD": {
        const lease =
          move === "close" || move === "rebind"
            ? world.active("a", "MUTATES GPU:/0")
            : world.grant("a", "MUTATES FILE:/x", short);
        world.restart("a");
        world.pass(lease.ttl);
        world.beat("c1");
        return lease;
      }
      case "CLOSING": {
        const lease = bindingPair();
        const gpu = found(
          world.leases().find(({ cell }) => cell !== null),
          "bound lease",
        );
        world.bound(gpu);
        world.collect(`req_${gpu.id.slice(4)}`);
        end(gpu.id, move === "expire" || move === "revoke" ? move : "release");
        return lease === gpu ? lease : gpu;
      }
      case "RELEASED":
      case "EXPIRED":
      case "REVOKED": {
        const lease = world.grant("a", "MUTATES FILE:/x", short);
        end(lease.id, ends[state]);
        return lease;
      }
    }
  };
  const { id: leaseId } = begin();
  return {
    state: () => world.lease(leaseId)?.state ?? world.ended(leaseId).state,
    make(by) {
      const generation = world.lease(leaseId)?.generation ?? 1;
      const report = { cellId: null, leaseId, generation, coordinate: null, reason: null };
      switch (by) {
        case "bind":
          world.ask({ type: "bind_confirmed", ...report });
          return;
        case "rebind":
        case "extend":
          world.verify("a");
          world.ask({ type: "renew_lease", activity: false, actor: world.as("a"), leaseId, generation: null });
          return;
        case "hold":
          world.restart("a");
          world.pass(limits.ttlMsMin);
          if (state !== "ACTIVE") world.pass(limits.heldMs + limits.bindMs);
          return;
        case "close":
          return end(leaseId, "release");
        case "release":
        case "expire":
        case "revoke":
          if (state === "CLOSING") world.ask({ type: "teardown_confirmed", ...report });
          else if (by === "expire") world.pass(limits.heldMs + limits.ttlMsMin);
          else end(leaseId, by);
          return;
      }
    },
  };
});

walk<RequestState, RequestMove>("request", requestTransitions, (state, move) => {
  const world = createCellWorld("old", "young");
  world.enrol("c1", ["GPU:/0"]);
  const isBound = state === "BINDING" || state === "BIND_FAILED" || move === "bind";
  const name = isBound ? "GPU:/0" : "FILE:/x";
  const standsBy = state === "STANDBY" || state === "DIED";
  const [holderId, agentId] = standsBy ? ["old", "young"] : ["young", "old"];
  const holder = isBound ? world.active(holderId, `MUTATES ${name}`) : world.grant(holderId, `MUTATES ${name}`);
  const { requestId } = world[standsBy ? "standsBy" : "waits"](agentId, `MUTATES ${name}`, { key: "k" });
  const free = (): void => {
    if (world.lease(holder.id) === undefined) return;
    world.release(holder.id);
    if (isBound) world.tornDown(holder);
  };
  const leaseOf = (): Lease | undefined => world.lease(world.request(requestId)?.leaseIds[0] ?? "");
  const report = (type: "bind_confirmed" | "bind_failed"): void => {
    const lease = leaseOf();
    if (lease === undefined) return;
    const { id: leaseId, generation } = lease;
    world.ask({ type, cellId: null, leaseId, generation, coordinate: null, reason: null });
  };
  const make = (by: RequestMove): void => {
    switch (by) {
      case "bind":
        return free();
      case "grant":
        free();
        return report("bind_confirmed");
      case "die":
        world.pass(limits.standbyMsMax);
        return;
      case "time_out":
        world.pass(world.request(requestId)?.waitTimeout ?? 0);
        return;
      case "cancel":
        return world.cancel(requestId);
      case "pause":
        world.fence(name);
        return;
      case "fail":
        return report("bind_failed");
    }
  };
  const way: Readonly<Record<RequestState, readonly RequestMove[]>> = {
    WAITING: [],
    STANDBY: [],
    DIED: ["die"],
    BINDING: ["bind"],
    GRANTED: ["grant"],
    TIMED_OUT: ["time_out"],
    CANCELED: ["cancel"],
    PAUSED: ["pause"],
    BIND_FAILED: ["bind", "fail"],
  };
  for (const step of way[state]) make(step);
  return { state: () => world.request(requestId)?.state, make };
});

walk<AgentState, AgentMove>("agent", agentTransitions, (state) => {
  const world = createTaskWorld("a", "b");
  const said = (to: string): void =>
    void world.ask({ type: "transition_agent", actor: world.as("a"), agentId: "a", to });
  const make = (by: AgentMove): void => {
    for (const [to, move] of Object.entries(moveTo)) if (move === by) return said(to);
    if (by === "grant") world.grant("a", "CONSUMES FILE:/x");
    else if (by === "lose") world.revoke({ agentId: "a" });
    else if (by === "replan") {
      world.release(world.grant("b", "MUTATES FILE:/y").id, "v2");
      world.save("a");
      world.resume("a", [{ resource: "FILE:/y", version: "v1" }]);
    } else {
      world.pauseAgent("a");
      world.pauses("a", "MUTATES FILE:/x");
      world.unpauseAgent("a");
    }
  };
  const way: Readonly<Record<AgentState, readonly AgentMove[]>> = {
    PLANNING: [],
    ACQUIRING: ["begin"],
    EXECUTING: ["grant"],
    PAUSED: ["grant", "pause"],
    VERIFYING: ["grant", "verify"],
    COMPLETED: ["grant", "complete"],
    ABORTED: ["abort"],
  };
  for (const step of way[state]) make(step);
  return { state: () => world.agent("a").state, make };
});

walk<Cell["state"], CellMove>("cell", cellTransitions, (state) => {
  const world = createCellWorld("a");
  world.enrol("c1", ["GPU:/0"]);
  const cell = { actor: cellActor("c1"), cellId: "c1", session: "s1" };
  const make = (by: CellMove): void => {
    if (by === "enrol") world.enrol("c1", ["GPU:/0"]);
    else if (by === "hear") world.ask({ type: "cell_heartbeat", ...cell, inventory: null });
    else if (by === "leave") world.ask({ type: "cell_left", ...cell, reason: "test" });
    else world.pass(limits.cellAliveMs);
  };
  if (state === "GONE") make("fall_silent");
  return { state: () => world.cell("c1").state, make };
});

walk<TaskStatus, TaskMove>("task", taskTransitions, (state, move) => {
  const world = createTaskWorld();
  const isTwice = move === "unaccept" || ((move === "offer" || move === "accept") && state !== "queued");
  const taskId = world.create({
    speculative: isTwice,
    maxAttempts: state === "dead" || (move === "die" && state === "accepted") ? 1 : 3,
    maxOffers: move === "die" ? 1 : 3,
    leaseDurationMs: 60_000,
    delayMs: state === "queued" && move === "ready" ? 1_000 : null,
  });
  let offer: Offer | undefined;
  const lose = (): void => void world.pass(60_000);
  switch (state) {
    case "queued":
      if (move !== "succeed" && move !== "fail") break;
      offer = world.start("w.1");
      world.giveBack(offer);
      break;
    case "leased":
      offer = world.offered("w.1");
      break;
    case "accepted":
      offer = world.start("w.1");
      break;
    case "retry_pending":
    case "dead":
      offer = world.start("w.1");
      lose();
      break;
    case "succeeded":
      world.succeed(world.start("w.1"));
      break;
    case "failed":
      world.fail(world.start("w.1"));
      break;
    case "canceled":
      world.cancelTask(taskId);
      break;
  }
  return {
    state: () => world.statusOf(taskId),
    make(by) {
      const held = offer ?? taskId;
      switch (by) {
        case "offer":
          return void world.polls("w.2");
        case "accept": {
          const [second] = isTwice ? world.polls("w.2") : [];
          return void world.ask(world.receipt("accepted", (state === "accepted" ? second : undefined) ?? held));
        }
        case "unaccept":
          if (offer === undefined) return;
          world.polls("w.2");
          world.ask({ type: "revoke", target: { leaseId: offer.lease.id }, reason: "test" });
          return;
        case "requeue":
          if (offer !== undefined) world.ask({ type: "release_task", leaseId: offer.lease.id });
          return;
        case "retry":
          return lose();
        case "ready":
          return void world.pass(limits.taskRequeueMsDefault);
        case "die":
          return lose();
        case "succeed":
          return void world.ask(world.receipt("complete", held, { status: "success" }));
        case "fail": {
          // While nobody has the task, its custodian ends it.
          const custodian = state === "accepted" ? undefined : world.taskIfAlive(taskId)?.obligation?.custodian;
          if (custodian === undefined) return void world.ask(world.receipt("complete", held, { status: "failure" }));
          return void world.ask(world.receipt("complete", taskId, { status: "failure", sourceSystem: custodian }));
        }
        case "cancel":
          return void world.ask({ type: "cancel_task", taskId, reason: null });
        case "redrive":
          return void world.ask({ type: "redrive_task", taskId });
      }
    },
  };
});

walk<Obligation["state"], ObligationMove>("obligation", obligationTransitions, (state, move) => {
  const world = createTaskWorld();
  const isLast = move === "reassign";
  const taskId = world.create({ leaseDurationMs: 60_000, maxOffers: isLast ? 1 : 3, requeueDelayMs: 0 });
  let offer = world.start("w.1");
  const { id } = found(world.task(taskId).obligation, "obligation");
  if (state === "OPEN" && (move === "accept" || isLast)) world.giveBack(offer);
  if (state === "OVERDUE") world.pass(60_000);
  if (state === "CLOSED") world.fail(offer, { retryRequested: true });
  return {
    state() {
      const task = world.tasks().find((one) => one.id === taskId) ?? world.endedTask(taskId);
      return task.obligation?.id === id ? task.obligation.state : "CLOSED";
    },
    make(by) {
      switch (by) {
        case "accept":
          world.pass(1);
          offer = world.start("w.2");
          return;
        case "hand_over":
          return void world.ask({ type: "release_task", leaseId: offer.lease.id });
        case "lapse":
          return void world.pass(60_000);
        case "recover":
          return void world.ask({ type: "recover_obligation", obligationId: id, custodian: "boss", reason: "test" });
        case "reassign":
          world.pass(1);
          world.giveBack(world.offered("w.2"));
          assert.equal(world.statusOf(taskId), "dead");
          assert.equal(world.task(taskId).obligation?.custodian, "delegate.root");
          return;
        case "close":
          return void world.ask(world.receipt("complete", offer, { status: "success" }));
      }
    },
  };
});
