import assert from "node:assert/strict";
import { test } from "node:test";
import type { Command } from "../kernel/contract/commands.ts";
import { createMemoryDisk, type MemoryDisk } from "../store/memory.ts";
import { drawEntropy } from "./clock.ts";
import { readLease } from "./codec/record-text.ts";
import { DatabaseUnavailable, ShuttingDown } from "./engine-types.ts";

import { completeReply } from "./history.ts";
import { acquire, asked, grant, register, release, startEngine } from "./testing/test-engine.ts";

/** Lets a test decide when a commit goes through. */
function holdCommits(disk: MemoryDisk) {
  let open: (() => void) | null = null;
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  disk.beforeCommit = () => gate;
  return () => {
    disk.beforeCommit = null;
    open?.();
  };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

test("S1: an answer is given only after what it says is durable, and so is a look at it", async () => {
  const { engine, disk } = await startEngine();
  await engine.command(register("a"));
  const letGo = holdCommits(disk);
  let answered = 0;
  const granted = grant(engine, "a", "FILE:/x").then((lease) => {
    answered++;
    return lease;
  });
  const seen = engine
    .ask((state) => state.tenants.get("default")?.leases.size)
    .then((count) => {
      answered++;
      return count;
    });
  for (let turns = 0; turns < 20; turns++) await turn();
  assert.equal(answered, 0);
  letGo();
  const lease = await granted;
  assert.equal(await seen, 1);
  const stored = [...disk.live.values()].filter(({ kind }) => kind === "lease").map(({ body }) => readLease(body));
  assert.deepEqual(stored, [lease]);
  await engine.close();
});

test("one batch is under way while the next one fills: what arrives meanwhile shares one commit", async () => {
  const { engine, disk } = await startEngine();
  await engine.command(register("a"));
  let commits = 0;
  const letGo = holdCommits(disk);
  const gate = disk.beforeCommit;
  disk.beforeCommit = async (batch) => {
    commits++;
    await gate?.(batch);
  };
  const first = grant(engine, "a", "FILE:/first");
  await turn();
  await turn();
  const rest = Array.from({ length: 50 }, (_, index) => grant(engine, "a", `FILE:/${index}`));
  await turn();
  letGo();
  await first;
  await Promise.all(rest);
  assert.equal(commits, 1, "and the second commit held fifty grants, after the gate was gone");
  await engine.close();
});

test("a lease that begins and ends in one batch is never written as a live one, but history knows it", async () => {
  const { engine, disk } = await startEngine();
  await engine.command(register("a"));
  const letGo = holdCommits(disk);
  const puts: string[] = [];
  const holding = engine.command(register("b"));
  await turn();
  await turn();
  const lease = grant(engine, "a", "FILE:/x");
  const state = engine.peek((one) => one.tenants.get("default"));
  const [entry] = [...(state?.leases.values() ?? [])];
  const released = engine.command(release(entry?.record.id ?? ""));
  letGo();
  disk.beforeCommit = async (batch) => {
    for (const { kind } of batch.puts) puts.push(kind);
  };
  await holding;
  await Promise.all([lease, released]);
  assert.ok(!puts.includes("lease"));
  const [ended] = await engine.store.endedLease("default", [entry?.record.id ?? ""]);
  assert.equal(readLease(ended?.body ?? "").state, "RELEASED");
  await engine.close();
});

for (const fate of ["lost", "stored"] as const) {
  test(`S2: after a commit that failed and was ${fate}, callers fail, memory is dropped, and service goes on from the disk`, async () => {
    const { engine, disk, lines } = await startEngine();
    await engine.command(register("a"));
    const kept = await grant(engine, "a", "FILE:/kept");
    disk.failNextCommit = fate;
    await assert.rejects(grant(engine, "a", "FILE:/x", { requestKey: "k" }), DatabaseUnavailable);
    await assert.rejects(engine.command(register("late")), DatabaseUnavailable);
    while (!engine.isServing) await new Promise((resolve) => setTimeout(resolve, 5));
    const leases = await engine.ask((state) =>
      [...(state.tenants.get("default")?.leases.values() ?? [])].map(({ record }) => record),
    );
    assert.deepEqual(
      leases.filter(({ id }) => id === kept.id),
      [kept],
    );
    assert.equal(leases.length, fate === "stored" ? 2 : 1);
    // The idempotency key settles what became of it: granted once, either way.
    const again = await grant(engine, "a", "FILE:/x", { requestKey: "k" });
    assert.ok(again.fence > kept.fence);
    const count = await engine.ask((state) => state.tenants.get("default")?.leases.size);
    assert.equal(count, 2);
    assert.equal(lines.filter((line) => line.includes("a commit failed")).length, 1);
    await engine.close();
  });
}

test("L7: a restart neither ends a lease nor extends it, and time spent down counts", async () => {
  const disk = createMemoryDisk();
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic };
  const first = await startEngine(disk, { time });
  await first.engine.command(register("a"));
  const short = await grant(first.engine, "a", "FILE:/short", { ttlMs: 5_000 });
  const long = await grant(first.engine, "a", "FILE:/long", { ttlMs: 60_000 });
  await first.engine.close();
  now.wall += 10_000;
  const second = await startEngine(disk, { time });
  const { reply } = await second.engine.command({
    ...asked,
    type: "verify_all",
    agentId: "a",
    leaseIds: null,
    entropy: drawEntropy(),
  });
  assert.deepEqual(reply.type === "leases" ? reply.leases : null, [long]);
  const [ended] = await second.engine.store.endedLease("default", [short.id]);
  assert.equal(readLease(ended?.body ?? "").state, "EXPIRED");
  await second.engine.close();
});

test("L3, L6: what is due is settled by the engine's own timer, and its events are announced in order", async () => {
  const { engine } = await startEngine();
  const types: string[] = [];
  const seqs: number[] = [];
  engine.subscribe((events) => {
    for (const { event, seq } of events) {
      types.push(event.type);
      seqs.push(seq);
    }
  });
  await engine.command(register("old"));
  await engine.command(register("young"));
  await grant(engine, "young", "FILE:/x", { ttlMs: 1_500 });
  const { reply } = await engine.command(acquire("old", "FILE:/x"));
  assert.equal(reply.type, "waiting");
  while (!types.includes("request.granted")) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual(
    types.filter((type) => type.startsWith("lease.") || type.startsWith("request.")),
    ["lease.granted", "request.waiting", "lease.expired", "lease.granted", "request.granted"],
  );
  assert.deepEqual(
    seqs,
    Array.from({ length: seqs.length }, (_, index) => index + 1),
  );
  await engine.close();
});

test("many ends at one instant are settled in slices, and a command that came meanwhile is decided after all of them", async (t) => {
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic };
  const { engine } = await startEngine(createMemoryDisk(), { time });
  t.after(() => engine.close());
  await engine.command(register("a"));
  await engine.command(register("b"));
  const count = 3_000;
  let ended = 0;
  engine.subscribe((events) => {
    for (const { event } of events) if (event.type === "lease.expired") ended++;
  });
  await Promise.all(
    Array.from({ length: count }, (_, index) => grant(engine, "a", `FILE:/${index}`, { ttlMs: 60_000 })),
  );
  now.monotonic += 60_000;
  const { reply } = await engine.command(acquire("b", "FILE:/**", { waitTimeoutMs: 0 }));
  assert.equal(reply.type, "granted");
  assert.equal(ended, count);
});

test("no new work is taken while closing, and what is under way is committed and answered", async () => {
  const { engine, disk } = await startEngine();
  await engine.command(register("a"));
  const letGo = holdCommits(disk);
  const under = grant(engine, "a", "FILE:/x");
  await turn();
  const closing = engine.close();
  await assert.rejects(engine.command(register("b")), ShuttingDown);
  letGo();
  await under;
  await closing;
  assert.equal([...disk.live.values()].filter(({ kind }) => kind === "lease").length, 1);
});

test("L4, L5, L13: a lease that has ended is answered from history, to its own agent and those above", async () => {
  const { engine } = await startEngine();
  await engine.command(register("a"));
  const lease = await grant(engine, "a", "FILE:/x");
  await engine.command(release(lease.id));
  const heartbeat: Command = {
    ...asked,
    type: "heartbeat",
    leaseId: lease.id,
    activity: false,
    entropy: drawEntropy(),
  };
  const answer = async (command: Command) =>
    completeReply(engine.store, command, (await engine.command(command)).reply);
  const codeOf = async (command: Command) => {
    const reply = await answer(command);
    return reply.type === "refused" ? reply.code : reply.type;
  };
  assert.equal(await codeOf(heartbeat), "lease_released");
  assert.equal(await codeOf(release(lease.id)), "lease");
  assert.equal(await codeOf({ ...heartbeat, leaseId: "lse_never" }), "lease_unknown");
  const stranger = { role: "agent", agentId: "b", epoch: 1 } as const;
  assert.equal(await codeOf({ ...heartbeat, actor: stranger }), "not_lease_holder");
  const verify = await answer({
    ...asked,
    type: "verify_all",
    agentId: "a",
    leaseIds: [lease.id, "lse_never"],
    entropy: drawEntropy(),
  });
  assert.deepEqual(verify.type === "leases" ? verify.lost.map(({ lease: ended }) => ended?.state ?? null) : null, [
    "RELEASED",
    null,
  ]);
  await engine.close();
});
