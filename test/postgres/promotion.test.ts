import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import pg from "pg";
import { PostgresServer } from "../../src/store/embedded-postgres.ts";
import { clientOf } from "../server/harness.ts";
import { testCluster, until } from "./cluster-harness.ts";

/** Real PostgreSQL servers: one, and a copy of it that is started as something else. */
const folder = (): string => mkdtempSync(join(tmpdir(), "leasehold-promotion-"));

async function primary(t: TestContext): Promise<PostgresServer> {
  const server = await PostgresServer.start({ folder: folder() });
  t.after(() => server.remove());
  return server;
}

/** The other server's data as it is now, stopped. */
async function copyOf(t: TestContext, original: PostgresServer): Promise<PostgresServer> {
  await original.stop();
  const copy = await PostgresServer.adopt(original.data, { folder: folder() });
  t.after(() => copy.remove());
  await original.resume();
  return copy;
}

async function replicaOf(t: TestContext, original: PostgresServer, name: string): Promise<PostgresServer> {
  const replica = await copyOf(t, original);
  replica.writeFile("standby.signal", "");
  const conninfo = `host=127.0.0.1 port=${original.port} user=postgres application_name=${name}`;
  replica.writeFile("postgresql.auto.conf", `primary_conninfo = '${conninfo}'\n`);
  await replica.resume();
  return replica;
}

/** The same data at another server's address. */
function at(url: string, { port }: PostgresServer): string {
  return Object.assign(new URL(url), { port: String(port) }).href;
}

/** It takes reads before it has ended its recovery. */
async function isPrimary({ url }: PostgresServer): Promise<boolean> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ recovering: boolean }>("SELECT pg_is_in_recovery() AS recovering");
    return rows[0]?.recovering === false;
  } finally {
    await client.end();
  }
}

interface Granted {
  readonly id: string;
  readonly fence: number;
}

async function leasesOf(url: string): Promise<readonly (Granted & { readonly resource: string })[]> {
  return (await clientOf(url).get<{ leases: readonly (Granted & { resource: string })[] }>("/v1/leases")).body.leases;
}

test("L11: after a point-in-time recovery every fence is greater than every one before, and leases are re-issued", async (t) => {
  const original = await primary(t);
  const cluster = await testCluster(t, original.url);
  const before = await cluster.start();
  await clientOf(before.address.url).register("a");
  const kept = await clientOf(before.address.url).grant("a", "FILE:/kept", { ttl_ms: 600_000 });
  await before.close();
  const backup = await copyOf(t, original);
  const between = await cluster.start();
  const lost = await clientOf(between.address.url).grant("a", "FILE:/lost", { ttl_ms: 600_000 });
  await between.close();
  await original.stop("SIGQUIT");
  // It recovers as far as its own log goes, and ends on a new timeline.
  backup.writeFile("recovery.signal", "");
  await backup.resume({ restore_command: "false" });
  await until(() => isPrimary(backup));
  const after = await cluster.start({ store: at(cluster.data.url, backup) });
  await until(() => after.leadership.state === "leading");
  const leases = await leasesOf(after.address.url);
  assert.deepEqual(
    leases.map(({ resource }) => resource),
    ["FILE:/kept"],
  );
  assert.ok((leases[0]?.fence ?? 0) > lost.fence && lost.fence > kept.fence, JSON.stringify({ leases, lost, kept }));
  const next = await clientOf(after.address.url).grant("a", "FILE:/next");
  assert.ok(next.fence > lost.fence);
});

test("L11: an asynchronous replica that is promoted while it is behind loses the tail, and fences are past it", async (t) => {
  const original = await primary(t);
  const cluster = await testCluster(t, original.url);
  const before = await cluster.start();
  const client = clientOf(before.address.url);
  await client.register("a");
  await client.grant("a", "FILE:/kept", { ttl_ms: 600_000 });
  await before.close();
  const replica = await replicaOf(t, original, "async");
  await replica.stop();
  const between = await cluster.start();
  const lost = await clientOf(between.address.url).grant("a", "FILE:/lost", { ttl_ms: 600_000 });
  // The leader itself sees the database go, and another one come back in its place.
  await original.stop("SIGQUIT");
  await between.close();
  replica.writeFile("postgresql.auto.conf", "");
  await replica.resume();
  replica.promote();
  const after = await cluster.start({ store: at(cluster.data.url, replica) });
  await until(() => after.leadership.state === "leading");
  assert.deepEqual(
    (await leasesOf(after.address.url)).map(({ resource }) => resource),
    ["FILE:/kept"],
  );
  assert.ok((await clientOf(after.address.url).grant("a", "FILE:/lost")).fence > lost.fence);
});

test("S1: a synchronous replica that is promoted has everything that was acknowledged", async (t) => {
  const original = await primary(t);
  const cluster = await testCluster(t, original.url);
  const first = await cluster.start();
  await clientOf(first.address.url).register("a");
  await first.close();
  const replica = await replicaOf(t, original, "sync");
  await original.stop();
  await original.resume({ synchronous_standby_names: "sync" });
  const { query } = cluster.data;
  const streaming = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
  await until(async () => (await query(streaming)).length === 1);
  const second = await cluster.start();
  const acknowledged: string[] = [];
  const client = clientOf(second.address.url);
  const asking = (async () => {
    for (let n = 0; ; n++) acknowledged.push((await client.grant("a", `FILE:/${n}`, { ttl_ms: 600_000 })).resource);
  })().catch(() => undefined);
  await until(() => acknowledged.length >= 25);
  await original.stop("SIGQUIT");
  await second.close();
  await asking;
  replica.promote();
  const third = await cluster.start({ store: at(cluster.data.url, replica) });
  await until(() => third.leadership.state === "leading");
  const found = new Set((await leasesOf(third.address.url)).map(({ resource }) => resource));
  assert.deepEqual(
    acknowledged.filter((resource) => !found.has(resource)),
    [],
  );
});
