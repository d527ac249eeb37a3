import assert from "node:assert/strict";
import { test } from "node:test";
import type { AgentActivity, Lease, Wait } from "../../sdk/wire.ts";
import { createPaint } from "../paint.ts";
import { cutMiddle, widthOf } from "../plain-text.ts";
import { RateMeter, type Snapshot } from "./model.ts";
import { fit } from "./row-view.ts";
import { arrange, rowsOf } from "./rows.ts";
import { keysIn } from "./screen.ts";
import { type Choice, firstChoice, press } from "./state.ts";
import { view } from "./view.ts";

const since = "2026-11-15T12:00:00.000Z";

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

function agent(id: string, activity: AgentActivity["activity"], leases: readonly Lease[] = []): AgentActivity {
  const state = activity === "working" ? "EXECUTING" : "PLANNING";
  const rest = { labels: {}, since, paused_by_operator: false, attempts: 0, requests: [] };
  return { agent_id: id, activity, state, leases, leases_total: leases.length, ...rest };
}

function wait(id: string, reason: Wait["reason"], more: Partial<Wait> = {}): Wait {
  const nothing = { intents: [], resources: ["X:/a"], purpose: null, blocked_by: [], blocked_by_total: 0 };
  return { waiter: "agent", agent_id: id, reason, detail: `about ${reason}`, since, ...nothing, ...more };
}

const held = { agent_id: "ben", predicate: "MUTATES", resource: "X:/a", purpose: null } as const;
const edge: Partial<Wait> = { blocked_by: [{ ...held, lease_id: "2", expires_in_ms: 5_000 }], blocked_by_total: 1 };
const agents = [
  agent("ann", "working", [lease("1", "X:/b", "ann", 50_000)]),
  agent("ben", "working", [lease("2", "X:/a", "ben", 5_000), lease("3", "X:/c", "ben", 20_000)]),
  agent("cid", "blocked"),
  agent("dan", "blocked"),
  agent("eve", "waiting_for_person"),
  agent("fay", "idle"),
  agent("gus", "lost"),
];
const waits = [
  wait("cid", "standby", { ...edge, intents: [{ predicate: "MUTATES", resource: "X:/a" }] }),
  wait("dan", "die", { ...edge, ends_in_ms: 3_000 }),
  wait("eve", "agent_paused", { resources: [] }),
  wait("gus", "lost"),
  wait("", "dependency", { waiter: "task", task_id: "tsk_2", waits_for_tasks: ["tsk_1"], resources: [] }),
];
const snapshot: Snapshot = {
  at: 1_000,
  overview: {
    at: "2026-11-15T12:00:07.000Z",
    sequence: 1,
    agents: { working: 2, blocked: 2, waiting_for_person: 1, idle: 1, lost: 1 },
    workers: { working: 0, idle: 0, lost: 0 },
    leases: 3,
    requests: { WAITING: 0, STANDBY: 1, BINDING: 0 },
    tasks: { queued: 1, leased: 0, accepted: 0, retry_pending: 0, dead: 0 },
    obligations: { OPEN: 0, OVERDUE: 0 },
    resources: { READY: 0, FENCED: 0, WITHDRAWN: 0 },
    cells: { READY: 0, GONE: 0 },
  },
  agents,
  waits,
  hasMore: false,
};
const rows = (choice: Choice, of = snapshot) => arrange(rowsOf(of), choice.sort, choice.typing ?? choice.filter);
const names = (choice: Choice) =>
  rows(choice).map(({ who, item }) => (item?.type === "lease" ? `${who}:${item.lease.id}` : who));
const pressed = (keys: string, from: Choice = firstChoice) =>
  keysIn(keys).reduce((choice, key) => press(choice, key, rows(choice)).choice, from);

test("s goes through the orders; by state, what needs attention comes first", () => {
  const byState = ["gus", "eve", "cid", "dan", "tsk_2", "ann:1", "ben:2", "ben:3", "fay"];
  assert.deepEqual(names(firstChoice), byState);
  assert.deepEqual(names(pressed("s")), ["ann:1", "ben:2", "ben:3", "cid", "dan", "eve", "fay", "gus", "tsk_2"]);
  assert.deepEqual(names(pressed("ss")).slice(0, 6), ["ben:2", "cid", "dan", "gus", "ann:1", "ben:3"], "by resource");
  assert.deepEqual(names(pressed("sss")).slice(0, 4), ["dan", "ben:2", "ben:3", "ann:1"], "what ends first");
  assert.equal(pressed("ssss").sort, "state");
});

test("a filter finds agents, states, resources and those in the way; Enter takes it, Esc leaves it", () => {
  assert.deepEqual(names(pressed("/BEN")), ["cid", "dan", "ben:2", "ben:3"], "those that it blocks too");
  assert.deepEqual(names(pressed("/person")), ["eve"]);
  assert.deepEqual(names(pressed("/standby")), ["cid"]);
  assert.equal(pressed("/ben\r").filter, "ben");
  assert.deepEqual(names(pressed("/ben\u001b")), names(firstChoice));
  assert.equal(pressed("/bex\u007fn\r").filter, "ben");
  assert.equal(pressed("/q\r").filter, "q", "keys are letters while one types");
});

test("arrows choose, r asks for a lease only, and only y revokes", () => {
  const first = pressed("/ann\r\u001b[B");
  const asked = pressed("r", first);
  assert.equal(asked.asks, "1");
  assert.equal(press(asked, "y", rows(asked)).action, "revoke");
  const not = press(asked, "n", rows(asked));
  assert.deepEqual([not.action, not.choice.asks], [null, null]);
  assert.equal(pressed("r").asks, null, "nothing is chosen yet");
  assert.equal(pressed("/cid\rjr").asks, null, "a wait is chosen");
  assert.equal(press(firstChoice, "q", []).action, "quit");
  assert.equal(press(pressed("/"), "\u0003", []).action, "quit", "Ctrl-C always");
});

const sizes = [80, 24] as const;

function shown(
  now = 1_000,
  choice: Choice = firstChoice,
  of: Snapshot = snapshot,
  [columns, height] = sizes as readonly [number, number],
) {
  const seen = { url: "http://x", snapshot: of, rows: rows(choice, of), rates: null, trouble: null, now };
  return view(seen, choice, { columns, rows: height }, createPaint(false));
}

test("five states are told apart, and each wait says what it is and who is in its way", () => {
  const text = shown().join("\n");
  assert.match(text, /2 working {2}2 blocked {2}1 waiting for a person {2}1 idle {2}1 lost/);
  assert.match(text, /^gus +lost +for 7\.0s +lost X:\/a\n +about lost$/m);
  assert.match(text, /^eve +person +for 7\.0s +paused by an operator\n +about agent_paused$/m);
  assert.match(
    text,
    /^cid +blocked +for 7\.0s +stands by for MUTATES X:\/a\n +← ben holds MUTATES X:\/a, 5\.0s left$/m,
  );
  assert.match(text, /^dan +blocked +for 7\.0s +died, back in 3\.0s: X:\/a\n +← ben holds/m);
  assert.match(text, /^tsk_2 +task +for 7\.0s +waits for other tasks\n +← task tsk_1$/m);
  assert.match(text, /^fay +idle +for 7\.0s *$/m);
  assert.match(shown(5_000).join("\n"), /^dan +blocked +for 11\.0s +died, due back: X:\/a$/m);
});

test("bars shrink with time", () => {
  const line = (now: number) => shown(now, pressed("/X:/c")).find((one) => one.startsWith("ben")) ?? "";
  assert.match(line(1_000), /working {2}█▍ +20\.0s +MUTATES X:\/c {2}"of ben"$/);
  assert.match(line(11_000), /working {2}▋ +10\.0s/);
  assert.match(line(60_000), /working {7}0ms/);
});

test("every size is filled exactly, and the chosen row is on the screen", () => {
  const long = `FILE:/${"folder/".repeat(30)}file.ts`;
  const many = Array.from({ length: 200 }, (_, at) => {
    const id = `agent-${String(at).padStart(3, "0")}`;
    return agent(id, "working", [lease("1", long, id, 1)]);
  });
  const crowd = { ...snapshot, agents: many };
  for (const size of [sizes, [120, 40], [300, 100], [40, 10]] as const) {
    for (const choice of [firstChoice, pressed("?"), pressed("jjr"), pressed("/x")]) {
      const lines = shown(1_000, choice, crowd, size);
      assert.equal(lines.length, size[1]);
      for (const line of lines) assert.ok(widthOf(line) <= size[0], `${size}: ${line}`);
    }
    for (const { key, who } of rows(firstChoice, crowd).filter((_, at) => at % 25 === 0)) {
      const lines = shown(1_000, { ...firstChoice, selected: key }, crowd, size);
      assert.ok(
        lines.some((line) => line.startsWith(who)),
        `${who} at ${size}`,
      );
    }
  }
});

test("names are cut in their middle, and only after what stands behind them", () => {
  assert.equal(cutMiddle("FILE:/repository/src/auth.ts", 15), "FILE:…c/auth.ts");
  for (let columns = 0; columns < 30; columns++) {
    const text = cutMiddle("FILE:/a/語語語語/src/auth.ts", columns);
    assert.ok(widthOf(text) <= columns, `${columns}: ${text}`);
  }
  const parts = { before: "MUTATES ", name: "FILE:/repository/auth.ts", after: ", 3s left", rest: '  "why"' };
  assert.equal(fit(parts, 80), 'MUTATES FILE:/repository/auth.ts, 3s left  "why"');
  assert.equal(fit(parts, 41), "MUTATES FILE:/repository/auth.ts, 3s left");
  assert.equal(fit(parts, 31), "MUTATES FILE:…/auth.ts, 3s left");
});

test("what others wrote cannot escape", () => {
  const bad = "\u001b[2J\u0007\n";
  const evil: Snapshot = {
    ...snapshot,
    agents: [agent(bad, "working", [{ ...lease("1", `X:/${bad}`, bad, 1), purpose: bad }])],
    waits: [
      wait(bad, "wait", { resources: [bad], blocked_by: [{ ...held, agent_id: bad, resource: bad, purpose: bad }] }),
      wait("", "dependency", { waiter: "task", task_id: bad, waits_for_tasks: [bad] }),
    ],
  };
  const asked = { ...firstChoice, asks: "1" };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
  assert.doesNotMatch(shown(1_000, asked, evil).join(""), /[\u0000-\u001f]/);
});

test("rates are of the last seconds, and of fewer at the beginning", () => {
  const meter = new RateMeter(0);
  for (let at = 0; at < 2_000; at += 100) meter.count("lease.granted", at);
  assert.equal(Math.round(meter.rates(2_000)["lease.granted"]), 10);
  assert.equal(meter.rates(2_000)["lease.expired"], 0);
  assert.equal(meter.rates(60_000)["lease.granted"], 0);
});
