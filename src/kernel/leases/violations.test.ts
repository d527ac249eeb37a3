import assert from "node:assert/strict";
import { test } from "node:test";
import { createWorld } from "../testing/test-world.ts";

test("a write that went past a lease is an event about that lease, and changes nothing", () => {
  const world = createWorld("holder", "writer");
  const { id } = world.grant("holder", "MUTATES FILE:/src/**");
  const report = { type: "report_violation", agentId: "writer", leaseId: id, resource: "FILE:/src/a.ts" } as const;
  const reply = world.ask({ ...report, actor: world.as("writer") });
  assert.equal(reply.type, "lease");
  const [event, ...rest] = world.events;
  assert.ok(event?.type === "lease.violated" && rest.length === 0);
  assert.deepEqual([event.lease.id, event.lease.state, event.reason], [id, "ACTIVE", "writer wrote FILE:/src/a.ts"]);
  assert.deepEqual(world.lease(id), event.lease);
});

test("nobody is reported by another agent, by the holder itself, or for what its lease does not cover", () => {
  const world = createWorld("holder", "writer");
  const { id: leaseId } = world.grant("holder", "MUTATES FILE:/src/a.ts");
  const resource = "FILE:/src/a.ts";
  const refusals = [
    [{ agentId: "writer", leaseId, resource, actor: world.as("holder") }, "forbidden"],
    [{ agentId: "holder", leaseId, resource, actor: world.as("holder") }, "invalid_resource"],
    [{ agentId: "writer", leaseId, resource: "FILE:/src/b.ts" }, "invalid_resource"],
    [{ agentId: "writer", leaseId, resource: "src/a.ts" }, "invalid_resource"],
    [{ agentId: "writer", leaseId: "lse_none", resource }, "lease_unknown"],
    [{ agentId: "nobody", leaseId, resource }, "agent_unknown"],
  ] as const;
  for (const [report, code] of refusals) world.refused(code, { type: "report_violation", ...report });
});
