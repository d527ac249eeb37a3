/** `leasehold migrate`: a busy server's data on PostgreSQL, compared through the API. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { startServer } from "../../src/server/start.ts";
import { moveToPostgres } from "../../src/store/moving.ts";
import { compress, joinPacked } from "../../src/store/packed-events.ts";
import { placeOf } from "../../src/store/postgres-connection.ts";
import { testSchema } from "../../src/store/testing/postgres-fixture.ts";
import { start } from "../cli/harness.ts";
import { type Client, clientOf } from "../server/harness.ts";
import { temporaryFolder } from "../temporary-folder.ts";

interface Place {
  readonly from: string;
  readonly shared: string;
  readonly url: string;
  readonly keyFile: string;
  readonly query: (text: string) => Promise<readonly Record<string, unknown>[]>;
  readonly schema: string;
}

async function place(t: TestContext): Promise<Place> {
  const folder = temporaryFolder("leasehold-migrate-");
  const data = await testSchema();
  t.after(() => data.drop());
  const keyFile = join(folder, "master.key");
  writeFileSync(keyFile, randomBytes(32), { mode: 0o600 });
  const shared = join(folder, "shared");
  mkdirSync(shared);
  return { from: join(folder, "data"), shared, url: data.url, keyFile, query: data.query, schema: data.schema };
}

const migrate = ({ from, url, keyFile, shared }: Place) =>
  start(["migrate", "--from", from, "--to", url, "--master-key-file", keyFile, "--data", shared]).ended;

/** What two servers must agree on; times that depend on now are left out. */
const lists = [
  "/v1/leases",
  "/v1/leases?state=ended&limit=500",
  "/v1/agents",
  "/v1/agents/young/digest",
  "/v1/requests",
  "/v1/tasks?limit=500",
  "/v1/receipts?limit=500",
  "/v1/obligations",
  "/v1/audit",
  "/v1/keys",
  "/v1/tenants",
  "/v1/policies",
  "/v1/task-types",
  "/v1/workers",
  "/v1/resources",
] as const;
const moving = /_in_ms|idle_ms|sequence$|^now$|last_used_at|generated_at|^at$/;

async function picture(client: Client, key: string): Promise<Record<string, unknown>> {
  const answers: Record<string, unknown> = {};
  for (const path of lists) {
    for (const tenant of ["default", "acme"]) {
      const { status, text } = await client.get(path, { key, tenant });
      const body: unknown = JSON.parse(text, (name, value: unknown) => (moving.test(name) ? undefined : value));
      answers[`${tenant} ${path}`] = { status, body };
    }
  }
  return answers;
}

async function events(url: string, key: string, count: number): Promise<readonly string[]> {
  const response = await fetch(`${url}/v1/events?since=0`, { headers: { authorization: `Bearer ${key}` } });
  const found: string[] = [];
  let rest = "";
  for await (const chunk of response.body ?? []) {
    rest += Buffer.from(chunk).toString();
    const frames = rest.split("\n\n");
    rest = frames.pop() ?? "";
    found.push(...frames.filter((frame) => frame.includes("id: ")));
    if (found.length >= count) break;
  }
  return found.slice(0, count);
}

/** Some of everything, live and ended. */
async function makeBusy(url: string): Promise<{ key: string; token: string; leaseId: string; fence: number }> {
  const client = clientOf(url);
  const made = await client.post<{ key: string }>("/v1/keys", { role: "operator", label: "ops" });
  assert.equal(made.status, 201, made.text);
  const { key } = made.body;
  const options = { key };
  const must = async (path: string, body: object, more: object = {}): Promise<Record<string, unknown>> => {
    const { status, text, body: answer } = await client.post(path, body, { ...options, ...more });
    assert.ok(status < 300, `${path}: ${text}`);
    return answer as unknown as Record<string, unknown>;
  };
  await must("/v1/tenants", { tenant_id: "acme" });
  const rules = [{ effect: "deny", actions: ["lease"], resources: ["FILE:/secret/**"] }];
  const set = await client.call("PUT", "/v1/policies/p1", { rules }, options);
  assert.ok(set.status < 300, set.text);
  const old = await client.register("old", options);
  const young = await client.register("young", options);
  assert.ok(old.agent_token !== undefined && young.agent_token !== undefined);
  const kept = await client.grant("young", "FILE:/kept", { ttl_ms: 3_600_000 }, options);
  const waits = {
    agent_id: "old",
    intents: [{ predicate: "MUTATES", resource: "FILE:/kept" }],
    wait_timeout_ms: 600_000,
  };
  assert.equal((await client.post("/v1/acquire", waits, options)).status, 202);
  for (let n = 0; n < 60; n++) {
    const lease = await client.grant("young", `FILE:/ended/${n}`, {}, options);
    await must(`/v1/leases/${lease.id}/release`, {});
  }
  const digest = {
    checkpoint_id: "c1",
    resume_point: "half",
    context: { text: "x".repeat(10_000) },
    resolution_strategy: "RETRY",
  };
  const saved = await client.call("PUT", "/v1/agents/young/digest", digest, { key: young.agent_token });
  assert.equal(saved.status, 200, saved.text);
  const artifact = await fetch(`${url}/v1/artifacts`, {
    method: "PUT",
    body: Buffer.alloc(50_000, 7),
    headers: { authorization: `Bearer ${key}` },
  });
  assert.ok(artifact.ok, await artifact.text());
  for (let n = 0; n < 40; n++) {
    for (const tenant of ["default", "acme"]) {
      const task = {
        task_type: "build",
        principal_ai: "planner",
        task_body: `body ${n} \u0001é`,
        inputs: { n },
        idempotency_key: `k${n}`,
      };
      await must("/v1/tasks", task, { tenant });
    }
  }
  // Some are done, some are under way, some are queued.
  for (const tenant of ["default", "acme"]) {
    const { body } = await client.post<{ offers: readonly { lease_id: string }[] }>(
      "/v1/lease",
      { worker_id: "w.1", max_tasks: 10 },
      { key, tenant },
    );
    assert.equal(body.offers.length, 10);
    for (const { lease_id } of body.offers.slice(0, 8)) {
      await must("/v1/receipts", { phase: "accepted", lease_id }, { tenant });
      if (lease_id !== body.offers[7]?.lease_id)
        await must("/v1/receipts", { phase: "complete", status: "success", lease_id }, { tenant });
    }
  }
  return { key, token: young.agent_token, leaseId: kept.id, fence: kept.fence };
}

/** As a server does after a while (S8): the oldest rows become one block. */
function compressEvents(folder: string): void {
  using db = new DatabaseSync(join(folder, "leasehold.sqlite"));
  const rows = db.prepare("SELECT first_seq, count, at, body FROM events ORDER BY first_seq LIMIT 20").all();
  const [first, last] = [rows[0], rows.at(-1)];
  assert.ok(first !== undefined && last !== undefined);
  const count = Number(last["first_seq"]) + Number(last["count"]) - Number(first["first_seq"]);
  const body = compress(joinPacked(rows.map((row) => String(row["body"]))));
  db.prepare("INSERT INTO event_blocks VALUES (?, ?, ?, ?)").run(first["first_seq"] ?? 0, count, last["at"] ?? 0, body);
  db.prepare("DELETE FROM events WHERE first_seq <= ?").run(last["first_seq"] ?? 0);
}

test("L11, R6: a busy server's data moves whole: both sides answer alike, numbers go on, and the ledger verifies on both", async (t) => {
  const at = await place(t);
  const source = await startServer({ port: 0, store: "sqlite", data: at.from });
  t.after(() => source.close());
  const { key, token, leaseId, fence } = await makeBusy(source.address.url);
  const before = await picture(clientOf(source.address.url), key);
  const head = await clientOf(source.address.url).get("/v1/ledger/head", { key });
  const seen = await events(source.address.url, key, 150);
  // While it runs, nothing is moved.
  const running = await migrate(at);
  assert.equal(running.code, 3, running.stderr);
  await source.close();
  compressEvents(at.from);
  const moved = await migrate(at);
  assert.equal(moved.code, 0, moved.stderr);
  assert.match(moved.stdout, /was moved: \d+ live records/);

  const target = await startServer({ port: 0, store: at.url, masterKeyFile: at.keyFile, data: at.shared });
  t.after(() => target.close());
  const client = clientOf(target.address.url);
  assert.deepEqual(await picture(client, key), before);
  assert.deepEqual(await events(target.address.url, key, 150), seen);
  const sameHead = await client.get("/v1/ledger/head", { key });
  assert.deepEqual((sameHead.body as { hash?: string }).hash, (head.body as { hash?: string }).hash);
  assert.equal((await client.post(`/v1/leases/${leaseId}/renew`, {}, { key: token })).status, 200);
  const next = await client.grant("young", "FILE:/next", {}, { key });
  assert.ok(next.fence > fence);
  const [lastSeq] = await at.query(`SELECT last_seq FROM ${at.schema}.shards`);
  assert.ok(Number(lastSeq?.["last_seq"]) > 150);
  const listed = await client.get<{ artifacts: readonly { sha256: string }[] }>("/v1/artifacts", { key });
  for (const { sha256 } of listed.body.artifacts ?? []) {
    assert.equal((await client.get(`/v1/artifacts/${sha256}`, { key })).status, 200);
  }
  assert.ok(existsSync(join(at.shared, "artifacts")));

  const here = await start(["ledger", "verify", "--data", at.from]).ended;
  const there = await start(["ledger", "verify", "--store", at.url]).ended;
  assert.deepEqual([here.code, there.code], [0, 0], here.stderr + there.stderr);
  const ends = (text: string): readonly string[] =>
    text
      .split("\n")
      .filter((line) => line.includes("the last"))
      .toSorted();
  assert.deepEqual(ends(there.stdout), ends(here.stdout));
  assert.ok(ends(here.stdout).length === 2);
  // A changed receipt is found there too.
  await at.query(`UPDATE ${at.schema}.receipts SET body = replace(body, 'planner', 'planned') WHERE sequence = 2`);
  assert.equal((await start(["ledger", "verify", "--store", at.url]).ended).code, 7);
  const audit = await start(["audit", "verify", "--url", target.address.url, "--key", key]).ended;
  assert.equal(audit.code, 0, audit.stderr);

  // Nobody opens the old data again, and it is not moved twice.
  const again = await start(["serve", "--port", "0", "--data", at.from]).ended;
  assert.equal(again.code, 2, again.stderr);
  assert.match(again.stderr, /was moved to .*start the server with --store/);
  assert.match((await migrate(at)).stderr, /was moved to/);
});

test("what is not empty, not reachable, written by a newer version, or not there is refused, and nothing is changed", async (t) => {
  const at = await place(t);
  const source = await startServer({ port: 0, store: "sqlite", data: at.from });
  await clientOf(source.address.url).register("a");
  await source.close();
  const target = await startServer({ port: 0, store: at.url, masterKeyFile: at.keyFile, data: at.shared });
  await clientOf(target.address.url).register("b");
  await target.close();
  const filled = await migrate(at);
  assert.equal(filled.code, 2);
  assert.match(filled.stderr, /is in use \(live.*DROP SCHEMA/);
  const nowhere = await migrate({ ...at, url: "postgres://127.0.0.1:9/x" });
  assert.equal(nowhere.code, 2);
  assert.match(nowhere.stderr, /no PostgreSQL answers/);
  assert.match((await migrate({ ...at, from: at.shared })).stderr, /there is no data in/);
  await at.query(`INSERT INTO ${at.schema}.schema_steps (step) VALUES (999)`);
  const newer = await migrate(at);
  assert.equal(newer.code, 4);
  assert.match(newer.stderr, /newer Leasehold/);
  const same = await startServer({ port: 0, store: "sqlite", data: at.from });
  assert.equal(
    (await clientOf(same.address.url).get<{ agents: readonly unknown[] }>("/v1/agents")).body.agents.length,
    1,
  );
  await same.close();
  const db = new DatabaseSync(join(at.from, "leasehold.sqlite"));
  db.exec("PRAGMA user_version = 999");
  db.close();
  assert.equal((await migrate(at)).code, 4);
});

test("L11: a move that is interrupted is run again, to the same place only, also where only the last word got lost", async (t) => {
  const at = await place(t);
  const source = start(["serve", "--port", "0", "--data", at.from]);
  let url: string | undefined;
  while (url === undefined) {
    await Promise.race([once(source.child.stdout ?? source.child, "data"), source.ended]);
    url = /listening on (\S+)/.exec(source.output.stdout)?.[1];
  }
  await clientOf(url).register("a");
  const lease = await clientOf(url).grant("a", "FILE:/x", { ttl_ms: 600_000 });
  // Killed: what it acknowledged may be in its journal only.
  source.child.kill("SIGKILL");
  await source.ended;
  const options = {
    ...{ folder: at.from, url: at.url, at: Date.now(), secrets: [], onProgress: () => undefined },
    bodyOf: (_kind: string, body: string) => body,
  };
  await assert.rejects(
    moveToPostgres({ ...options, prepare: () => Promise.reject(new Error("no room for artifacts")) }),
    /no room/,
  );
  assert.deepEqual(await at.query(`SELECT count(*)::int AS count FROM ${at.schema}.live`), [{ count: 0 }]);
  const mark = join(at.from, "leasehold.sqlite.moved");
  assert.equal(existsSync(mark), false);
  // A crash in the middle leaves the mark.
  const interrupted = (to = placeOf(at.url), schema = at.schema): void =>
    writeFileSync(mark, JSON.stringify({ id: "m1", state: "moving", to, schema, at: "then" }));
  for (const [to, schema] of [
    ["elsewhere:5432/db", at.schema],
    [placeOf(at.url), "other"],
  ]) {
    interrupted(to, schema);
    const { code, stderr } = await migrate(at);
    assert.equal(code, 2, stderr);
    assert.match(stderr, /may have arrived there: run it again with that --to/);
    assert.deepEqual(await at.query(`SELECT count(*)::int AS count FROM ${at.schema}.live`), [{ count: 0 }]);
    assert.ok(existsSync(mark), "no server may open the folder");
  }
  interrupted();
  assert.match(
    (await start(["serve", "--port", "0", "--data", at.from]).ended).stderr,
    /was interrupted: run `leasehold migrate` again/,
  );
  assert.equal((await migrate(at)).code, 0);
  assert.equal((JSON.parse(readFileSync(mark, "utf8")) as { state: string }).state, "moved");
  // The database has it, and the mark does not say so yet.
  interrupted("elsewhere:5432/db");
  assert.equal((await migrate(at)).code, 0);
  const target = await startServer({ port: 0, store: at.url, masterKeyFile: at.keyFile, data: at.shared });
  t.after(() => target.close());
  const { body } = await clientOf(target.address.url).get<{ leases: readonly { id: string; fence: number }[] }>(
    "/v1/leases",
  );
  assert.deepEqual(
    body.leases.map(({ id, fence }) => [id, fence]),
    [[lease.id, lease.fence]],
  );
  rmSync(mark);
});
