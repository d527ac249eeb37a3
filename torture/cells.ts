/**
 * Cells under faults: cells are killed, stopped and cut off and the server is killed, at random and at the same time,
 * while holders use their leases continuously. The services behind the cells record every use, and a checker finds use
 * after a lease's end, two holders at once, and grants before the teardown (G6, G7, G11). Memory has no service behind it:
 * its holders read back what is there, and must find nothing that is not their own.
 *
 *   npm run torture:cells [-- --rounds 100 --seed 1]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createRandom, type Random } from "../sim/random.ts";
import { CellChecker, type Kind, type Verdict } from "./cell-checker.ts";
import { learnFromHistory } from "./cell-history.ts";
import { call, hold, type Tally } from "./cell-holders.ts";
import { MemoryService } from "./cell-memory.ts";
import { type CellProcess, spawnCell } from "./cell-process.ts";
import { httpService, processService, type Service, tcpService, udpService } from "./cell-services.ts";
import { openWire, type Wire } from "./cut.ts";
import { freePort } from "./free-port.ts";
import { exitOnSignals, type ServerProcess, spawnServer } from "./server-process.ts";

export interface CellsResult extends Verdict {
  readonly rounds: Readonly<Record<Fault, number>>;
  readonly tally: Tally;
  readonly leases: number;
}

type Fault = "cell killed" | "cell stopped" | "cell cut off" | "server killed";

const cellNames = ["alpha", "beta"] as const;
const holdersPerResource = 2;
/** Every resource must be granted again within this time after the last fault. */
const recoveryMsMax = 60_000;

interface World {
  readonly folder: string;
  readonly port: number;
  readonly url: string;
  readonly random: Random;
  readonly checker: CellChecker;
  readonly tally: Tally;
  readonly rounds: Record<Fault, number>;
  server: ServerProcess;
  isOver: boolean;
  left: number;
}

interface Hosted {
  readonly name: string;
  readonly services: readonly Service[];
  readonly wire: Wire;
  process: CellProcess;
}

export async function tortureCells(
  rounds: number,
  seed: number,
  onRound: (left: number) => void,
): Promise<CellsResult> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-torture-cells-"));
  const random = createRandom(seed);
  const port = await freePort();
  const world: World = {
    folder,
    port,
    url: `http://127.0.0.1:${port}`,
    random,
    checker: new CellChecker(),
    tally: { grants: 0, renewals: 0, releases: 0, refused: 0, resets: 0, fences: 0, answers: {} },
    rounds: { "cell killed": 0, "cell stopped": 0, "cell cut off": 0, "server killed": 0 },
    server: spawnServer(port, join(folder, "data")),
    isOver: false,
    left: rounds,
  };
  await world.server.untilReady();
  const cells = await Promise.all(cellNames.map((name) => startCell(world, name)));
  const services = cells.flatMap((cell) => cell.services);
  try {
    const holders = services.flatMap((service, at) =>
      Array.from({ length: holdersPerResource }, (_, index) =>
        hold(`holder-${at}-${index}`, service, { ...world, isOver: () => world.isOver }),
      ),
    );
    const operator = resetFences(world);
    const lanes = [...cells.map((cell) => cellLane(world, cell, onRound)), serverLane(world, onRound)];
    await Promise.all(lanes);
    await everythingIsFree(world, services);
    world.isOver = true;
    await Promise.all([...holders, operator]);
    for (const service of services) service.collect();
    await learnFromHistory(world.url, world.checker);
  } finally {
    for (const { process: cell, wire } of cells) {
      await cell.kill();
      wire.close();
    }
    for (const service of services) service.close();
    await world.server.kill();
  }
  const verdict = world.checker.judge();
  if (verdict.violations.length === 0) rmSync(folder, { recursive: true, force: true });
  return { ...verdict, rounds: world.rounds, tally: world.tally, leases: world.checker.leases.size };
}

async function startCell(world: World, name: string): Promise<Hosted> {
  const wire = await openWire(world.port);
  const services = [
    await httpService(name, world.checker),
    await tcpService(name, world.checker),
    processService(name, world.folder, world.checker),
    await udpService(name, world.checker),
    new MemoryService(name, world.checker, world.random),
  ];
  const hosted = { name, services, wire, process: spawn(world, name, services, wire) };
  await hosted.process.linked();
  return hosted;
}

function spawn({ folder }: World, name: string, services: readonly Service[], { url }: Wire): CellProcess {
  return spawnCell(
    folder,
    name,
    services.map(({ entry }) => entry),
    url,
  );
}

async function cellLane(world: World, cell: Hosted, onRound: (left: number) => void): Promise<void> {
  const { random, checker } = world;
  while (world.left-- > 0) {
    await isBack(world, cell);
    await sleep(random.between(500, 4_000));
    const fault = random.weighted({ "cell killed": 3, "cell stopped": 3, "cell cut off": 3 });
    // Sometimes longer than the teardown limit, so that resources get fenced too.
    const lastsMs = random.chance(0.12) ? random.between(11_000, 17_000) : random.between(200, 4_500);
    switch (fault) {
      case "cell killed":
        await cell.process.kill();
        for (const service of cell.services) if (service instanceof MemoryService) service.forget();
        await sleep(random.below(lastsMs));
        cell.process = spawn(world, cell.name, cell.services, cell.wire);
        break;
      case "cell stopped": {
        await cell.process.stop();
        const stop = { cell: cell.name, from: Date.now(), to: Number.POSITIVE_INFINITY };
        checker.stops.push(stop);
        await sleep(lastsMs);
        cell.process.goOn();
        stop.to = Date.now();
        break;
      }
      case "cell cut off":
        cell.wire.cut();
        await sleep(lastsMs);
        cell.wire.mend();
        break;
    }
    world.rounds[fault]++;
    onRound(world.left);
  }
}

/** Most faults hit a working cell; one in five comes before it has recovered from the last. */
async function isBack({ url, random }: World, { name }: Hosted): Promise<void> {
  if (random.chance(0.2)) return;
  type Listed = { readonly cells: readonly { readonly cell: string; readonly connected: boolean }[] };
  const end = performance.now() + recoveryMsMax;
  while (performance.now() < end) {
    const listed = await call<Listed>(url, "/v1/cells");
    if (listed?.body.cells?.some(({ cell, connected }) => cell === name && connected)) return;
    await sleep(100);
  }
}

async function serverLane(world: World, onRound: (left: number) => void): Promise<void> {
  const { random } = world;
  while (world.left-- > 0) {
    await sleep(random.between(4_000, 14_000));
    await world.server.kill();
    await sleep(random.below(2_500));
    world.server = spawnServer(world.port, join(world.folder, "data"));
    await world.server.untilReady();
    world.rounds["server killed"]++;
    onRound(world.left);
  }
}

/** An operator resets every fenced resource; the probe decides whether that succeeds. */
async function resetFences(world: World): Promise<void> {
  const seen = new Set<string>();
  while (!world.isOver) {
    await sleep(500);
    type Listed = { readonly resources: readonly { readonly resource: string; readonly fenced_at: string | null }[] };
    const listed = await call<Listed>(world.url, "/v1/resources?state=FENCED&limit=100");
    for (const { resource, fenced_at: at } of listed?.body.resources ?? []) {
      if (!seen.has(`${resource} ${at}`)) world.tally.fences++;
      seen.add(`${resource} ${at}`);
      const reset = await call(world.url, "/v1/resources/reset", { resource });
      if (reset?.status === 200) world.tally.resets++;
    }
  }
}

/** Each resource is granted again when the faults are over. */
async function everythingIsFree({ checker, tally }: World, services: readonly Service[]): Promise<void> {
  const before = tally.grants;
  const since = Date.now();
  const grantedSince = (resource: string): boolean =>
    [...checker.leases.values()].some((lease) => lease.resource === resource && lease.endsAt > since + 1_000);
  const end = performance.now() + recoveryMsMax;
  while (!services.every(({ resource }) => grantedSince(resource)) || tally.grants === before) {
    if (performance.now() > end) {
      const lost = services.filter(({ resource }) => !grantedSince(resource)).map(({ resource }) => resource);
      checker.violations.push(`${lost.join(", ")}: not granted within ${recoveryMsMax} ms after the last fault`);
      return;
    }
    await sleep(100);
  }
}

if (import.meta.main) {
  exitOnSignals();
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "100" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const began = performance.now();
  const seconds = (): number => Math.round((performance.now() - began) / 1_000);
  const result = await tortureCells(Number(values.rounds), Number(values.seed), (left) => {
    if (left % 10 === 0) console.log(`  ${seconds()} s: ${Math.max(0, left)} rounds left`);
  });
  const { rounds, tally, operations, latestMs, inHand, violations, leases } = result;
  const all = Object.values(rounds).reduce((sum, count) => sum + count, 0);
  const kinds = Object.keys(operations) as Kind[];
  console.log(
    [
      `${all} rounds in ${seconds()} s (seed ${values.seed}): ${JSON.stringify(rounds)}`,
      `${tally.grants} grants, ${tally.renewals} renewals, ${tally.releases} releases, ${leases} leases; ${tally.fences} fences, ${tally.resets} resets`,
      ...kinds.map(
        (kind) =>
          `${kind}: ${operations[kind]} operations accepted, the latest ${latestMs[kind]} ms after its lease's end`,
      ),
      `replies to acquire: ${JSON.stringify(tally.answers)}`,
      `${tally.refused} late or stale uses refused; ${inHand} passed on by a cell that was stopped after its check`,
      `${violations.length} violations`,
      ...violations.slice(0, 40).map((line) => `  ${line}`),
    ].join("\n"),
  );
  process.exitCode = violations.length === 0 ? 0 : 1;
}
