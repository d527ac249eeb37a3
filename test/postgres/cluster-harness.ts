/** Servers of one cluster, in this process or as processes that can be killed and paused. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import type { ClusterServer } from "../../src/server/cluster/start-cluster.ts";
import { type ServerOptions, startServer } from "../../src/server/start.ts";
import { type TestSchema, testSchema } from "../../src/store/testing/postgres-fixture.ts";

export interface TestCluster {
  readonly data: TestSchema;
  readonly masterKeyFile: string;
  start(options?: ServerOptions): Promise<ClusterServer>;
  spawn(flags?: readonly string[]): Promise<ServerProcess>;
}

export interface ServerProcess {
  readonly url: string;
  readonly child: ChildProcess;
}

/** With one shard, except where shards are what is tested. */
export async function testCluster(t: TestContext, base?: string, shards = 1): Promise<TestCluster> {
  const data = await testSchema(base);
  const folder = mkdtempSync(join(tmpdir(), "leasehold-cluster-"));
  const masterKeyFile = join(folder, "master.key");
  writeFileSync(masterKeyFile, randomBytes(32), { mode: 0o600 });
  const ends: (() => Promise<unknown>)[] = [];
  t.after(async () => {
    for (const end of ends.reverse()) await end();
    await data.drop().catch(() => undefined);
    rmSync(folder, { recursive: true });
  });
  const common = { port: 0, store: data.url, masterKeyFile, data: folder, shutdownTimeoutMs: 1_000, shards };
  return {
    data,
    masterKeyFile,
    start: async (options = {}) => {
      const server = (await startServer({ ...common, leaderLeaseMs: 3_000, ...options })) as ClusterServer;
      ends.push(() => server.close());
      return server;
    },
    spawn: async (flags = []) => {
      const args = [
        "--port",
        "0",
        "--store",
        data.url,
        "--master-key-file",
        masterKeyFile,
        "--data",
        folder,
        "--shards",
        String(shards),
      ];
      const child = spawn(process.execPath, ["src/main.ts", "serve", ...args, ...flags], {
        stdio: ["ignore", "pipe", "ignore"],
      });
      ends.push(async () => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      });
      for await (const line of createInterface({ input: child.stdout })) {
        const url = /listening on (\S+)/.exec(line)?.[1];
        if (url !== undefined) return { url, child };
      }
      throw new Error("the server ended before it listened");
    },
  };
}

export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 20));
}
