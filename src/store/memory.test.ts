import assert from "node:assert/strict";
import { test } from "node:test";
import { batch, liveRows, row } from "./contract-fixture.ts";
import { StoreFault } from "./faults.ts";
import { createMemoryDisk, createMemoryStore } from "./memory.ts";

for (const fate of ["lost", "stored"] as const) {
  test(`a commit that fails may be ${fate}; either way the store must be reopened (S2)`, async () => {
    const disk = createMemoryDisk();
    const store = createMemoryStore(disk);
    await store.open();
    await store.commit(batch({ now: 1, puts: [row(1)] }));
    disk.failNextCommit = fate;
    const failing = store.commit(batch({ now: 2, puts: [row(2)] }));
    const behind = store.commit(batch({ now: 3, puts: [row(3)] }));
    await assert.rejects(failing, StoreFault);
    await assert.rejects(behind, StoreFault);
    await assert.rejects(store.earliestSeq(), StoreFault);
    const { now, epoch } = await store.open();
    assert.deepEqual({ now, epoch }, fate === "stored" ? { now: 2, epoch: 2 } : { now: 1, epoch: 2 });
    assert.deepEqual(await liveRows(store), fate === "stored" ? [row(1), row(2)] : [row(1)]);
  });
}

test("what a killed process had in flight does not reach the disk once another has opened it", async () => {
  const disk = createMemoryDisk();
  const killed = createMemoryStore(disk);
  await killed.open();
  let goOn = (): void => {};
  disk.beforeCommit = () => new Promise((resolve) => (goOn = resolve));
  const underWay = killed.commit(batch({ now: 1, puts: [row(1)] }));
  await Promise.resolve();
  disk.beforeCommit = null;
  disk.owner = null;
  const next = createMemoryStore(disk);
  await next.open();
  goOn();
  await assert.rejects(underWay, { code: "stale_epoch" });
  assert.deepEqual(await liveRows(next), []);
});
