import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { DigestFile } from "../../src/sdk/digest.ts";
import { AssumptionFailed } from "../../src/sdk/errors.ts";
import { clientFor, pause, proxyTo, serve, until, withCode } from "./harness.ts";

const file = "FILE:/src/auth.ts";
const writes = (resource: string) => ({ predicate: "MUTATES" as const, resource });

function folderFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-sdk-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

test("legal transitions of an agent succeed, and an illegal one is refused with both states named", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const agent = await client.agent({ id: "a", labels: { model: "small" } });
  assert.equal(agent.state, "PLANNING");
  await assert.rejects(agent.transition("VERIFYING"), withCode("invalid_transition"));
  assert.equal(await agent.transition("ACQUIRING"), "ACQUIRING");
  assert.equal(await agent.transition("ABORTED"), "ABORTED");
  assert.deepEqual((await client.call("get_agent", { agent_id: "a" })).labels, { model: "small" });
});

test("an agent whose process died is resumed from its digest and gets the changes made meanwhile", async (t) => {
  const server = await serve(t);
  const digestFile = join(folderFor(t), "deep", "a.json");
  const client = clientFor(t, server.address.url);
  const before = await client.agent({ id: "a", digestFile });
  await before.saveDigest({
    resumePoint: "tests written",
    context: { branch: "rename" },
    intentBacklog: [writes(file)],
    checkpointId: "step-3",
  });
  await client.withLease(file, ({ setVersion }) => setVersion(file, "v2"));

  const after = await clientFor(t, server.address.url).agent({ id: "a", digestFile });
  assert.equal(after.priorityTimestamp, before.priorityTimestamp);
  const resumed = await after.resume();
  assert.equal(resumed?.digest.resume_point, "tests written");
  assert.deepEqual(resumed?.digest.context, { branch: "rename" });
  assert.deepEqual(
    resumed?.observationUpdate?.changes.map(({ resource, version }) => ({ resource, version })),
    [{ resource: file, version: "v2" }],
  );
  await assert.rejects(before.transition("ACQUIRING"), withCode("stale_epoch"));
  await after.withLease(file, () => undefined);
});

test("a failed assumption drops the digest, on the server and on disk", async (t) => {
  const server = await serve(t);
  const digestFile = join(folderFor(t), "a.json");
  const client = clientFor(t, server.address.url);
  const before = await client.agent({ id: "a", digestFile });
  await before.saveDigest({ resumePoint: "half", assumptions: [{ resource: file, version: "v1" }] });
  await client.withLease(file, ({ setVersion }) => setVersion(file, "v2"));
  const after = await client.agent({ id: "a", digestFile });
  const failed = await after.resume().catch((error: unknown) => error);
  assert.ok(failed instanceof AssumptionFailed, String(failed));
  assert.deepEqual(failed.failed, [{ resource: file, expected: "v1", actual: "v2" }]);
  assert.equal(failed.observationUpdate?.changes.length, 1);
  assert.equal(after.state, "PLANNING");
  assert.equal(await after.resume(), null);
  assert.deepEqual(readdirSync(join(digestFile, "..")), []);
  await after.withLease(file, () => undefined);
});

test("a checkpoint that only the disk has, because the server was down, is the one that is resumed", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const digestFile = join(folderFor(t), "a.json");
  const client = clientFor(t, proxy.url, { retries: 0 });
  const before = await client.agent({ id: "a", digestFile });
  await before.saveDigest({ resumePoint: "one", checkpointId: "1" });
  proxy.hush();
  await assert.rejects(before.saveDigest({ resumePoint: "two", checkpointId: "2" }, { timeoutMs: 50 }));
  proxy.heal();
  const resumed = await (await clientFor(t, proxy.url).agent({ id: "a", digestFile })).resume();
  assert.equal(resumed?.digest.resume_point, "two");
  assert.notEqual(resumed?.observationUpdate, null);
});

test("a newer checkpoint of another instance takes precedence over an older file", async (t) => {
  const server = await serve(t);
  const digestFile = join(folderFor(t), "a.json");
  const client = clientFor(t, server.address.url);
  const here = await client.agent({ id: "a", digestFile });
  await here.saveDigest({ resumePoint: "here", checkpointId: "1" });
  const there = await client.agent({ id: "a" });
  await there.resume();
  await there.saveDigest({ resumePoint: "there", checkpointId: "2" });
  const back = await client.agent({ id: "a", digestFile });
  assert.equal((await back.resume())?.digest.resume_point, "there");
});

test("the file on disk is a complete StateDigest, without temporary files beside it", async (t) => {
  const server = await serve(t);
  const folder = folderFor(t);
  const digestFile = join(folder, "a.json");
  const agent = await clientFor(t, server.address.url).agent({ id: "a", digestFile });
  await Promise.all([agent.saveDigest({ resumePoint: "one" })]);
  await agent.saveDigest({ resumePoint: "two", intentBacklog: [writes(file)] });
  assert.deepEqual(readdirSync(folder), ["a.json"]);
  const saved = JSON.parse(readFileSync(digestFile, "utf8")) as DigestFile;
  assert.equal(saved.version, "1.0");
  assert.deepEqual(saved.identity, {
    agent_id: "a",
    priority_timestamp: agent.priorityTimestamp,
    epoch: agent.epoch,
  });
  assert.deepEqual(saved.recovery, { last_phase: "PLANNING", pending_intents: [writes(file)] });
  assert.ok(!JSON.stringify(saved).includes(agent.token));
  writeFileSync(digestFile, "{}");
  await assert.rejects(agent.resume(), TypeError);
});

test("after an announced restart the leases are verified, revived and kept", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const before = await client.agent({ id: "a" });
  const granted = await before.call("acquire", { intents: [writes(file)], ttl_ms: 2_000 });
  assert.ok(granted.verdict === "GRANTED");
  await before.announceRestart();
  const [{ id } = { id: "" }] = granted.leases;
  await until(
    async () => ((await client.call("get_lease", { lease_id: id })).state === "HELD" ? true : null),
    "its time is up",
  );
  const after = await client.agent({ id: "a" });
  const leases = await after.verifyAll();
  assert.deepEqual(
    leases.map(({ state, resource }) => ({ state, resource })),
    [{ state: "HELD", resource: file }],
  );
  const { leases: revived, lost } = await after.call("heartbeat_all", {});
  assert.equal(revived[0]?.state, "ACTIVE");
  assert.deepEqual(lost, []);
  assert.deepEqual(await after.verifyAll(["lse_nosuch"]), []);
});

test("a restart that a supervisor announces during the work loses no lease", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const agent = await client.agent({ id: "a" });
  await agent.withLease(
    file,
    async ({ assertHeld }) => {
      await client.call("restart_agent", { agent_id: "a" });
      await pause(3_000);
      assertHeld();
    },
    { ttlMs: 2_000 },
  );
});
