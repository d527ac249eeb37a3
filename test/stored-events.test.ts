import assert from "node:assert/strict";
import { test } from "node:test";
import { sentEventText, storedEventText } from "../src/engine/codec/event-text.ts";
import { leaseText } from "../src/engine/codec/records.gen.ts";
import type { KernelEvent } from "../src/kernel/contract/events.ts";
import type { Lease } from "../src/kernel/contract/records.ts";
import {
  sampleAgent,
  sampleLease,
  sampleNow,
  sampleReceipt,
  sampleTask,
} from "../src/protocol/testing/sample-records.ts";
import { eventText } from "../src/protocol/watching/event-json.ts";

const happened = { tenant: "acme", at: sampleNow };
const awkward = 'said "done"\n\\ ünï \u{1f600}';
const lease = sampleLease({ expiresAt: sampleNow + 500 });
const ended = sampleLease({ state: "RELEASED", version: awkward, purpose: awkward, endedAt: sampleNow });
const task = sampleTask({ attempts: 2 });
const events: readonly KernelEvent[] = [
  { ...happened, type: "lease.granted", lease, reason: null },
  { ...happened, type: "lease.released", lease: ended, reason: awkward },
  { ...happened, type: "lease.closing", lease: sampleLease({ cell: "gpu", state: "CLOSING" }), reason: "expired" },
  { ...happened, type: "agent.transitioned", agentId: awkward, from: "PLANNING", to: "DIE_RESTART" },
  { ...happened, type: "agent.registered", agent: sampleAgent() },
  { ...happened, type: "task.created", task, workerId: null, leaseId: null, reason: null },
  { ...happened, type: "task.requeued", task, workerId: awkward, leaseId: "lse_1", reason: awkward },
  { ...happened, type: "receipt.stored", receipt: sampleReceipt({ id: awkward }) },
  { ...happened, type: "request.died", agentId: awkward, attempt: 2, resources: ["FILE:/a"], requestId: null },
  { ...happened, type: "tenant.suspended" },
];

test("an event that is read from the store is sent as it would have been when it happened", () => {
  for (const event of events) {
    const stored = storedEventText(event, new Map(), eventText);
    // The store's thread parses what it reads and encodes it again.
    const read = JSON.stringify(JSON.parse(stored));
    assert.equal(sentEventText("acme", read, eventText), eventText(event), event.type);
  }
});

test("the row of a lease that a commit has encoded already is taken over into its event", () => {
  const texts = new Map<Lease, string>([[lease, leaseText(ended)]]);
  const [event] = events;
  assert.ok(event !== undefined);
  assert.match(sentEventText("acme", storedEventText(event, texts, eventText), eventText), /"state":"RELEASED"/);
});

test("an event that an earlier version stored is sent as it is", () => {
  const stored = eventText({ ...happened, type: "lease.granted", lease, reason: null });
  assert.equal(sentEventText("acme", stored, eventText), stored);
});
