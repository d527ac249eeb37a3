/** A7: work when the server cannot be reached, the clock jumps, or the program was stopped. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { type TestContext, test } from "node:test";
import type { Clock } from "../../src/keeper/clock.ts";
import { LeaseLost } from "../../src/sdk/lease-lost.ts";
import { startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { clientFor, pause, proxyTo, serve, until, untilAborted } from "./harness.ts";

const file = "FILE:/src/auth.ts";
/** The shortest partition. The long form: LEASEHOLD_PARTITION_MS=30000. */
const partitionMs = Number(process.env["LEASEHOLD_PARTITION_MS"] ?? 0);

test("without contact the work stops before its lease can have ended, and begins again when the server is back", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const near = clientFor(t, server.address.url);
  for (const transport of ["http", "stream"] as const) {
    const client = clientFor(t, proxy.url, { transport });
    const ends: { stoppedAt: number; leaseId: string; reason: string }[] = [];
    const attempt = await client.withLease(
      file,
      async ({ signal, leases, attempt }) => {
        if (attempt > 1) return attempt;
        await pause(300);
        proxy.hush();
        const cutOff = pause(partitionMs);
        const lost = await untilAborted(signal).catch((error: unknown) => error);
        const stoppedAt = Date.now();
        assert.ok(lost instanceof LeaseLost);
        ends.push({ stoppedAt, leaseId: leases[0]?.id ?? "", reason: lost.reason });
        await until(async () => {
          const lease = await near.call("get_lease", { lease_id: ends[0]?.leaseId ?? "" });
          return lease.state === "EXPIRED" ? true : null;
        }, "the lease has ended on the server");
        await cutOff;
        proxy.heal();
        throw lost;
      },
      // The margin is wide, so that a short stall of the machine is not taken for continued work.
      { ttlMs: 3_000, marginMs: 1_000 },
    );
    assert.equal(attempt, 2);
    const [end] = ends;
    assert.ok(end !== undefined);
    assert.equal(end.reason, "no_contact");
    const lease = await near.call("get_lease", { lease_id: end.leaseId });
    assert.ok(end.stoppedAt < Date.parse(lease.expires_at), `${end.stoppedAt} ${lease.expires_at}`);
  }
});

for (const transport of ["http", "stream"] as const) {
  // A client that waits for the time limit of what was lost takes 35 s and more.
  test(`dead connections after a partition are replaced (${transport})`, { timeout: 30_000 }, async (t) => {
    const server = await serve(t);
    const proxy = await proxyTo(t, server);
    const near = clientFor(t, server.address.url);
    const client = clientFor(t, proxy.url, { transport });
    const older = await client.agent({ id: "older" });
    const younger = await near.agent({ id: "younger" });
    let waited: Promise<string> | undefined;
    await younger.withLease(file, async () => {
      const isWaiting = new Promise<void>((resolve) => {
        waited = older.withLease(file, () => "granted", { onWait: () => resolve() });
      });
      await isWaiting;
      await until(() => (server.service.requests.size > 0 ? true : null), "the question is held");
      proxy.hush();
      await pause(100);
      proxy.healNew();
    });
    assert.equal(await waited, "granted");
    const attempt = await older.withLease(
      "FILE:/other",
      async ({ signal, attempt }) => {
        if (attempt > 1) return attempt;
        proxy.hush();
        await untilAborted(signal).catch(() => undefined);
        proxy.healNew();
        throw signal.reason;
      },
      { ttlMs: 2_000 },
    );
    assert.equal(attempt, 2);
  });
}

test("L9: a restart announced for an unreachable agent does not prevent its work from beginning again", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const operator = clientFor(t, server.address.url);
  const agent = await clientFor(t, proxy.url).agent({ id: "a" });
  const attempts = await agent.withLease(
    file,
    async ({ attempt, signal }) => {
      if (attempt > 1) return attempt;
      proxy.hush();
      await operator.call("restart_agent", { agent_id: "a" });
      return await untilAborted(signal).finally(() => proxy.heal());
    },
    { ttlMs: 2_000 },
  );
  assert.equal(attempts, 2);
});

test("work that returns after a partition and finds its agent taken up fails with the reason, and does not begin again", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const other = clientFor(t, server.address.url);
  const agent = await clientFor(t, proxy.url).agent({ id: "a" });
  let attempts = 0;
  const work = agent.withLease(
    file,
    async ({ signal }) => {
      attempts++;
      proxy.hush();
      await other.agent({ id: "a" });
      await untilAborted(signal).finally(() => proxy.heal());
    },
    { ttlMs: 2_000 },
  );
  await assert.rejects(work, (error) => error instanceof LeaseLost && error.reason === "taken_up");
  assert.equal(attempts, 1);
});

test("connections that break repeatedly lose no lease", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  for (const transport of ["http", "stream"] as const) {
    const client = clientFor(t, proxy.url, { transport });
    const breaking = setInterval(() => proxy.cut(), 100);
    t.after(() => clearInterval(breaking));
    const fences = await client.withLease(
      file,
      async ({ assertHeld, leases }) => {
        await pause(3_000);
        assertHeld();
        return leases.map(({ fence }) => fence);
      },
      { ttlMs: 2_000 },
    );
    clearInterval(breaking);
    assert.equal(fences.length, 1);
  }
});

test("a restart of the server during the work loses no lease", async (t) => {
  const disk = createMemoryDisk();
  const first = await startServer({ port: 0, store: createMemoryStore(disk), shutdownTimeoutMs: 200 });
  const client = clientFor(t, first.address.url);
  await client.withLease(
    file,
    async ({ assertHeld, leases, fenceOf }) => {
      await first.close();
      await pause(200);
      const second = await startServer({ port: first.address.port, store: createMemoryStore(disk) });
      t.after(() => second.close());
      await pause(3_500);
      assertHeld();
      assert.equal(fenceOf(file), leases[0]?.fence);
    },
    { ttlMs: 3_000 },
  );
  const { leases } = await client.call("list_leases", { resource: file });
  assert.deepEqual(leases, []);
});

test("work that ended in time succeeds although the server is down at its end", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  const client = clientFor(t, proxy.url);
  const value = await client.withLease(
    file,
    () => {
      proxy.hush();
      return "done";
    },
    { ttlMs: 2_000 },
  );
  assert.equal(value, "done");
});

function clockWithOffsets(hasBoot: boolean) {
  const offsets = { wall: 0, boot: 0 };
  const clock: Clock = {
    monotonic: () => performance.now(),
    wall: () => Date.now() + offsets.wall,
    boot: () => (hasBoot ? performance.now() + offsets.boot : null),
  };
  return { clock, offsets };
}

test("a wall clock that is set by an hour, forwards or backwards, loses no lease", async (t) => {
  const server = await serve(t);
  const stepDuringWork = async (steps: readonly number[], resource: string): Promise<void> => {
    const { clock, offsets } = clockWithOffsets(true);
    const client = clientFor(t, server.address.url, { clock });
    for (const step of steps) {
      await client.withLease(
        resource,
        async ({ assertHeld }) => {
          await pause(50);
          offsets.wall += step;
          await pause(2_500);
          assertHeld();
        },
        { ttlMs: 2_000 },
      );
    }
  };
  await Promise.all([
    stepDuringWork([3_600_000, -3_600_000], "FILE:/forwards"),
    stepDuringWork([-3_600_000, 3_600_000], "FILE:/backwards"),
  ]);
});

test("a machine that slept past its lease stops the work as soon as it wakes up", async (t) => {
  const server = await serve(t);
  for (const hasBoot of [true, false]) {
    const { clock, offsets } = clockWithOffsets(hasBoot);
    const client = clientFor(t, server.address.url, { clock });
    const work = client.withLease(
      file,
      async ({ signal, assertHeld }) => {
        await pause(50);
        offsets.wall += 120_000;
        offsets.boot += 120_000;
        assert.throws(assertHeld, LeaseLost);
        await untilAborted(signal);
      },
      { ttlMs: 60_000, retryLost: "never" },
    );
    await assert.rejects(work, (error) => error instanceof LeaseLost && error.reason === "overslept");
  }
});

test("a program that blocked its event loop past its lease learns of it before it continues", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const work = client.withLease(
    file,
    async ({ signal, assertHeld }) => {
      await pause(20);
      const end = performance.now() + 1_500;
      while (performance.now() < end);
      assert.throws(assertHeld, LeaseLost);
      assert.ok(signal.aborted);
    },
    { ttlMs: 1_000, retryLost: "never" },
  );
  await assert.rejects(work, (error) => error instanceof LeaseLost && error.reason === "overslept");
});

test("a process that was stopped past its lease does no more work under it when it continues", async (t) => {
  const server = await serve(t);
  const client = clientFor(t, server.address.url);
  const child = startHolder(t, server.address.url);
  const said: string[] = [];
  const lines = createInterface({ input: child.stdout ?? process.stdin });
  lines.on("line", (line) => said.push(line));
  await until(() => (said.length >= 3 ? true : null), "it works under its lease");
  child.kill("SIGSTOP");
  // Another agent gets the resource once the lease has expired.
  const fence = await client.withLease("FILE:/pause", async ({ fenceOf }) => {
    const before = said.length;
    child.kill("SIGCONT");
    await until(() => (said.some((line) => line.startsWith("lost")) ? true : null), "it has noticed");
    assert.deepEqual(
      said.slice(before).filter((line) => line.startsWith("work")),
      [],
    );
    return fenceOf("FILE:/pause");
  });
  assert.ok(said.includes("lost overslept"));
  assert.ok(Number(said[0]?.split(" ")[1]) < fence);
  if (child.exitCode === null) await once(child, "exit");
});

function startHolder(t: TestContext, url: string): ChildProcess {
  const child = spawn(process.execPath, [new URL("./holder.ts", import.meta.url).pathname, url], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  t.after(() => child.kill("SIGKILL"));
  return child;
}
