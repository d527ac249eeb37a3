import assert from "node:assert/strict";
import { test } from "node:test";
import { type Acquire, type Command, unstamped } from "../kernel/contract/commands.ts";
import type { StoredRecord } from "../kernel/contract/records.ts";
import { snapshot } from "../kernel/kernel.ts";
import { throwAtChange } from "../kernel/testing/planted-faults.ts";
import { createMemoryDisk, createMemoryStore, type MemoryDisk } from "../store/memory.ts";
import type { Batch, Store } from "../store/store.ts";
import { readRecord } from "./codec/record-text.ts";
import type { Engine } from "./engine.ts";
import { DatabaseUnavailable } from "./engine-types.ts";
import { acquire as acquireOne, asked, register, startEngine } from "./testing/test-engine.ts";

const acquire = (agentId: string, resources: readonly string[], ttlMs = 60_000): Acquire =>
  acquireOne(agentId, "", { intents: resources.map((resource) => ({ predicate: "MUTATES", resource })), ttlMs });

const abort = (agentId: string): Command => ({
  ...asked,
  entropy: unstamped,
  type: "transition_agent",
  agentId,
  to: "ABORTED",
});

async function recovered(engine: Engine): Promise<void> {
  while (!engine.isServing) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** What is in memory, and what the disk would be restored to, in the same form. */
async function memoryAndDisk(engine: Engine, disk: MemoryDisk): Promise<readonly [string[], string[]]> {
  const text = ({ kind, record }: StoredRecord): string => JSON.stringify([kind, record]);
  const held = await engine.ask((state) => snapshot(state).map(text).sort());
  const stored: string[] = [];
  for (const { n, kind, body } of disk.live.values()) {
    if (kind !== "engine" && kind !== "ledger_key") stored.push(text(readRecord(kind, body, n)));
  }
  return [held, stored.sort()];
}

test("S2: when a command makes the kernel throw, memory is dropped, its caller gets 503, and others are served", async () => {
  const { engine, lines, disk } = await startEngine();
  await engine.command(register("a"));
  await engine.command(register("b"));
  await engine.command(acquire("a", ["FILE:/1", "FILE:/2", "FILE:/3"]));
  engine.peek((state) => throwAtChange(state, 3));
  await assert.rejects(engine.command(abort("a")), DatabaseUnavailable);
  await recovered(engine);
  const [held, stored] = await memoryAndDisk(engine, disk);
  assert.deepEqual(held, stored);
  assert.equal(held.filter((line) => line.startsWith('["lease"')).length, 3, "all or nothing: nothing was released");
  assert.equal((await engine.command(acquire("b", ["FILE:/2"]))).reply.type, "died");
  assert.equal((await engine.command(abort("a"))).reply.type, "agent");
  assert.ok(lines.some((line) => line.includes("deciding transition_agent threw")));
  await engine.close();
});

test("S1, S2: what was being committed when the kernel threw is answered by what became of it", async () => {
  const { engine, disk } = await startEngine();
  await engine.command(register("a"));
  let letGo = (): void => undefined;
  disk.beforeCommit = () => new Promise((resolve) => (letGo = resolve));
  const granted = engine.command(acquire("a", ["FILE:/1"]));
  for (let turns = 0; turns < 3; turns++) await new Promise((resolve) => setImmediate(resolve));
  const sameBatch = engine.command(acquire("a", ["FILE:/2"]));
  engine.peek((state) => throwAtChange(state, 1));
  const thrown = engine.command(acquire("a", ["FILE:/3"]));
  await assert.rejects(thrown, DatabaseUnavailable);
  await assert.rejects(sameBatch, DatabaseUnavailable, "its changes were never sent to the disk");
  disk.beforeCommit = null;
  letGo();
  assert.equal((await granted).reply.type, "granted");
  await recovered(engine);
  const [held, stored] = await memoryAndDisk(engine, disk);
  assert.deepEqual(held, stored);
  assert.equal(held.filter((line) => line.startsWith('["lease"')).length, 1);
  await engine.close();
});

test("S2: a deadline that makes the kernel throw again and again is set aside, and everything else is settled", async () => {
  const now = { wall: 1_900_000_000_000, monotonic: 0 };
  const time = { wall: () => now.wall, monotonic: () => now.monotonic };
  const { engine, lines } = await startEngine(createMemoryDisk(), { time });
  await engine.command(register("a"));
  const { reply } = await engine.command(acquire("a", ["FILE:/poison", "FILE:/well"], 1_000));
  const [poison, well] = reply.type === "granted" ? reply.leases : [];
  const poisoned = (): void =>
    engine.peek((state) => {
      const entry = state.tenants.get("default")?.leases.get(poison?.id ?? "");
      if (entry !== undefined) Object.defineProperty(entry, "node", { get: () => assert.fail("a bug of the kernel") });
    });
  poisoned();
  engine.onRecovery(poisoned);
  now.monotonic += 1_000;
  const live = async (): Promise<readonly string[]> =>
    engine.ask((state) => [...(state.tenants.get("default")?.leases.values() ?? [])].map(({ record }) => record.id));
  await assert.rejects(live(), DatabaseUnavailable);
  while (!lines.some((line) => line.includes("it is set aside")))
    await new Promise((resolve) => setTimeout(resolve, 5));
  await recovered(engine);
  assert.deepEqual(await live(), [poison?.id], `${well?.id} has ended`);
  assert.equal((await engine.command(register("b"))).reply.type, "agent");
  assert.ok(lines.some((line) => line.includes(`settling lease ${poison?.id} threw 2 times; it is set aside`)));
  await engine.close();
});

test("S2: a batch that cannot be encoded, and one that the store finds impossible, do not end the service", async () => {
  const disk = createMemoryDisk();
  let mode: "encode" | "commit" | null = null;
  const inner = createMemoryStore(disk);
  const store: Store = Object.create(inner, {
    open: {
      value: async () => {
        assert.ok(disk.owner === null, "it is closed before it is opened again");
        return inner.open();
      },
    },
    load: { value: inner.load.bind(inner) },
    close: { value: inner.close.bind(inner) },
    ledgerHeads: { value: inner.ledgerHeads.bind(inner) },
    commit: {
      value: async (batch: Batch) => {
        if (mode !== "commit") return inner.commit(batch);
        mode = null;
        throw new TypeError("not a fault of the store");
      },
    },
  });
  const { engine, lines } = await startEngine(disk, {
    store,
    encodeEvent: ({ type }) => {
      if (mode !== "encode") return `{"type":"${type}"}`;
      mode = null;
      throw new TypeError("an event that cannot be encoded");
    },
  });
  for (const next of ["encode", "commit"] as const) {
    mode = next;
    await assert.rejects(engine.command(register(next)), DatabaseUnavailable);
    await recovered(engine);
    assert.equal((await engine.command(register(next))).reply.type, "agent");
  }
  assert.equal(lines.filter((line) => line.includes("(S2)")).length, 2);
  await engine.close();
});
