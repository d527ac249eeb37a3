/** Checkpoints that an agent saves by itself, and what is done with them at resume (A2, A5, L8). */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { Client } from "../../src/sdk/client.ts";
import type { DigestFile } from "../../src/sdk/digest.ts";
import { clientFor, serve, until, untilAborted, withCode } from "./harness.ts";

const file = "FILE:/src/auth.ts";
const writes = (resource: string) => ({ predicate: "MUTATES" as const, resource });

function digestFileFor(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-checkpoints-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "a.json");
}

function savedIn(path: string): DigestFile {
  return JSON.parse(readFileSync(path, "utf8")) as DigestFile;
}

async function untilSaved(client: Client, agentId: string, resumePoint: string) {
  return until(async () => {
    const digest = await client.call("get_digest", { agent_id: agentId }).catch(() => null);
    return digest?.resume_point === resumePoint ? digest : null;
  }, `${resumePoint} is saved`);
}

test("A2: an agent with a digest source saves a checkpoint when it gets WAIT, DIE and PAUSED, and when it loses its lease", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  let step = "";
  const digestFile = digestFileFor(t);
  const source = { digest: () => ({ resumePoint: step, context: { step } }) };
  const older = await client.agent({ id: "older", ...source });
  const younger = await client.agent({ id: "younger", digestFile, ...source });

  await younger.withLease(file, async () => {
    step = "waits";
    const waiting = older.withLease(file, () => undefined);
    const { intent_backlog: backlog } = await untilSaved(client, "older", "waits");
    assert.deepEqual(
      backlog.map(({ resource }) => resource),
      [file],
      "what it could not have is its backlog",
    );
    void waiting;
  });

  await older.withLease(file, async () => {
    step = "died";
    await assert.rejects(
      younger.withLease(file, () => undefined, { timeoutMs: 0 }),
      withCode("die"),
    );
    assert.equal(savedIn(digestFile).digest.resume_point, "died");
    await untilSaved(client, "younger", "died");
  });

  await client.call("fence_resource", { resource: "FILE:/fenced", reason: "repair" });
  step = "paused";
  await assert.rejects(
    younger.withLease("FILE:/fenced", () => undefined),
    withCode("paused"),
  );
  await untilSaved(client, "younger", "paused");

  step = "lost";
  const lost = younger.withLease(file, async ({ signal }) => {
    await client.call("revoke", { agent_id: "younger", reason: "enough" });
    await untilAborted(signal);
  });
  await assert.rejects(lost, withCode("lease_lost"));
  await untilSaved(client, "younger", "lost");
});

test("A2: concurrent saves leave one complete file, that of the last call, and no temporary file", async (t) => {
  const { address } = await serve(t);
  const digestFile = digestFileFor(t);
  const client = clientFor(t, address.url);
  const agent = await client.agent({ id: "a", digestFile });
  const context = "x".repeat(50_000);
  await Promise.all(
    Array.from({ length: 20 }, (_, index) => agent.saveDigest({ resumePoint: `step ${index}`, context })),
  );
  assert.deepEqual(readdirSync(join(digestFile, "..")), ["a.json"]);
  assert.equal(savedIn(digestFile).digest.resume_point, "step 19");
  assert.equal((await client.call("get_digest", { agent_id: "a" })).resume_point, "step 19");
});

test("A2: saves of two processes to one file do not share a temporary file", async (t) => {
  const { address } = await serve(t);
  const digestFile = digestFileFor(t);
  // Another program is in the middle of its save, under the name that a process id would give.
  const foreign = `${digestFile}.${process.pid}.tmp`;
  writeFileSync(foreign, "half");
  const agent = await clientFor(t, address.url).agent({ id: "a", digestFile });
  await agent.saveDigest({ resumePoint: "one" });
  assert.equal(readFileSync(foreign, "utf8"), "half");
  assert.equal(savedIn(digestFile).digest.resume_point, "one");
});

test("A2: a digest that only the disk has is given to the server, which judges it", async (t) => {
  const { address } = await serve(t);
  const digestFile = digestFileFor(t);
  const client = clientFor(t, address.url);
  const before = await client.agent({ id: "a", digestFile });
  await before.saveDigest({ resumePoint: "half", assumptions: [{ resource: file, version: "v1" }] });

  // The server's data is new: it knows the agent's name and no checkpoint.
  const { address: empty } = await serve(t);
  const there = clientFor(t, empty.url);
  const resumed = await (await there.agent({ id: "a", digestFile })).resume();
  assert.equal(resumed?.digest.resume_point, "half");
  assert.equal((await there.call("get_digest", { agent_id: "a" })).resume_point, "half", "the server has it again");
});

test("A5: what only the disk assumes is judged against what the server knows", async (t) => {
  const { address } = await serve(t);
  const digestFile = digestFileFor(t);
  const before = await clientFor(t, address.url).agent({ id: "a", digestFile });
  await before.saveDigest({ resumePoint: "half", assumptions: [{ resource: file, version: "v1" }] });
  const { address: changed } = await serve(t);
  const client = clientFor(t, changed.url);
  const agent = await client.agent({ id: "a", digestFile });
  await client.withLease(file, ({ setVersion }) => setVersion(file, "v2"));
  await assert.rejects(agent.resume(), withCode("assumption_failed"));
  assert.deepEqual(readdirSync(join(digestFile, "..")), []);
});

test("A5: another instance, without the file, resumes with the assumptions that were saved", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const before = await client.agent({ id: "a" });
  await before.saveDigest({ resumePoint: "half", assumptions: [{ resource: file, version: "v1" }] });
  await client.withLease(file, ({ setVersion }) => setVersion(file, "v2"));
  const after = await clientFor(t, address.url).agent({ id: "a" });
  await assert.rejects(after.resume(), withCode("assumption_failed"));
});

test("A2: at resume RETRY acquires the backlog again, ABORT ends the unit, and MERGE merges first", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const before = await client.agent({ id: "a" });
  const backlog = { intentBacklog: [writes(file)] };
  const order: string[] = [];

  await before.saveDigest({ resumePoint: "retry", ...backlog });
  const retried = await (await client.agent({ id: "a" })).resumeWork((held, { digest }) => {
    assert.equal(held?.leases[0]?.resource, file);
    return digest.resume_point;
  });
  assert.equal(retried, "retry");

  const merging = await client.agent({ id: "a" });
  await merging.saveDigest({ resumePoint: "merge", resolutionStrategy: "MERGE", ...backlog });
  await client.withLease(file, ({ setVersion }) => setVersion(file, "v2"));
  const again = await client.agent({ id: "a" });
  await assert.rejects(
    again.resumeWork(() => undefined),
    TypeError,
  );
  await again.resumeWork(() => void order.push("work"), {
    merge: ({ observationUpdate }) => {
      order.push(...(observationUpdate?.changes ?? []).map(({ version }) => `merge ${version}`));
    },
  });
  assert.deepEqual(order, ["merge v2", "work"]);

  const aborting = await client.agent({ id: "a" });
  await aborting.saveDigest({ resumePoint: "abort", resolutionStrategy: "ABORT", ...backlog });
  const last = await client.agent({ id: "a" });
  assert.equal(await last.resumeWork(() => "never"), null);
  assert.equal((await client.call("get_agent", { agent_id: "a" })).state, "ABORTED");
});

test("L8: an agent that exists is verified when it is taken up, so that it can work after an announced restart", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const before = await client.agent({ id: "a" });
  await before.call("acquire", { intents: [writes(file)] });
  await before.announceRestart();
  const after = await client.agent({ id: "a" });
  assert.deepEqual(
    after.takenUp.map(({ state, resource }) => ({ state, resource })),
    [{ state: "ACTIVE", resource: file }],
  );
  // Without VERIFY_ALL this is refused with verify_required.
  assert.equal(await after.withLease("FILE:/other", () => "worked"), "worked");
});
