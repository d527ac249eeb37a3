import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { quotasDefault, settingsDefault } from "../../kernel/contract/limits.ts";
import { predicates } from "../../kernel/contract/predicates.ts";
import { type Agent, agentStates, type Cell, type Lease, type Resource } from "../../kernel/contract/records.ts";
import {
  type EndedTask,
  type Payload,
  type Task,
  type TaskKey,
  taskStatuses,
} from "../../kernel/contract/task-records.ts";
import { toColumns } from "../../store/list-columns.ts";
import { leaseText, readLease, readLeases, readRecord, recordText } from "./record-text.ts";
import { endedTaskText, readEndedTask, taskText } from "./task-text.ts";

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

/** What JSON gives back as it was: it has no negative zero. */
const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);
const someTexts = fc.array(text, { maxLength: 3 });

const anyTask: fc.Arbitrary<Task> = fc.record(
  {
    tenant: text,
    id: text,
    spec: fc.record(
      {
        taskType: text,
        principalAi: text,
        taskSummary: orNull(text),
        payloadPointer: orNull(text),
        expectedOutcomeKind: orNull(text),
        expectedArtifactMime: orNull(text),
        taskPriority: fc.integer(),
        requires: someTexts,
        intents: fc.array(
          fc.record(
            {
              predicate: fc.constantFrom(...predicates),
              resource: text,
              units: fc.nat(),
              to: orNull(text),
              pick: fc.constantFrom("any", null),
            },
            { noNullPrototype: true },
          ),
          { maxLength: 2 },
        ),
        maxAttempts: fc.nat(),
        maxOffers: fc.nat(),
        leaseDuration: fc.nat(),
        requeueDelay: fc.nat(),
        dependsOn: someTexts,
        concurrencyKey: orNull(text),
        concurrencyLimit: fc.nat(),
        speculative: fc.boolean(),
        preemptible: fc.boolean(),
        parentTaskId: orNull(text),
        idempotencyKey: orNull(text),
      },
      { noNullPrototype: true },
    ),
    status: fc.constantFrom(...taskStatuses),
    timestamp: time,
    createdAt: time,
    createdBy: orNull(text),
    notBefore: orNull(time),
    attempts: fc.nat(),
    offers: fc.nat(),
    live: fc.array(
      fc.record(
        {
          leaseId: text,
          fence: fc.nat(),
          workerId: text,
          offeredAt: time,
          acceptedAt: orNull(time),
          receiptId: orNull(text),
          canceled: fc.boolean(),
        },
        { noNullPrototype: true },
      ),
      { maxLength: 2 },
    ),
    past: fc.array(
      fc.record(
        {
          leaseId: text,
          fence: fc.nat(),
          workerId: text,
          acceptedAt: orNull(time),
          receiptId: orNull(text),
          contested: fc.boolean(),
        },
        { noNullPrototype: true },
      ),
      { maxLength: 2 },
    ),
    waitingOn: someTexts,
    obligation: orNull(
      fc.record(
        {
          id: text,
          state: fc.constantFrom("OPEN" as const, "OVERDUE" as const, "CLOSED" as const),
          custodian: text,
          openedAt: time,
        },
        { noNullPrototype: true },
      ),
    ),
    lastWorker: orNull(text),
    lastReceiptId: orNull(text),
    dedupes: fc.array(fc.record({ key: text, fingerprint: text, receiptId: text }, { noNullPrototype: true }), {
      maxLength: 2,
    }),
    progress: json,
    winningReceiptId: orNull(text),
    endedAt: orNull(time),
    endReason: orNull(text),
  },
  { noNullPrototype: true },
);

const anyPayload: fc.Arbitrary<Payload> = fc.record(
  { tenant: text, taskId: text, taskBody: orNull(text), inputs: json },
  { noNullPrototype: true },
);

const anyTaskKey: fc.Arbitrary<TaskKey> = fc.record(
  { tenant: text, key: text, taskId: text, fingerprint: text, forgetAt: time },
  { noNullPrototype: true },
);

test("S1: a stored task comes back as it was, whatever is in it, and so does an ended one with its payload", () => {
  fc.assert(
    fc.property(anyTask, orNull(anyPayload), (task, payload) => {
      assert.deepEqual(readRecord("task", recordText("task", task), 7), { kind: "task", record: task, row: 7 });
      const ended: EndedTask = { ...task, payload };
      assert.deepEqual(readEndedTask(endedTaskText(task, payload)), ended);
    }),
  );
});

test("S1: payloads and the keys of creations come back as they were", () => {
  fc.assert(
    fc.property(anyPayload, anyTaskKey, (payload, key) => {
      const kind = "payload";
      assert.deepEqual(readRecord(kind, recordText(kind, payload), 7), { kind, record: payload, row: 7 });
      const stored = recordText("task_key", key);
      assert.deepEqual(readRecord("task_key", stored, 7), { kind: "task_key", record: key, row: 7 });
    }),
  );
});

test("a stored task reads the same where the store's view looks", () => {
  fc.assert(
    fc.property(anyTask, (task) => {
      const { tenant, id, status, spec, attempts, createdAt } = task;
      const list = JSON.parse(taskText(task)) as unknown[];
      const { taskType, principalAi, taskPriority } = spec;
      assert.deepEqual(list.slice(0, 8), [
        tenant,
        id,
        status,
        taskType,
        principalAi,
        taskPriority,
        attempts,
        createdAt,
      ]);
    }),
  );
});

test("data from before there were tasks is read with what is usual now", () => {
  const counters = { tenant: "t", fence: 7, priority: 1, arrival: 2, epochFloor: 0, leaseTimeMs: 0, windowStart: 0 };
  const { record } = readRecord("counters", JSON.stringify(counters), 1);
  assert.deepEqual(record, { ...counters, receipts: 0 });
  const tenant = {
    id: "t",
    suspended: false,
    suspendReason: null,
    settings: {},
    quotas: { leasesMax: 5 },
    createdAt: 1,
  };
  const read = readRecord("tenant", JSON.stringify(tenant), 1);
  assert.deepEqual(read.record, { ...tenant, settings: settingsDefault, quotas: { ...quotasDefault, leasesMax: 5 } });
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

test("S1: what a cell said, and what an intent left open, comes back as it was stored", () => {
  const cell: Cell = {
    tenant: "t1",
    id: "c1",
    session: "s1",
    keyId: "key-1",
    state: "GONE",
    goneReason: "shut down",
    withdrawn: true,
    version: "0.1.0",
    enrolledAt: 1,
    changedAt: 2,
    aliveBy: 3,
  };
  assert.deepEqual(readRecord("cell", recordText("cell", cell), 7), { kind: "cell", record: cell, row: 7 });
  const resource: Resource = { ...plainResource, driver: "tcp", hardware: ["h100"], fault: "hot", cell: "c1" };
  assert.deepEqual(readRecord("resource", recordText("resource", resource), 7).record, resource);
});

test("S1: data from before there were cells reads as if none had ever said anything, and nothing was left open", () => {
  const older = without(plainResource, ["driver", "hardware", "fault"]);
  assert.deepEqual(readRecord("resource", JSON.stringify(older), 7).record, plainResource);
  const intent = { predicate: "MUTATES", resource: "FILE:/a", units: 1, to: null };
  const intents = [{ ...intent, pick: null }];
  const request = readRecord("request", JSON.stringify({ id: "req_1", intents: [intent] }), 7);
  assert.deepEqual(request.record, { id: "req_1", intents, picked: [] });
  const digest = readRecord("digest", JSON.stringify({ agentId: "a", intentBacklog: [intent] }), 7);
  assert.deepEqual(digest.record, { agentId: "a", intentBacklog: intents });
  const quotas = without(quotasDefault, ["kinds"]);
  const tenant = readRecord("tenant", JSON.stringify({ id: "t1", settings: settingsDefault, quotas }), 7);
  assert.deepEqual(tenant.record, { id: "t1", settings: settingsDefault, quotas: quotasDefault });
});

function without(record: object, names: readonly string[]): object {
  return Object.fromEntries(Object.entries(record).filter(([name]) => !names.includes(name)));
}

const plainResource: Resource = {
  tenant: "t1",
  name: "GPU:/0",
  capacity: null,
  cell: null,
  driver: null,
  hardware: [],
  fault: null,
  fenced: false,
  fenceReason: null,
  fencedAt: null,
  withdrawn: false,
  declaredAt: 1,
};
