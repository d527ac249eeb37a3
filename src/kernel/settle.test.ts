import assert from "node:assert/strict";
import { test } from "node:test";
import type { KernelEvent } from "./contract/events.ts";
import { limits } from "./contract/limits.ts";
import type { Millis } from "./contract/records.ts";
import { apply, createState, hasDue, nextDeadline, restore, type State, settle, snapshot } from "./kernel.ts";
import { createWorld, found, operator, records, type World } from "./testing/test-world.ts";

/** A world in which something of every kind falls due in the next days, much of it at the same instants. */
function createEventfulWorld(): World {
  const readers = Array.from({ length: 10 }, (_, n) => `r${n}`);
  const world = createWorld("oldest", "older", "old", ...readers, "restarting", "young");
  world.declare("CELL:/closing", null, "cell-1");
  world.declare("CELL:/binding", null, "cell-1");
  world.declare("GPU:/0", 4);
  world.grant("young", "MUTATES FILE:/a", { ttlMs: 1_000 });
  world.grant("young", "MUTATES FILE:/b", { ttlMs: 1_000, key: "k1" });
  world.grants("young", "RENAMES FILE:/c > FILE:/d", { ttlMs: 2_000 });
  world.grant("young", "MUTATES FILE:/idle", { idleTimeoutMs: 1_500 });
  world.grant("young", "MUTATES GPU:/0 x4", { ttlMs: 1_000 });
  world.grants("restarting", ["MUTATES FILE:/held1", "MUTATES FILE:/held2"], { ttlMs: 1_000 });
  world.restart("restarting");
  for (const [n, reader] of [...readers.entries()].reverse()) {
    world.waits(reader, n % 3 === 0 ? "MUTATES FILE:/a" : "CONSUMES FILE:/a", {
      waitTimeoutMs: 700 + 100 * n,
      ttlMs: 300,
    });
  }
  world.waits("old", ["MUTATES FILE:/a", "MUTATES FILE:/c", "MUTATES FILE:/held1"], {
    waitTimeoutMs: 60_000,
    key: "k2",
  });
  world.waits("older", ["MUTATES GPU:/0 x3", "MUTATES FILE:/idle"], { waitTimeoutMs: 60_000 });
  world.waits("oldest", ["MUTATES GPU:/0 x2"], { waitTimeoutMs: 60_000 });
  const { requestId } = world.waits("young", "MUTATES CELL:/closing", { ttlMs: 1_000 });
  world.bound(found(world.lease(world.request(requestId)?.leaseIds[0] ?? ""), "lease"));
  world.collect(requestId);
  world.waits("young", ["MUTATES CELL:/binding", "MUTATES FILE:/e"]);
  return world;
}

const day = 86_400_000;
const times = [
  0,
  700,
  1_000,
  1_499,
  1_500,
  2_000,
  9_999,
  11_000,
  16_000,
  70_000,
  700_000,
  8 * day,
  16 * day,
  24 * day,
  32 * day,
];

for (const limit of [1, 2, 3, 17]) {
  test(`L3: settled in slices of ${limit} the kernel does the same, in the same order, as settled at once`, () => {
    for (const jumps of [
      times,
      times.filter((_, n) => n % 2 === 1),
      times.filter((_, n) => n % 3 === 2),
      times.slice(-4),
    ]) {
      const [atOnce, sliced] = [createEventfulWorld(), createEventfulWorld()];
      const start = atOnce.now;
      for (const time of jumps) {
        const expected = settle(atOnce.base.state, start + time, Number.POSITIVE_INFINITY);
        assert.equal(expected.more, false);
        const events: KernelEvent[] = [];
        for (;;) {
          const slice = settle(sliced.base.state, start + time, limit);
          events.push(...slice.events);
          assert.equal(slice.more, hasDue(sliced.base.state, start + time));
          if (!slice.more) break;
        }
        assert.deepEqual(events, expected.events);
        assert.equal(records(sliced.base.state), records(atOnce.base.state));
        assert.equal(nextDeadline(sliced.base.state), nextDeadline(atOnce.base.state));
      }
      assert.equal(nextDeadline(atOnce.base.state), Number.POSITIVE_INFINITY, "and at last nothing is due any more");
      assert.deepEqual(atOnce.leases(), []);
    }
  });
}

test("L3: a command between two slices is decided as if all had been settled at once", () => {
  const [atOnce, sliced] = [createEventfulWorld(), createEventfulWorld()];
  const now = atOnce.now + 1_000;
  settle(sliced.base.state, now, 2);
  const command = { ...atOnce.acquire("young", "MUTATES FILE:/b"), tenant: "t1", entropy: [5, 5] as const };
  const complete = { ...command, actor: operator };
  const [one, other] = [apply(atOnce.base.state, complete, now), apply(sliced.base.state, complete, now)];
  assert.deepEqual(other.reply, one.reply);
  assert.equal(records(sliced.base.state), records(atOnce.base.state));
});

test("L3: a crash between two slices loses nothing: the restored kernel goes on to the same end", () => {
  const now = createEventfulWorld().now + 2_000;
  const whole = createEventfulWorld();
  settle(whole.base.state, now, Number.POSITIVE_INFINITY);
  for (let slices = 1; slices < 25; slices++) {
    const world = createEventfulWorld();
    let state: State = world.base.state;
    for (let n = 0; n < slices; n++) settle(state, now, 1);
    state = restore(JSON.parse(JSON.stringify(snapshot(state))));
    settle(state, now, Number.POSITIVE_INFINITY);
    assert.equal(withoutFences(records(state)), withoutFences(records(whole.base.state)), `after ${slices}`);
  }
});

/** After a crash waiters may be served in another order, and their leases numbered so. */
function withoutFences(text: string): string {
  return text
    .replace(/"fence":\d+/g, '"fence":0')
    .split("\n")
    .sort()
    .join("\n");
}

test("a slice of nothing does nothing, and says what is due", () => {
  const world = createEventfulWorld();
  const before = records(world.base.state);
  assert.equal(settle(world.base.state, world.now, 0).more, false);
  const { more, events, changes } = settle(world.base.state, world.now + 1_000, 0);
  assert.deepEqual([more, events, changes], [true, [], []]);
  assert.equal(records(world.base.state), before);
});

test("L3: ends are settled in the order of their deadlines, each together with the grants it makes possible", () => {
  const world = createWorld("d", "c", "b", "a");
  world.grant("a", "MUTATES FILE:/late", { ttlMs: 3_000 });
  world.grant("b", "MUTATES FILE:/early", { ttlMs: 1_000 });
  world.waits("c", "MUTATES FILE:/late", { waitTimeoutMs: 60_000, ttlMs: 10_000 });
  world.waits("d", "MUTATES FILE:/early", { waitTimeoutMs: 60_000, ttlMs: 10_000 });
  const order = world.pass(5_000).flatMap((event) => {
    return event.type.startsWith("lease.") && "lease" in event ? [`${event.type} ${event.lease.resource}`] : [];
  });
  assert.deepEqual(order, [
    "lease.expired FILE:/early",
    "lease.granted FILE:/early",
    "lease.expired FILE:/late",
    "lease.granted FILE:/late",
  ]);
  assert.ok(world.events.every(({ at }) => at === world.now));
});

test("L3: with several tenants all that is due is settled by the clock, not by the tenant", () => {
  const one = createWorld("a");
  const other = one.beside("t0", "a");
  one.grant("a", "MUTATES FILE:/x", { ttlMs: 1_000 });
  other.grant("a", "MUTATES FILE:/x", { ttlMs: 500 });
  one.grant("a", "MUTATES FILE:/y", { ttlMs: 400 });
  const ends = one.pass(1_000).filter(({ type }) => type === "lease.expired");
  const tenants = ends.map(({ tenant }) => tenant);
  assert.deepEqual(tenants, ["t1", "t0", "t1"]);
});

test("20,000 leases that end at one instant are settled in slices, none of which does more than its share", () => {
  const world = createWorld("a");
  const count = 20_000;
  for (let n = 0; n < count; n++) world.grant("a", `MUTATES FILE:/d${n % 50}/f${n}`, { ttlMs: 1_000 });
  world.later(1_000);
  let ended = 0;
  for (let more = true; more; ) {
    const slice = settle(world.base.state, world.now, 1_000);
    const ends = slice.events.filter(({ type }) => type === "lease.expired");
    assert.ok(ends.length <= 1_000);
    ended += ends.length;
    more = slice.more;
  }
  assert.equal(ended, count);
  assert.deepEqual(world.leases(), []);
  assert.equal(hasDue(world.base.state, world.now), false);
});

test("an empty kernel has nothing due, ever", () => {
  const state = createState();
  assert.equal(nextDeadline(state), Number.POSITIVE_INFINITY);
  assert.equal(hasDue(state, Number.MAX_SAFE_INTEGER), false);
});

interface Instant {
  readonly what: string;
  readonly begin: (world: World) => void;
  /** From the beginning, in milliseconds. */
  readonly due: number;
  readonly event: string;
}

/** One of each kind of deadline: the kernel names it, does nothing a millisecond before, and settles it then. */
const instants: readonly Instant[] = [
  {
    what: "L3: an expiry",
    begin: (world) => void world.grant("a", "MUTATES FILE:/x", { ttlMs: 1_000 }),
    due: 1_000,
    event: "lease.expired",
  },
  {
    what: "L10: an idle timeout",
    begin: (world) => void world.grant("a", "MUTATES FILE:/x", { idleTimeoutMs: 700 }),
    due: 700,
    event: "lease.revoked",
  },
  {
    what: "W4: a wait's timeout",
    begin: (world) => {
      world.grant("young", "MUTATES FILE:/x");
      world.waits("a", "MUTATES FILE:/x", { waitTimeoutMs: 900 });
    },
    due: 900,
    event: "request.timed_out",
  },
  {
    what: "W8: the time to collect a grant",
    begin: (world) => {
      const lease = world.grant("young", "MUTATES FILE:/x");
      world.waits("a", "MUTATES FILE:/x");
      world.release(lease.id);
    },
    due: 10_000,
    event: "lease.expired",
  },
  {
    what: "L9: the beginning of a hold",
    begin: (world) => {
      world.grant("a", "MUTATES FILE:/x", { ttlMs: 1_000 });
      world.restart("a");
    },
    due: 1_000,
    event: "lease.held",
  },
  {
    what: "L9: the end of a hold",
    begin: (world) => {
      world.grant("a", "MUTATES FILE:/x", { ttlMs: 1_000 });
      world.restart("a");
      world.pass(1_000);
      world.later(-1_000);
    },
    due: 16_000,
    event: "lease.expired",
  },
  {
    what: "G6: the time to bind",
    begin: (world) => {
      world.declare("GPU:/0", null, "cell-1");
      world.waits("a", "MUTATES GPU:/0");
    },
    due: limits.bindMs,
    event: "lease.closing",
  },
  {
    what: "G7: the time to tear down",
    begin: (world) => {
      world.declare("GPU:/0", null, "cell-1");
      world.waits("a", "MUTATES GPU:/0");
      world.revoke({ agentId: "a" });
    },
    due: limits.teardownMs,
    event: "resource.fenced",
  },
  {
    what: "S4: the forgetting of an agent",
    begin: () => undefined,
    due: limits.agentIdleMs,
    event: "agent.forgotten",
  },
];
for (const { what, begin, due, event } of instants) {
  test(`${what} is due at its instant, not a millisecond before, and the kernel says when`, () => {
    const world = createWorld("a", "young");
    const start: Millis = world.now;
    begin(world);
    const { state } = world.base;
    assert.equal(nextDeadline(state), start + due);
    const before = records(state);
    assert.deepEqual(settle(state, start + due - 1, Number.POSITIVE_INFINITY).events, []);
    assert.equal(records(state), before);
    assert.equal(hasDue(state, start + due - 1), false);
    assert.equal(hasDue(state, start + due), true);
    const { events } = settle(state, start + due, Number.POSITIVE_INFINITY);
    assert.ok(
      events.some(({ type }) => type === event),
      events.map(({ type }) => type).join(),
    );
    assert.equal(hasDue(state, start + due), false);
  });
}

test("W10: the memory of an ended request is due at its instant too, without an event", () => {
  const world = createWorld("a");
  const { requestId } = world.grants("a", ["MUTATES FILE:/x", "MUTATES FILE:/y"], { key: "k" });
  world.releaseAll("a");
  assert.equal(nextDeadline(world.base.state), world.now + limits.requestMemoryMs);
  world.pass(limits.requestMemoryMs - 1);
  assert.equal(world.request(requestId)?.state, "GRANTED");
  assert.deepEqual(world.pass(1), []);
  assert.equal(world.request(requestId), undefined);
});

test("every change of a step is listed once, and its handle always shows the newest form", () => {
  const world = createEventfulWorld();
  const outcome = settle(world.base.state, world.now + 2_000, Number.POSITIVE_INFINITY);
  assert.equal(new Set(outcome.changes).size, outcome.changes.length);
  const kept = outcome.changes.filter(({ alive }) => alive).map(({ kind, record }) => JSON.stringify({ kind, record }));
  const all = records(world.base.state);
  for (const record of kept) assert.ok(all.includes(record), record);
  for (const { kind, record, alive } of outcome.changes) {
    const ended = kind === "lease" && "endedAt" in record && record.endedAt !== null;
    assert.equal(alive, !ended && (kind !== "lease" || all.includes(JSON.stringify({ kind, record }))));
  }
});
