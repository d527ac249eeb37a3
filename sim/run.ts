/** One seed: sets up a world, runs it for N steps, then lets all deadlines pass; every wait must have ended then. */
import { nextDeadline } from "../src/kernel/kernel.ts";
import { agentTurn } from "./agents.ts";
import { cellTurn } from "./cells.ts";
import { passTime } from "./clock.ts";
import type { Counters } from "./counters.ts";
import { count } from "./counters.ts";
import { hostingTurn } from "./hosting.ts";
import { violated } from "./invariants/step.ts";
import { operatorTurn } from "./operators.ts";
import { populate } from "./populate.ts";
import { compareWithStore, restart, restoreBackup } from "./restarts.ts";
import { send, settleInSlices } from "./send.ts";
import { drain } from "./tasks/drain.ts";
import { principalTurn } from "./tasks/principals.ts";
import { compareTwins } from "./tasks/twins.ts";
import { workerTurn } from "./tasks/workers.ts";
import { createWorld, entropyOf, type World } from "./world.ts";

export interface SeedResult {
  readonly seed: number;
  readonly steps: number;
  /** Hash of all commands, replies and events, in order. */
  readonly hash: string;
  readonly failure: string | null;
}

export function runSeed(seed: number, steps: number, counters: Counters): SeedResult {
  const world = createWorld(seed, counters);
  try {
    populate(world);
    for (world.step = 1; world.step <= steps; world.step++) stepOnce(world);
    if (world.hasTasks) drain(world);
    runOut(world);
    return { seed, steps, hash: world.transcript.digest("hex"), failure: null };
  } catch (error) {
    const failure =
      error instanceof Error
        ? error.name === "Violation"
          ? error.message
          : (error.stack ?? error.message)
        : String(error);
    return {
      seed,
      steps,
      hash: "",
      failure: `${failure}\n  the last commands:\n    ${world.recent.slice(-12).map(describe).join("\n    ")}`,
    };
  }
}

/** Undefined fields of a command are left out. */
function describe({ step, now, command }: World["recent"][number]): string {
  const said = JSON.stringify(command, (_, value: unknown) => (value === null ? undefined : value));
  return `step ${step} at ${now}: ${said}`;
}

function stepOnce(world: World): void {
  const { random, size } = world;
  passTime(world);
  if (deliverMail(world)) return;
  const tenant = random.pick(world.tenants);
  const rare = size === "small" ? 1 : 5;
  switch (
    random.weighted({
      agent: (world.hasTasks ? 250 : 850) * rare,
      worker: world.hasTasks ? 600 * rare : 0,
      principal: world.hasTasks ? 160 * rare : 0,
      twins: world.hasTasks && size === "small" ? 12 : 0,
      operator: 60,
      cell: world.jobs.length > 0 ? 200 * rare : 0,
      hosting: world.cells.length > 0 ? 50 * rare : 0,
      settle: 15,
      restart: world.hasTasks ? 20 : 40,
      compare: 12,
    })
  ) {
    case "agent":
      return agentTurn(world, tenant, random.pick(tenant.agents));
    case "worker":
      return workerTurn(world, tenant, random.pick(tenant.workers));
    case "principal":
      return principalTurn(world, tenant);
    case "twins":
      return compareTwins(world);
    case "operator":
      return operatorTurn(world, tenant);
    case "cell":
      return cellTurn(world);
    case "hosting":
      return hostingTurn(world);
    case "settle":
      return settleInSlices(world);
    case "restart":
      return restart(world);
    case "compare":
      compareWithStore(world);
      return restoreBackup(world);
  }
}

function deliverMail(world: World): boolean {
  const at = world.mail.findIndex((letter) => letter.atStep <= world.step);
  const [letter] = at < 0 ? [] : world.mail.splice(at, 1);
  if (letter === undefined) return false;
  // Each delivery draws its own entropy, from which ids are made.
  send(world, { ...letter.command, entropy: entropyOf(world) });
  return true;
}

/** No more commands: everything with a deadline must end, and no request is left waiting (W4). */
function runOut(world: World): void {
  for (let rounds = 0; rounds < 100_000; rounds++) {
    const next = nextDeadline(world.state);
    if (next === Number.POSITIVE_INFINITY) break;
    world.now = Math.max(world.now, next);
    settleInSlices(world);
  }
  compareWithStore(world);
  const waiting = [...world.store.request.values()].find(({ state }) => state === "WAITING" || state === "STANDBY");
  if (waiting !== undefined) violated("W4", "every deadline has passed, but a request still waits", waiting);
  const [lease] = world.store.lease.values();
  if (lease !== undefined) violated("L3", "every deadline has passed, but a lease is still live", lease);
  count(world.counters, "worlds run out");
}
