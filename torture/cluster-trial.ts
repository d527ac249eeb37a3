/**
 * Two servers on one PostgreSQL, each behind a network of its own, under load. Each round breaks the leader, or the database,
 * in one way, waits until somebody serves again, and compares what clients were promised with what is there.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { PostgresServer } from "../src/store/embedded-postgres.ts";
import { ClusterLoad } from "./cluster-load.ts";
import { TcpProxy } from "./tcp-proxy.ts";

export const clusterFaults = ["kill", "pause", "hold", "deaf", "reset", "forget", "restart", "resign"] as const;
export type ClusterFault = (typeof clusterFaults)[number];

export interface ClusterTrial {
  readonly faults: readonly ClusterFault[];
  /** Live leases that must outlast everything. */
  readonly lasting: number;
  readonly leaseMs: number;
  readonly say?: (line: string) => void;
}

export interface ClusterOutcome {
  readonly violations: readonly string[];
  /** From the fault to the first acknowledged change after it, by round. */
  readonly recoveryMs: readonly number[];
  readonly acknowledged: number;
}

const serveMsMax = 20_000;
/** Before each fault, so that it comes in the middle of work. */
const acknowledgedPerRound = 50;

export async function tryCluster({
  faults,
  lasting,
  leaseMs,
  say = () => undefined,
}: ClusterTrial): Promise<ClusterOutcome> {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-torture-"));
  const postgres = await PostgresServer.start({ folder: mkdtempSync(join(tmpdir(), "leasehold-torture-pg-")) });
  writeFileSync(join(folder, "master.key"), randomBytes(32), { mode: 0o600 });
  const members: Member[] = [];
  let load: ClusterLoad | null = null;
  try {
    for (let n = 0; n < 2; n++)
      members.push(await Member.start(await TcpProxy.start(postgres.port), postgres.url, folder, leaseMs));
    load = new ClusterLoad(members.map(({ port }) => `http://127.0.0.1:${port}`));
    await load.begin(lasting);
    const recoveryMs: number[] = [];
    for (const [round, fault] of faults.entries()) {
      const leader = await leading(members, postgres.url);
      await load.more(acknowledgedPerRound);
      const began = performance.now();
      const repair = await breakDown(fault, leader, postgres, leaseMs);
      const ms = await load.nextAcknowledged(began, serveMsMax);
      await repair();
      recoveryMs.push(ms);
      await load.compare();
      say(`round ${round + 1} (${fault}): serving again after ${Math.round(ms)} ms; ${load.acknowledged} acknowledged`);
    }
    await load.end();
    return { violations: load.violations, recoveryMs, acknowledged: load.acknowledged };
  } finally {
    const ended = load?.end();
    for (const member of members) await member.remove();
    await ended;
    await postgres.remove();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** As the database says. */
async function leading(members: readonly Member[], url: string): Promise<Member> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    for (;;) {
      const { rows } = await client.query<{ url: string }>("SELECT url FROM leasehold.leaders WHERE leads");
      const found = members.find(({ port }) => rows[0]?.url.endsWith(`:${port}`));
      if (found !== undefined) return found;
      await sleep(50);
    }
  } finally {
    await client.end();
  }
}

/** Returns how to make it whole again. */
async function breakDown(
  fault: ClusterFault,
  leader: Member,
  postgres: PostgresServer,
  leaseMs: number,
): Promise<() => Promise<void>> {
  switch (fault) {
    case "kill":
      await leader.stop("SIGKILL");
      return () => leader.run();
    case "resign":
      await leader.stop("SIGTERM");
      return () => leader.run();
    case "pause":
      leader.signal("SIGSTOP");
      return async () => {
        leader.signal("SIGCONT");
        // What it finds when it wakes must not count.
        await sleep(leaseMs / 2);
      };
    case "hold":
    case "deaf":
      leader.proxy.state = fault;
      return async () => {
        leader.proxy.state = "pass";
        leader.proxy.reset();
      };
    case "reset":
    case "forget":
      leader.proxy[fault]();
      return async () => undefined;
    case "restart":
      await postgres.stop("SIGQUIT");
      await postgres.resume();
      return async () => undefined;
  }
}

/** A server process that comes back at the same address. */
class Member {
  readonly proxy: TcpProxy;
  port = 0;
  readonly #flags: readonly string[];
  #child: ChildProcess | null = null;

  private constructor(proxy: TcpProxy, flags: readonly string[]) {
    this.proxy = proxy;
    this.#flags = flags;
  }

  static async start(proxy: TcpProxy, url: string, folder: string, leaseMs: number): Promise<Member> {
    const store = [
      "--store",
      proxy.through(url),
      "--master-key-file",
      join(folder, "master.key"),
      "--data",
      folder,
      "--shards",
      "1",
    ];
    const member = new Member(proxy, [...store, "--leader-lease-ms", String(leaseMs), "--shutdown-timeout-ms", "1000"]);
    await member.run();
    return member;
  }

  async run(): Promise<void> {
    const args = ["src/main.ts", "serve", "--port", String(this.port), ...this.#flags];
    const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
    this.#child = child;
    for await (const line of createInterface({ input: child.stdout })) {
      const port = /listening on http:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1];
      if (port === undefined) continue;
      this.port = Number(port);
      // A pipe that nobody reads fills up, and then the server's log waits.
      child.stdout.resume();
      return;
    }
    throw new Error("a server ended before it listened");
  }

  signal(signal: NodeJS.Signals): void {
    this.#child?.kill(signal);
  }

  async stop(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, "exit");
    child.kill(signal);
    await exited;
  }

  async remove(): Promise<void> {
    this.signal("SIGCONT");
    await this.stop("SIGKILL");
    this.proxy.close();
  }
}
