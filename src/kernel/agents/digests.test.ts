import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../contract/limits.ts";
import { createWorld, plainDigest } from "../testing/test-world.ts";

test("A2: a digest is stored as sent, in canonical names, with the timestamp and the time", () => {
  const world = createWorld("a");
  const digest = world.save("a", {
    checkpointId: "cp-7",
    resumePoint: "after parse",
    context: { seen: [1, { two: "three" }], done: false },
    intentBacklog: [
      { predicate: "MUTATES", resource: "FILE:/e\u0301" },
      { predicate: "RENAMES", resource: "FILE:/a", to: "FILE:/b" },
    ],
    resolutionStrategy: "MERGE",
    assumptions: [{ resource: "FILE:/e\u0301", version: "v1" }],
  });
  assert.deepEqual(digest, {
    tenant: "t1",
    agentId: "a",
    checkpointId: "cp-7",
    resumePoint: "after parse",
    context: { seen: [1, { two: "three" }], done: false },
    intentBacklog: [
      { predicate: "MUTATES", resource: "FILE:/\u00e9", units: 1, to: null, pick: null },
      { predicate: "RENAMES", resource: "FILE:/a", units: 1, to: "FILE:/b", pick: null },
    ],
    resolutionStrategy: "MERGE",
    assumptions: [{ resource: "FILE:/\u00e9", version: "v1" }],
    priority: world.agent("a").priority,
    savedAt: world.now,
  });
  assert.deepEqual(world.digest("a"), digest);
});

test("A2: a new digest replaces the old one, and RETRY, ABORT and MERGE are the strategies", () => {
  const world = createWorld("a");
  for (const resolutionStrategy of ["RETRY", "ABORT", "MERGE"]) world.save("a", { resolutionStrategy });
  assert.equal(world.digest("a")?.resolutionStrategy, "MERGE");
  const refused = (digest: Partial<typeof plainDigest>) => {
    const ask = { type: "save_digest", actor: world.as("a"), agentId: "a" } as const;
    return world.refused("invalid_digest", { ...ask, digest: { ...plainDigest, ...digest } }).field;
  };
  assert.equal(refused({ resolutionStrategy: "retry" }), "resolution_strategy");
  assert.equal(refused({ checkpointId: "" }), "checkpoint_id");
  assert.equal(refused({ resumePoint: "x".repeat(257) }), "resume_point");
  assert.equal(refused({ context: "x".repeat(limits.digestBytesMax) }), "context");
  const intent = { predicate: "MUTATES", resource: "FILE:/a" };
  assert.equal(refused({ intentBacklog: Array.from({ length: 257 }, () => intent) }), "intent_backlog");
});

test("A5: a resume that names no assumption of its own has those of the digest judged", () => {
  const world = createWorld("a", "b");
  const assumptions = [{ resource: "FILE:/x", version: "v1" }];
  world.save("a", { assumptions });
  world.release(world.grant("b", "MUTATES FILE:/x").id, "v2");
  const resumed = world.resume("a");
  assert.deepEqual(
    resumed.assumptions.map(({ outcome }) => outcome),
    ["failed"],
  );
  assert.equal(world.digest("a"), null);
});
