import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { predicates } from "../kernel/predicates.ts";
import { type Agent, agentStates, type Lease } from "../kernel/records.ts";
import { toColumns } from "../store/list-columns.ts";
import { leaseText, readLease, readLeases, readRecord, recordText } from "./record-text.ts";

const time = fc.integer({ min: 1_600_000_000_000, max: 2_000_000_000_000 });
const orNull = <T>(some: fc.Arbitrary<T>) => fc.option(some, { nil: null });
const text = fc.string({ unit: "grapheme", maxLength: 20 });

const anyLease: fc.Arbitrary<Lease> = fc.record(
  {
    tenant: text,
    id: text,
    resource: text,
    predicate: fc.constantFrom(...predicates),
    agentId: text,
    holder: text,
    state: fc.constantFrom("BINDING", "ACTIVE", "HELD", "CLOSING", "RELEASED", "EXPIRED", "REVOKED"),
    fence: fc.nat(),
    generation: fc.integer({ min: 1, max: 9 }),
    units: fc.integer({ min: 1, max: 9 }),
    purpose: orNull(text),
    acquiredAt: time,
    expiresAt: time,
    ttl: fc.nat(),
    tokens: fc.boolean(),
    idleTimeout: orNull(fc.nat()),
    activeAt: time,
    claimBy: orNull(time),
    heldUntil: orNull(time),
    verified: fc.boolean(),
    linkedTo: orNull(text),
    cell: orNull(text),
    cellBy: orNull(time),
    coordinate: orNull(text),
    closingAs: orNull(fc.constantFrom("RELEASED", "EXPIRED", "REVOKED")),
    endedAt: orNull(time),
    endReason: orNull(text),
    version: orNull(text),
  },
  { noNullPrototype: true },
);

test("S1: a stored lease comes back as it was, whatever is in it", () => {
  fc.assert(
    fc.property(anyLease, (lease) => {
      assert.deepEqual(readLease(leaseText(lease)), lease);
      assert.deepEqual(readRecord("lease", recordText("lease", lease), 7), { kind: "lease", record: lease, row: 7 });
    }),
  );
});

test("S1: leases that the store hands over by column are the same as one by one", () => {
  fc.assert(
    fc.property(fc.array(anyLease), (leases) => {
      const lists = leases.map((lease) => JSON.parse(leaseText(lease)) as unknown[]);
      const columns = toColumns([...leases.keys()], lists);
      assert.deepEqual(readLeases(columns), leases);
    }),
  );
});

const anyAgent: fc.Arbitrary<Agent> = fc.record(
  {
    tenant: text,
    id: text,
    labels: fc.dictionary(text, text, { maxKeys: 3, noNullPrototype: true }),
    state: fc.constantFrom(...agentStates),
    restarting: fc.boolean(),
    pausedByOperator: fc.boolean(),
    priority: time,
    attempts: fc.nat(),
    epoch: fc.nat(),
    registeredAt: time,
    pausedAt: orNull(time),
    idleSince: time,
  },
  { noNullPrototype: true },
);

test("S1: a stored agent comes back as it was, whatever is in it", () => {
  fc.assert(
    fc.property(anyAgent, (agent) => {
      assert.deepEqual(readRecord("agent", recordText("agent", agent), 7), { kind: "agent", record: agent, row: 7 });
    }),
  );
});

test("a stored lease is JSON that other programs read too, and reads the same where the store's view looks", () => {
  fc.assert(
    fc.property(anyLease, (lease) => {
      const list = JSON.parse(leaseText(lease)) as unknown[];
      const { tenant, id, resource, predicate, agentId, state, fence, generation, acquiredAt, expiresAt } = lease;
      assert.deepEqual(list.slice(0, 10), [
        tenant,
        id,
        resource,
        predicate,
        agentId,
        state,
        fence,
        generation,
        acquiredAt,
        expiresAt,
      ]);
    }),
  );
});
