import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor } from "../contract/commands.ts";
import { limits } from "../contract/limits.ts";
import type { Key, Role } from "../contract/records.ts";
import { createCellWorld } from "../testing/cell-world.ts";
import { createTaskWorld } from "../testing/tasks-world.ts";
import { type Ask, createWorld, operator, supervisor, type World } from "../testing/test-world.ts";

const withKey = (role: Role, keyId: string): Actor => ({ role, agentId: null, epoch: null, keyId });
const registering = (agentId: string, actor: Actor): Ask => ({ type: "register_agent", agentId, labels: null, actor });

function keyOf({ ask, expect }: World, id: string, role: Role = "agent", expiresAt: number | null = null): Key {
  const key = { id, hash: `${id}-1`, role, tenant: "t1", label: null, scopes: null, expiresAt };
  return expect("key", ask({ type: "create_key", key })).key;
}

test("L13: another agent key cannot take up an agent, and so neither its leases nor its priority timestamp", () => {
  const world = createWorld();
  const mine = withKey("agent", "k1");
  const agent = world.expect("agent", world.ask(registering("victim", mine))).agent;
  assert.equal(agent.registeredBy, "k1");
  const lease = world.grant("victim", "MUTATES FILE:/a");
  const refusal = world.refused("forbidden", registering("victim", withKey("agent", "k2")));
  assert.deepEqual([refusal.field, refusal.problem], ["agent_id", "owned_by_another"]);
  assert.deepEqual([world.agent("victim").epoch, world.lease(lease.id)?.generation], [1, 1]);
  world.expect("agent", world.ask(registering("victim", mine)));
  assert.deepEqual([world.agent("victim").epoch, world.agent("victim").priority], [2, agent.priority]);
});

test("L13: an agent's present token takes it up, that of an older instance does not", () => {
  const world = createWorld();
  world.expect("agent", world.ask(registering("a", withKey("agent", "k1"))));
  const token = (epoch: number): Actor => ({ role: "agent", agentId: "a", epoch, drawnWith: "k1" });
  world.expect("agent", world.ask(registering("a", token(1))));
  world.refused("stale_epoch", registering("a", token(1)));
  world.expect("agent", world.ask(registering("a", token(2))));
  assert.equal(world.agent("a").registeredBy, "k1");
});

test("L13: those above take up any agent and do not come to own it; what they register is for no agent key", () => {
  const world = createWorld();
  world.expect("agent", world.ask(registering("a", withKey("agent", "k1"))));
  for (const above of [supervisor, operator, withKey("supervisor", "boss")])
    world.expect("agent", world.ask(registering("a", above)));
  assert.equal(world.agent("a").registeredBy, "k1");
  world.expect("agent", world.ask(registering("b", withKey("supervisor", "boss"))));
  world.expect("agent", world.ask(registering("c", operator)));
  assert.deepEqual([world.agent("b").registeredBy, world.agent("c").registeredBy], ["boss", null]);
  for (const id of ["b", "c"]) world.refused("forbidden", registering(id, withKey("agent", "k1")));
});

test("L13: an agent that its own token registers again after it was forgotten belongs to the token's key", () => {
  const world = createWorld();
  const token: Actor = { role: "agent", agentId: "a", epoch: 1, drawnWith: "k1" };
  world.expect("agent", world.ask(registering("a", token)));
  assert.equal(world.agent("a").registeredBy, "k1");
});

test("L13: an agent cannot have a key's id, under which the key's tasks and receipts stand", () => {
  const world = createWorld();
  world.refused("invalid_agent_id", registering("key_0123456789abcdef", withKey("agent", "k1")));
});

test("L13: an operator assigns names to a key of the fitting role and tenant, and nobody else does", () => {
  const world = createTaskWorld();
  const cells = createCellWorld();
  keyOf(world, "k1");
  keyOf(world, "kw", "worker");
  world.register("a");
  world.idles("w.1");
  world.refused("forbidden", { type: "assign_name", keyId: "k1", name: { agentId: "a" }, actor: supervisor });
  world.refused("invalid_key", { type: "assign_name", keyId: "kw", name: { agentId: "a" } });
  world.refused("invalid_key", { type: "assign_name", keyId: "k1", name: { workerId: "w.1" } });
  world.refused("invalid_key", { type: "assign_name", keyId: "k1", name: { cellId: "c1" } });
  world.refused("agent_unknown", { type: "assign_name", keyId: "k1", name: { agentId: "b" } });
  cells.refused("cell_unknown", { type: "assign_name", keyId: "key-c1", name: { cellId: "c9" } });
  world.expect("key", world.ask({ type: "assign_name", keyId: "k1", name: { agentId: "a" } }));
  world.expect("key", world.ask({ type: "assign_name", keyId: "kw", name: { workerId: "w.1" } }));
  world.expect("agent", world.ask(registering("a", withKey("agent", "k1"))));
  world.idles("w.1", { actor: withKey("worker", "kw") });
  assert.equal(world.agent("a").registeredBy, "k1");
});

test("a rotated key keeps what it owns, and its former secret is good for the overlap and no longer than the key was", () => {
  const world = createWorld();
  const end = world.now + 10_000;
  keyOf(world, "k1", "agent", end);
  const rotate = (overlapMs: number, expiresAt: number | null = null) => {
    const asked = { type: "rotate_key", keyId: "k1", overlapMs, expiresAt, hash: `h${world.now}` } as const;
    return world.expect("key", world.ask(asked)).key;
  };
  const first = rotate(1_000);
  assert.deepEqual([first.formerHash, first.formerUntil, first.generation], ["k1-1", world.now + 1_000, 2]);
  assert.equal(rotate(60_000, end + 60_000).formerUntil, end, "the former secret does not outlive its end");
  const last = rotate(0);
  assert.deepEqual([last.formerHash, last.formerUntil, last.expiresAt], [null, null, end + 60_000]);
  world.pass(80_000);
  const expired = { type: "rotate_key", keyId: "k1", overlapMs: 0, expiresAt: null, hash: "h" } as const;
  assert.equal(world.refused("invalid_key", expired).field, "expires_at");
  const tooLong = { ...expired, overlapMs: limits.keyOverlapMsMax + 1, expiresAt: world.now + 1 };
  assert.equal(world.refused("invalid_key", tooLong).field, "overlap_ms");
});

test("S5: the last operator's key that is still good, and the last key of all, cannot be deleted", () => {
  const world = createWorld();
  const remove = (keyId: string): Ask => ({ type: "delete_key", keyId });
  keyOf(world, "reader", "reader");
  world.refused("last_operator_key", remove("reader"));
  keyOf(world, "op-1", "operator");
  keyOf(world, "op-2", "operator", world.now + 1_000);
  world.expect("key", world.ask(remove("reader")));
  world.pass(1_000);
  world.refused("last_operator_key", remove("op-1"));
  world.expect("key", world.ask(remove("op-2")));
  world.refused("last_operator_key", remove("op-1"));
});

test("a key's end must be to come", () => {
  const world = createWorld();
  const key = {
    id: "k",
    hash: "h",
    role: "agent",
    tenant: "t1",
    label: null,
    scopes: null,
    expiresAt: world.now,
  } as const;
  assert.equal(world.refused("invalid_key", { type: "create_key", key }).field, "expires_at");
});

test("when a key was last used is written at most once a minute", () => {
  const world = createWorld();
  keyOf(world, "k1");
  const note = (at: number): readonly (number | null)[] => {
    world.expect(
      "done",
      world.ask({
        type: "note_key_uses",
        uses: [
          { keyId: "k1", at },
          { keyId: "gone", at },
        ],
      }),
    );
    return [...world.base.state.keys.values()].map(({ record }) => record.lastUsedAt);
  };
  const { now } = world;
  assert.deepEqual(note(now), [now]);
  assert.deepEqual(note(now + limits.keyUseMs - 1), [now]);
  assert.deepEqual(note(now + limits.keyUseMs), [now + limits.keyUseMs]);
  world.refused("forbidden", { type: "note_key_uses", uses: [], actor: supervisor });
});

test("A3: an older instance's token cancels none of the tasks that it created", () => {
  const world = createTaskWorld("a");
  const token = (epoch: number): Actor => ({ role: "agent", agentId: "a", epoch });
  const { id: taskId } = world.expect("task", world.ask({ ...world.creation(), actor: token(1) })).task;
  world.register("a");
  world.refused("stale_epoch", { type: "cancel_task", actor: token(1), taskId, reason: null });
  world.expect("task", world.ask({ type: "cancel_task", actor: token(2), taskId, reason: null }));
});

test("S3: keys are made and deleted by the operator, and known by hash alone", () => {
  const world = createWorld();
  const named = {
    id: "k1",
    hash: "h",
    role: "supervisor",
    tenant: "t1",
    label: "ci",
    scopes: null,
    expiresAt: null,
  } as const;
  const { key } = world.expect("key", world.ask({ type: "create_key", key: named }));
  const unused = { lastUsedAt: null, rotatedAt: null, formerHash: null, formerUntil: null, generation: 1 };
  assert.deepEqual(key, { ...named, createdAt: world.now, ...unused });
  keyOf(world, "op", "operator");
  world.expect("key", world.ask({ type: "delete_key", keyId: "k1" }));
  world.refused("key_unknown", { type: "delete_key", keyId: "k1" });
});
