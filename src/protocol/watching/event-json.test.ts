import assert from "node:assert/strict";
import { test } from "node:test";
import type { KernelEvent } from "../../kernel/contract/events.ts";
import { request as requestFields } from "../../kernel/contract/records.ts";
import { leaseObject } from "../leases/lease-json.ts";
import { agentObject, resourceObject } from "../operating/record-json.ts";
import { show } from "../schema/convert.ts";
import {
  sampleAgent,
  sampleLease,
  sampleNow,
  sampleReceipt,
  sampleRequest,
  sampleResource,
  sampleTask,
} from "../testing/sample-records.ts";
import { eventText } from "./event-json.ts";

const happened = { tenant: "acme", at: sampleNow };
const at = "2026-11-15T20:59:51.123Z";

test("an event is type, time and what it is about; nothing is null that can be left out (G10)", () => {
  const lease = sampleLease({ expiresAt: sampleNow + 500 });
  const ended = sampleLease({ state: "RELEASED", version: "sha256:9f2c" });
  const request = sampleRequest();
  const agent = sampleAgent();
  const resource = sampleResource({ fenced: true, fenceReason: "dirty", fencedAt: sampleNow });
  const cases: readonly (readonly [KernelEvent, object])[] = [
    [{ ...happened, type: "lease.granted", lease, reason: null }, { lease: leaseObject(lease, sampleNow) }],
    [
      { ...happened, type: "lease.released", lease: ended, reason: 'said "done"' },
      { lease: leaseObject(ended, sampleNow), version: "sha256:9f2c", reason: 'said "done"' },
    ],
    [{ ...happened, type: "request.waiting", request, reason: null }, { request: show(requestFields, request) }],
    [
      { ...happened, type: "request.died", agentId: 'a"b', attempt: 2, resources: ["FILE:/a"], requestId: null },
      { agent_id: 'a"b', attempt: 2, resources: ["FILE:/a"] },
    ],
    [
      { ...happened, type: "request.died", agentId: "a", attempt: 1, resources: ["FILE:/a"], requestId: "req_1" },
      { agent_id: "a", attempt: 1, resources: ["FILE:/a"], request_id: "req_1" },
    ],
    [{ ...happened, type: "agent.registered", agent }, { agent: agentObject(agent) }],
    [
      { ...happened, type: "agent.transitioned", agentId: "agt_1", from: "PLANNING", to: "DIE_RESTART" },
      { agent_id: "agt_1", from: "PLANNING", to: "DIE_RESTART" },
    ],
    [{ ...happened, type: "resource.fenced", resource }, { resource: resourceObject(resource) }],
    [{ ...happened, type: "tenant.suspended" }, { tenant_id: "acme" }],
    [
      {
        ...happened,
        type: "task.requeued",
        task: sampleTask({ attempts: 2 }),
        workerId: "w.1",
        leaseId: "lse_1",
        reason: "lease_expired",
      },
      {
        task_id: "T-01jcs8qm5t6w8y0a2b4d6f",
        task_type: "code.generate",
        status: "queued",
        attempt: 2,
        worker_id: "w.1",
        lease_id: "lse_1",
        reason: "lease_expired",
      },
    ],
    [
      { ...happened, type: "task.created", task: sampleTask(), workerId: null, leaseId: null, reason: null },
      { task_id: "T-01jcs8qm5t6w8y0a2b4d6f", task_type: "code.generate", status: "queued", attempt: 0 },
    ],
    [
      { ...happened, type: "receipt.stored", receipt: sampleReceipt() },
      { receipt_id: "rcp_7", task_id: "T-01jcs8qm5t6w8y0a2b4d6f", phase: "accepted", sequence: 7 },
    ],
  ];
  for (const [event, content] of cases)
    assert.deepEqual(JSON.parse(eventText(event)), { type: event.type, at, ...content });
});

test("an event's text is one line, so that it can be the data of a server-sent event", () => {
  const lease = sampleLease({ purpose: "two\nlines\r\u2028", resource: "FILE:/ünï" });
  assert.doesNotMatch(eventText({ ...happened, type: "lease.expired", lease, reason: "a\nb" }), /[\r\n]/);
});
