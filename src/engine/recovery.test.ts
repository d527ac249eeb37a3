/** What a start adds: after a restore (S6, L11), and after time that nobody measured (L7). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createMemoryDisk, type MemoryDisk } from "../store/memory.ts";
import type { TimeSources } from "./clock.ts";
import { readLease } from "./codec/record-text.ts";
import { grant, openEngine, register, startEngine } from "./testing/test-engine.ts";

test("L7: after a restart with a wall clock that was set back, time goes on from the stored one, and it is said", async () => {
  const disk = createMemoryDisk();
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic };
  const first = await startEngine(disk, { time });
  await first.engine.command(register("a"));
  await first.engine.close();
  now.wall -= 3_600_000;
  const second = await startEngine(disk, { time });
  assert.ok(second.engine.now() >= 1_900_000_000_000);
  assert.ok(second.lines.some((line) => line.includes("behind the stored time")));
  await second.engine.close();
});

/** What a backup of it holds, restored into a fresh folder. */
function restoredFrom(disk: MemoryDisk, restoredAt: number): MemoryDisk {
  const { live, events, ended, ledger, epoch, restores, position } = disk;
  const copy = { live: new Map(live), events: [...events], ended: [...ended], ledger: structuredClone(ledger) };
  return { ...createMemoryDisk(), ...copy, epoch, position, restores: restores + 1, restoredAt };
}

test("S6, L11: one backup restored twice into fresh folders never repeats a fence or an event number", async () => {
  const disk = createMemoryDisk();
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic };
  const first = await startEngine(disk, { time });
  await first.engine.command(register("a"));
  const before = await grant(first.engine, "a", "FILE:/x", { ttlMs: 300_000 });
  const { secret } = first.engine;
  const backup = restoredFrom(disk, 0);
  let fence = (await grant(first.engine, "a", "FILE:/lost")).fence;
  let { lastSeq } = first.engine;
  await first.engine.close();
  const secrets = new Set([secret]);
  for (let restore = 0; restore < 3; restore++) {
    now.wall += 1_000;
    const fresh = { ...restoredFrom(backup, now.wall), restores: 1 };
    const { engine } = await startEngine(fresh, { time });
    const [row] = [...fresh.live.values()].filter(({ kind }) => kind === "lease");
    const lease = readLease(row?.body ?? "");
    assert.equal(lease.id, before.id);
    assert.equal(lease.generation, before.generation + 1, "re-issued in the first commit");
    assert.ok(lease.fence > fence, "beyond every fence of every history");
    assert.ok(engine.lastSeq > lastSeq + 1_000, "event numbers jump");
    assert.ok(!secrets.has(engine.secret), "older tokens are stale");
    secrets.add(engine.secret);
    fence = (await grant(engine, "a", "FILE:/y")).fence;
    assert.ok(fence > lease.fence);
    ({ lastSeq } = engine);
    await engine.close();
    const again = await startEngine(fresh, { time });
    assert.equal((await grant(again.engine, "a", "FILE:/z")).fence, fence + 1, "once is enough");
    assert.equal(again.engine.secret, engine.secret);
    fence++;
    ({ lastSeq } = again.engine);
    await again.engine.close();
  }
});

function machine(wall: number, id = "boot-1") {
  const now = { wall, monotonic: 0, boot: 50_000, id };
  const time = (): TimeSources => ({
    wall: () => now.wall,
    monotonic: () => now.monotonic,
    boot: { id: now.id, monotonic: () => now.boot },
  });
  return { now, time };
}

test("L7: a lease keeps its end over a restart within one boot, with the wall clock an hour ahead or behind", async () => {
  for (const step of [3_600_000, -3_600_000]) {
    const disk = createMemoryDisk();
    const { now, time } = machine(1_900_000_000_000);
    const first = await startEngine(disk, { time: time() });
    await first.engine.command(register("a"));
    const { id, expiresAt } = await grant(first.engine, "a", "FILE:/x", { ttlMs: 60_000 });
    disk.owner = null;
    now.wall += step;
    now.boot += 20_000;
    const second = await startEngine(disk, { time: time() });
    assert.equal(second.engine.now(), expiresAt - 40_000, "the time spent down counts, the wall clock does not");
    assert.ok(second.engine.peek((state) => state.tenants.get("default")?.leases.has(id)));
    assert.match(
      second.lines.join(),
      step > 0 ? /3580 s ahead of the service's time/ : /3620 s behind the service's time/,
    );
    await second.engine.close();
    await first.engine.close().catch(() => undefined);
  }
});

test("L7: in another boot a jump far ahead ends leases only on the operator's word; nothing changes until then", async () => {
  const disk = createMemoryDisk();
  const { now, time } = machine(1_900_000_000_000);
  const first = await startEngine(disk, { time: time() });
  await first.engine.command(register("a"));
  const { id } = await grant(first.engine, "a", "FILE:/x", { ttlMs: 60_000 });
  await first.engine.close();
  Object.assign(now, { wall: now.wall + 25 * 3_600_000, boot: 100, id: "boot-2" });
  const before = JSON.stringify([...disk.live]);
  const refused = openEngine(disk, { time: time() });
  await assert.rejects(refused.engine.start(), { name: "ClockJump", message: /25 h ahead.*--accept-clock-jump/ });
  assert.equal(JSON.stringify([...disk.live]), before);
  now.wall -= 24 * 3_600_000;
  const right = await startEngine(disk, { time: time() });
  assert.match(right.lines.join(), /3600 s ahead of the stored time/);
  await right.engine.close();
  Object.assign(now, { wall: now.wall + 90 * 3_600_000, id: "boot-3" });
  const accepted = await startEngine(disk, { time: time(), clockJumpMsMax: Number.POSITIVE_INFINITY });
  const { reply } = await accepted.engine.command(register("b"));
  assert.equal(reply.type, "agent");
  const [ended] = await accepted.engine.store.endedLease("default", [id]);
  assert.equal(readLease(ended?.body ?? "").state, "EXPIRED");
  await accepted.engine.close();
  Object.assign(now, { wall: now.wall + 90 * 3_600_000, id: "boot-4" });
  await (await startEngine(disk, { time: time() })).engine.close();
});

test("L7: the time is stored at least every 5 s while a lease is alive, and not while none is", async () => {
  const disk = createMemoryDisk();
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const timers = new Set<{ readonly at: number; readonly run: () => void }>();
  const setTimeout = (run: () => void, ms: number) => {
    const timer = { at: now.monotonic + ms, run };
    timers.add(timer);
    return { unref() {}, [Symbol.dispose]: () => void timers.delete(timer) };
  };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic, setTimeout } as unknown as TimeSources;
  const { engine } = await startEngine(disk, { time });
  const advance = async (ms: number): Promise<void> => {
    for (const end = now.monotonic + ms; now.monotonic < end; ) {
      now.monotonic += 500;
      for (const timer of [...timers]) if (timer.at <= now.monotonic && timers.delete(timer)) timer.run();
      for (let turn = 0; turn < 4; turn++) await new Promise((resolve) => setImmediate(resolve));
    }
  };
  await engine.command(register("a"));
  const { now: idle } = disk.position;
  await advance(20_000);
  assert.equal(disk.position.now, idle, "nothing is alive, nothing is stored");
  await grant(engine, "a", "FILE:/x", { ttlMs: 300_000 });
  for (let check = 0; check < 12; check++) {
    await advance(2_500);
    assert.ok(engine.now() - disk.position.now <= 5_000, `${engine.now() - disk.position.now} ms behind`);
  }
  await engine.close();
});
