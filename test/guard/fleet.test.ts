import assert from "node:assert/strict";
import { test } from "node:test";
import { idealMs, planEdits } from "../../experiments/fleet/edits.ts";
import { runFleet } from "../../experiments/fleet/fleet.ts";
import { randomFrom } from "../../experiments/fleet/random.ts";

const scale = { agents: 3, files: 2, edits: 9, thinkMs: [50, 150], crashes: 0 } as const;
const edits = planEdits(scale, randomFrom(1));
const limitMs = 120_000;

test("a small fleet that edits the same files through the hooks loses no edit, and no agent is stuck", async () => {
  const { lost, stuck } = await runFleet("guards", scale, edits, limitMs);
  assert.deepEqual({ lost, stuck }, { lost: 0, stuck: 0 });
});

test("with MCP and guards, as init sets them up, it loses none either", async () => {
  const { lost, stuck, spent } = await runFleet("guards and MCP", scale, edits, limitMs);
  assert.deepEqual({ lost, stuck }, { lost: 0, stuck: 0 });
  assert.ok(spent.mcp > 0 && spent.hookCount > edits.length);
});

test("without guards the same fleet loses edits", async () => {
  const { lost } = await runFleet("no guards", scale, edits, limitMs);
  assert.ok(lost > 0);
});

test("an ideal schedule takes at least the work of its longest agent or file, and at most the sum of all work", () => {
  for (let seed = 0; seed < 20; seed++) {
    const plan = planEdits({ agents: 4, files: 3, edits: 24, thinkMs: [10, 90], crashes: 0 }, randomFrom(seed));
    const sum = (list: typeof plan) => list.reduce((total, { thinkMs }) => total + thinkMs, 0);
    const agents = [0, 1, 2, 3].map((agent) => sum(plan.filter((edit) => edit.agent === agent)));
    const files = [...new Set(plan.map(({ file }) => file))].map((file) =>
      sum(plan.filter((edit) => edit.file === file)),
    );
    const ideal = idealMs(plan);
    assert.ok(ideal >= Math.max(...agents, ...files) && ideal <= sum(plan), `seed ${seed}`);
  }
});
