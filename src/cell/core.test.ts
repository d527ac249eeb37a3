import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { inspect } from "../token/index.ts";
import { CellClock } from "./clock.ts";
import {
  eventually,
  failsWith,
  makeCell,
  newLease,
  renewed,
  scratch,
  startHttp,
  type TestCell,
} from "./testing/test-cell.ts";

const resource = "THING:/a";
let cells = 0;

/** A cell whose driver logs its calls in a file, and then behaves as the test asks. */
function makeExecCell(
  does: { bind?: string; teardown?: string; probe?: string; reset?: string },
  settings: object = {},
): TestCell & { calls: () => string[] } {
  const notes = join(scratch, `notes-${cells++}`);
  const command = (event: string, act = "true"): string[] => [
    "/bin/sh",
    "-c",
    `echo ${event} $LEASEHOLD_LEASE >> ${notes}; ${act}`,
  ];
  const options = {
    bind: command("bind", does.bind ?? "echo thing://1"),
    teardown: command("teardown", does.teardown),
    probe: command("probe", does.probe),
    reset: command("reset", does.reset),
  };
  const cell = makeCell([{ resource, driver: "exec", capacity: 2, options }], { settings: { ...settings } });
  return { ...cell, calls: () => (existsSync(notes) ? readFileSync(notes, "utf8").trim().split("\n") : []) };
}

test("G3: a bound lease has a coordinate, and a token of its cell, tenant, generation, fence and predicate", async () => {
  const { core } = makeExecCell({});
  const lease = newLease(resource);
  const { coordinate, token } = await core.bind(lease);
  assert.equal(coordinate, "thing://1");
  const shown = inspect(token);
  assert(!("code" in shown));
  const { tenant, id, generation, fence, expiresAt, predicate } = lease;
  const { keyId: _keyId, cell: _cell, ...claims } = shown.claims;
  assert.deepEqual(claims, { tenant, resource, lease: id, generation, fence, expiresAt, predicate });
});

test("a repeated bind is done once and answered twice", async () => {
  const cell = makeExecCell({ bind: "sleep 0.1; echo thing://2" });
  const lease = newLease(resource);
  const [first, second] = await Promise.all([cell.core.bind(lease), cell.core.bind(lease)]);
  assert.deepEqual(first, second);
  await cell.core.bind(lease);
  assert.deepEqual(cell.calls(), [`bind ${lease.id}`]);
  await Promise.all([cell.core.teardown(lease.id), cell.core.teardown(lease.id)]);
  await cell.core.teardown(lease.id);
  assert.deepEqual(cell.calls(), [`bind ${lease.id}`, `teardown ${lease.id}`]);
});

test("a late bind or renewal of an ended lease is refused with how it ended", async () => {
  const cell = makeExecCell({});
  const lease = newLease(resource);
  await cell.core.bind(lease);
  await cell.core.teardown(lease.id, "lease_released");
  await failsWith("lease_released", cell.core.bind(lease));
  await failsWith("lease_released", cell.core.renew(renewed(lease)));
  await failsWith("lease_expired", cell.core.bind(newLease(resource, -1)));
  await failsWith("lease_unknown", cell.core.renew(newLease(resource)));
  await failsWith("resource_unknown", cell.core.bind(newLease("THING:/other")));
  await cell.core.teardown("lease-nobody-knows");
});

test("L9: a lease that ran out here is bound again as a later generation, once the older binding is torn down", async () => {
  const cell = makeExecCell({ teardown: "sleep 0.2" });
  const lease = newLease(resource, 800);
  await cell.core.bind(lease);
  await eventually(() => cell.calls().length === 2);
  await failsWith("lease_expired", cell.core.bind(lease));
  const again = renewed(lease);
  const { token } = await cell.core.bind(again);
  assert.deepEqual(cell.calls(), [`bind ${lease.id}`, `teardown ${lease.id}`, `bind ${lease.id}`]);
  const shown = inspect(token);
  assert(!("code" in shown));
  assert.equal(shown.claims.generation, again.generation);
  await cell.core.teardown(lease.id, "lease_revoked");
  await failsWith("lease_revoked", cell.core.bind({ ...again, generation: again.generation + 1 }));
});

test("G8: an older generation neither binds nor renews; the same one again is answered", async () => {
  const { core } = makeExecCell({});
  const lease = newLease(resource);
  await core.bind(lease);
  const next = renewed(lease);
  const { token } = await core.renew(next);
  assert.deepEqual(await core.renew(next), { token });
  await failsWith("stale_generation", core.renew(lease));
  await failsWith("stale_generation", core.bind(lease));
  assert.equal((await core.bind(next)).token, token);
});

test("C6: units that are in use, or not yet torn down, are not given again", async () => {
  const { core } = makeExecCell({});
  const lease = newLease(resource, 60_000, { units: 2 });
  await core.bind(lease);
  await failsWith("lease_denied", core.bind(newLease(resource)));
  await core.teardown(lease.id);
  await core.bind(newLease(resource));
});

test("G7: a driver that fails, crashes, or hangs on bind fails that lease only, and what it began is taken down", async () => {
  for (const bind of [
    "echo broken >&2; exit 3",
    "kill -9 $$",
    "sleep 1000",
    "trap '' TERM; while :; do sleep 1000; done",
  ]) {
    const cell = makeExecCell({ bind }, { bind_ms: 1_000 });
    const lease = newLease(resource);
    const error = await failsWith("bind_failed", cell.core.bind(lease));
    assert.match(error.message, /broken|SIGKILL|longer than 1000 ms/);
    assert.deepEqual(cell.calls(), [`bind ${lease.id}`, `teardown ${lease.id}`]);
    assert.deepEqual([cell.core.inventory()[0]?.fenced, cell.core.bindings().length], [null, 0]);
    assert.deepEqual(cell.events, []);
  }
});

test("G7: a teardown that fails or hangs fences the resource, ends what else is live on it, and stays until a probe has seen it clean", async () => {
  for (const teardown of ["exit 1", "sleep 1000"]) {
    const flag = join(scratch, `flag-${cells}`);
    const cell = makeExecCell({ teardown, probe: `test -e ${flag}` }, { teardown_ms: 1_000 });
    const [lease, other] = [newLease(resource), newLease(resource)];
    await cell.core.bind(lease);
    await cell.core.bind(other);
    await failsWith("teardown_failed", cell.core.teardown(lease.id));
    await failsWith("teardown_failed", cell.core.teardown(lease.id));
    await failsWith("resource_fenced", cell.core.bind(newLease(resource)));
    await failsWith("resource_fenced", cell.core.renew(renewed(other)));
    assert.equal((await cell.core.reset(resource)).clean, false);
    await failsWith("resource_fenced", cell.core.bind(newLease(resource)));
    writeFileSync(flag, "");
    assert.equal((await cell.core.reset(resource)).clean, true);
    await cell.core.bind(newLease(resource));
  }
});

test("a reset that fails lifts nothing", async () => {
  const cell = makeExecCell({ teardown: "exit 1", reset: "exit 1" });
  const lease = newLease(resource);
  await cell.core.bind(lease);
  await failsWith("teardown_failed", cell.core.teardown(lease.id));
  await failsWith("reset_failed", cell.core.reset(resource));
  await failsWith("resource_fenced", cell.core.bind(newLease(resource)));
});

test("a lease that is revoked while it is bound is not handed out, and is torn down after", async () => {
  const gate = join(scratch, `gate-${cells}`);
  const cell = makeExecCell({ bind: `while [ ! -e ${gate} ]; do sleep 0.05; done; echo thing://1` });
  const lease = newLease(resource);
  const binding = cell.core.bind(lease);
  await eventually(() => cell.calls().length === 1);
  const down = cell.core.teardown(lease.id, "lease_revoked");
  writeFileSync(gate, "");
  await failsWith("lease_revoked", binding);
  await down;
  assert.deepEqual(cell.calls(), [`bind ${lease.id}`, `teardown ${lease.id}`]);
});

test("G11: nobody has to tell a cell that a lease has ended", async () => {
  const cell = makeExecCell({});
  const lease = newLease(resource, 2_000);
  await cell.core.bind(lease);
  await eventually(() => cell.events.length > 0);
  assert.deepEqual(cell.events, [{ type: "ended", lease, code: "lease_expired", failure: null }]);
  assert.deepEqual(cell.calls(), [`bind ${lease.id}`, `teardown ${lease.id}`]);
});

test("G11: a machine that slept through a lease's end lets nothing through when it wakes, before any timer", async () => {
  const service = await startHttp((_request, response) => response.end("{}"));
  let slept = 0;
  const clock = new CellClock({ monotonic: () => performance.now(), wall: () => Date.now() + slept });
  const cell = makeCell([{ resource, driver: "http", options: { target: `http://${service.address}` } }], { clock });
  const { coordinate, token } = await cell.core.bind(newLease(resource));
  const headers = { authorization: `Bearer ${token}` };
  assert.equal((await fetch(coordinate, { headers })).status, 200);
  slept = 61_000;
  assert.equal((await fetch(coordinate, { headers })).status, 410);
});

test("G7: after a restart a cell tears down what it had bound before, and a fence is still there", async () => {
  const settings = { state_file: `state-${cells}.json` };
  const first = makeExecCell({ teardown: "exit 1" }, settings);
  const lease = newLease(resource);
  await first.core.bind(lease);
  // The first is as good as dead: nobody asks it anything any more.
  const second = makeExecCell({}, settings);
  assert.deepEqual(await second.core.start(), []);
  assert.deepEqual(second.calls(), [`teardown ${lease.id}`]);
  await failsWith("lease_revoked", second.core.bind(lease));
  await second.core.bind(newLease(resource));
  const third = makeExecCell({ teardown: "exit 1" }, settings);
  await third.core.start();
  assert.match(third.core.inventory()[0]?.fenced ?? "", /teardown of lease-\d+ failed/);
  const fourth = makeExecCell({ teardown: "exit 1" }, settings);
  await failsWith("resource_fenced", fourth.core.bind(newLease(resource)));
  const fifth = makeExecCell({}, settings);
  assert.equal((await fifth.core.reset(resource)).clean, true);
  await fifth.core.bind(newLease(resource));
});

test("a damaged state file is refused, and not taken for an empty one", async () => {
  writeFileSync(join(scratch, "damaged.json"), '{"leases":');
  const cell = makeExecCell({}, { state_file: "damaged.json" });
  await assert.rejects(cell.core.start(), /cannot be used \(it is damaged\)/);
});

test("an inventory tells kinds, capacity, drivers and labels, and what is bound", async () => {
  const { core } = makeExecCell({});
  const lease = newLease(resource);
  await core.bind(lease);
  const [entry] = core.inventory();
  assert.deepEqual([entry?.driver, entry?.capacity, entry?.ready], ["exec", 2, true]);
  assert.equal(core.bindings()[0]?.lease.id, lease.id);
});

test("L3: what is bound but not granted yet ends as early as the grant could, unless the grant says otherwise", async () => {
  const { address } = await startHttp((_request, response) => void response.end());
  const options = { target: `http://${address}` };
  const { core, events } = makeCell([{ resource: "API:/a", driver: "http", options }]);
  const [granted, forgotten] = [newLease("API:/a", 10_000), newLease("API:/a", 10_000)];
  await Promise.all([core.bind(granted, 1_500), core.bind(forgotten, 1_500)]);
  await core.renew({ ...granted, expiresAt: Date.now() + 60_000 });
  await eventually(() => events.length > 0);
  assert.deepEqual(
    events.map((event) => event.type === "ended" && [event.lease.id, event.code]),
    [[forgotten.id, "lease_expired"]],
  );
  // A repeated bind starts the count again: the grant is still to come.
  const again = newLease("API:/a", 10_000);
  await core.bind(again, 60_000);
  await core.bind(again, 60_000);
  assert.deepEqual(
    core
      .bindings()
      .map(({ lease }) => lease.id)
      .toSorted(),
    [again.id, granted.id].toSorted(),
  );
});

test("a cell that is drained binds nothing more, and reports the end of all it had", async () => {
  const { address } = await startHttp((_request, response) => void response.end());
  const { core, events } = makeCell([{ resource: "API:/a", driver: "http", options: { target: `http://${address}` } }]);
  const leases = [newLease("API:/a"), newLease("API:/a")];
  for (const lease of leases) await core.bind(lease);
  await core.drain();
  assert.deepEqual(
    events.map((event) => event.type === "ended" && [event.lease.id, event.code, event.failure]),
    leases.map(({ id }) => [id, "lease_revoked", null]),
  );
  assert.equal(core.inventory()[0]?.ready, false);
  await failsWith("cell_not_ready", core.bind(newLease("API:/a")));
});
