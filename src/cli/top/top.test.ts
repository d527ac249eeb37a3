import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease } from "../../sdk/wire.ts";
import { createPaint } from "../paint.ts";
import { countsIn, rateOf, type Snapshot, tasksIn } from "./model.ts";
import { keysIn } from "./screen.ts";
import { arrange, type Choice, firstChoice, press } from "./state.ts";
import { view } from "./view.ts";

function lease(id: string, resource: string, agent: string, leftMs: number): Lease {
  return {
    id,
    resource,
    predicate: "MUTATES",
    agent_id: agent,
    state: "ACTIVE",
    fence: 1,
    generation: 1,
    units: 1,
    purpose: `of ${agent}`,
    acquired_at: `2026-11-15T12:00:0${id}.000Z`,
    expires_at: "2026-11-15T12:01:00.000Z",
    expires_in_ms: leftMs,
    ttl: 60_000,
  };
}

const leases = [lease("1", "X:/b", "ann", 50_000), lease("2", "X:/a", "ben", 5_000), lease("3", "X:/c", "cid", 20_000)];
const snapshot: Snapshot = { at: 1_000, leases, hasMoreLeases: false, waiters: [], tasks: null, counts: null };
const ids = (choice: Choice) => arrange(leases, choice).map(({ id }) => id);
const pressed = (keys: string, from: Choice = firstChoice) =>
  keysIn(keys).reduce((choice, key) => press(choice, key, arrange(leases, choice)).choice, from);

test("s goes through the orders", () => {
  assert.deepEqual(ids(firstChoice), ["2", "3", "1"], "what ends first");
  assert.deepEqual(ids(pressed("s")), ["2", "1", "3"], "by resource");
  assert.deepEqual(ids(pressed("ss")), ["1", "2", "3"], "by agent");
  assert.equal(pressed("ssss").sort, "left");
});

test("a filter narrows while it is typed, Enter takes it, Esc leaves it", () => {
  assert.deepEqual(ids(pressed("/BEN")), ["2"]);
  assert.equal(pressed("/ben\r").filter, "ben");
  assert.deepEqual(ids(pressed("/ben\u001b")), ["2", "3", "1"]);
  assert.equal(pressed("/bex\u007fn\r").filter, "ben");
  assert.equal(pressed("/q\r").filter, "q", "keys are letters while one types");
});

test("arrows choose, r asks, and only y revokes", () => {
  const second = pressed("\u001b[B\u001b[B\u001b[A\u001b[B");
  assert.equal(second.selected, "3");
  assert.equal(press(pressed("r", second), "y", leases).action, "revoke");
  const not = press(pressed("r", second), "n", leases);
  assert.deepEqual([not.action, not.choice.asks], [null, null]);
  assert.equal(pressed("r").asks, null, "nothing is chosen yet");
  assert.equal(press(firstChoice, "q", leases).action, "quit");
  assert.equal(press(pressed("/"), "\u0003", leases).action, "quit", "Ctrl-C always");
});

test("the screen is filled exactly, the bars shrink with time, and what others wrote cannot escape", () => {
  const size = { columns: 70, rows: 14 };
  const shown = (now: number, choice: Choice = firstChoice, snap = snapshot) =>
    view({ url: "http://x", snapshot: snap, before: null, trouble: null, now }, choice, size, createPaint(false));
  const lines = shown(1_000);
  assert.equal(lines.length, size.rows);
  assert.match(lines[4] ?? "", /^█ +5\.0s +MUTATES +X:\/a +ben +of ben$/);
  assert.match(shown(4_000)[4] ?? "", /^▍ +2\.0s/);
  assert.match(shown(60_000)[4] ?? "", /^ +0ms/);
  const evil = { ...snapshot, leases: [{ ...lease("1", "X:/a", "a\u001b[2J", 1), purpose: "\u0007\n" }] };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
  assert.doesNotMatch(shown(1_000, firstChoice, evil).join(""), /[\u0000-\u001f]/);
  for (const line of shown(1_000, { ...firstChoice, showsHelp: true })) assert.ok(line.length <= size.columns);
});

test("rates are read off the server's counters", () => {
  const metrics =
    'leasehold_events_total{type="lease.granted"} 30\nleasehold_leases 7\nleasehold_tasks{status="queued"} 4\n';
  const before = { ...snapshot, counts: new Map([["lease.granted", 10]]) };
  const now = { ...snapshot, at: 3_000, counts: countsIn(metrics) };
  assert.equal(rateOf("lease.granted", before, now), 10);
  assert.equal(rateOf("lease.granted", null, now), null);
  assert.equal(countsIn(metrics).get("leases"), 7);
  assert.deepEqual(tasksIn(metrics), { queued: 4 });
  assert.equal(tasksIn(""), null);
});
