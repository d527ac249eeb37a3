/**
 * Leasehold beside its peers, as users meet them: each through its usual client, in turns on one machine, every
 * acknowledgement durable (but for lock files). Absolute figures depend on the machine; ratios of one run count.
 *
 *   npm run bench:peers [-- --quick] [-- --rounds 5] [-- --only locks|tasks] [-- --cold]
 *
 * All are measured warm: lock cycles after a moment, tasks after as many that do not count. `--cold` leaves the latter out.
 * The full form writes peers.json and peers.svg into the docs. Redis and etcd are Debian's packages; what is not
 * installed is left out, with a line that says so.
 */
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { cpus, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { removeFolder, runLoad, startLeasehold } from "../children.ts";
import { measureFsync } from "../durability.ts";
import { installPeers } from "./clients.ts";
import { judge, type Results, Samples, table } from "./report.ts";
import { type PeerServer, startEtcd, startPostgres, startRedis } from "./servers.ts";
import { drawChart } from "./svg.ts";

const { values: flags } = parseArgs({
  options: {
    quick: { type: "boolean", default: false },
    rounds: { type: "string" },
    only: { type: "string" },
    cold: { type: "boolean", default: false },
  },
});
const rounds = Number(flags.rounds ?? (flags.quick ? 1 : 5));
const seconds = flags.quick ? 1 : 3;
const tasksCount = flags.quick ? 5_000 : 20_000;
const loneCount = flags.quick ? 50 : 200;
/** DBOS takes tasks from its queue once a second; more would only take longer. */
const dbosCount = 500;
const callers = [1, 16, 64, 256];

type StartServer = () => Promise<PeerServer | null>;
interface Peer {
  readonly system: string;
  readonly start: StartServer;
}

const lockPeers: readonly Peer[] = [
  { system: "redis", start: startRedis },
  { system: "postgres", start: startPostgres },
  { system: "etcd", start: startEtcd },
  { system: "leasehold-stream", start: startOurs },
  { system: "leasehold-http", start: startOurs },
  { system: "leasehold-postgres", start: startOursOnPostgres },
  { system: "lockfile", start: () => Promise.resolve({ address: "", stop: () => Promise.resolve() }) },
];
const taskPeers: readonly Peer[] = [
  { system: "bullmq", start: startRedis },
  { system: "graphile", start: startPostgres },
  { system: "dbos", start: startPostgres },
  { system: "leasehold", start: startOurs },
];

installPeers();
const locks = new Samples();
const tasks = new Samples();
const missing = new Set<string>();
for (let round = 1; round <= rounds; round++) {
  console.error(`round ${round} of ${rounds}`);
  if (flags.only !== "tasks") for (const peer of lockPeers) await measured(peer, measureLocks);
  if (flags.only !== "locks") for (const peer of taskPeers) await measured(peer, measureTasks);
}

const results: Results = {
  at: new Date().toISOString(),
  machine: { cores: cpus().length, node: process.version, fsync_ms: Math.round(measureFsync() * 1_000) / 1_000 },
  rounds,
  locks: locks.summary(),
  tasks: tasks.summary(),
};
console.log(table("Lock cycles a second, by callers", results.locks, callers.map(String)));
console.log(table("Tasks", results.tasks, ["added", "worked", "lone_ms"]));
const verdicts = judge(results);
for (const { claim, ratio, bar, isMet } of verdicts) {
  console.log(`${isMet ? "met   " : "MISSED"} ${claim}: ${ratio.toFixed(2)} (bar ${bar})`);
}
if (flags.only === undefined && !flags.quick) writeResults(results);
process.exitCode = verdicts.every(({ isMet }) => isMet) ? 0 : 1;

/** A fresh server for every peer and round: nobody measures with another's load beside it or behind it. */
async function measured(peer: Peer, measure: (peer: Peer, server: PeerServer) => Promise<void>): Promise<void> {
  if (missing.has(peer.system)) return;
  const server = await peer.start();
  if (server === null) {
    missing.add(peer.system);
    return;
  }
  try {
    await measure(peer, server);
  } finally {
    await server.stop();
  }
}

async function measureLocks({ system }: Peer, server: PeerServer): Promise<void> {
  for (const count of callers) {
    const { rate } = await runLoad<{ rate: number }>("peers/locks.ts", system, server.address, count, seconds);
    locks.add(system, String(count), rate);
  }
}

async function measureTasks({ system }: Peer, server: PeerServer): Promise<void> {
  const count = system === "dbos" ? dbosCount : tasksCount;
  const lone = system === "dbos" ? 5 : loneCount;
  interface Measured {
    readonly added: number;
    readonly worked: number;
    readonly loneMs: number;
  }
  const warmUp = flags.cold || system === "dbos" ? 0 : count;
  const args = [system, server.address, count, lone, warmUp];
  const { added, worked, loneMs } = await runLoad<Measured>("peers/tasks.ts", ...args);
  tasks.add(system, "added", added);
  tasks.add(system, "worked", worked);
  tasks.add(system, "lone_ms", loneMs);
}

async function startOurs(): Promise<PeerServer> {
  const { port, dataFolder, stop } = await startLeasehold();
  const stopAndRemove = async (): Promise<void> => {
    await stop();
    removeFolder(dataFolder);
  };
  return { address: String(port), stop: stopAndRemove };
}

/** One server, and the same PostgreSQL with the same settings as that peer has. */
async function startOursOnPostgres(): Promise<PeerServer> {
  const database = await startPostgres();
  const folder = mkdtempSync(join(tmpdir(), "leasehold-bench-"));
  const keyFile = join(folder, "master.key");
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const end = async (): Promise<void> => {
    await database.stop();
    removeFolder(folder);
  };
  const settings = ["--store", database.address, "--master-key-file", keyFile, "--shards", "1"];
  const { port, stop } = await startLeasehold(folder, null, [], settings).catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return { address: String(port), stop: () => stop().then(end) };
}

function writeResults(written: Results): void {
  const docs = join(import.meta.dirname, "../../docs");
  mkdirSync(join(docs, "benchmarks"), { recursive: true });
  writeFileSync(join(docs, "benchmarks/peers.json"), `${JSON.stringify(written, null, 2)}\n`);
  writeFileSync(join(docs, "images/peers.svg"), drawChart(written));
}
