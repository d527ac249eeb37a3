import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { recordFields } from "../../kernel/contract/kinds.ts";
import {
  lease,
  leaseRow,
  quotasDefault,
  type RecordKind,
  resource,
  settingsDefault,
} from "../../kernel/contract/records.ts";
import { payload, task, taskRow } from "../../kernel/contract/task-records.ts";
import { toColumns } from "../../store/list-columns.ts";
import { endedTaskText } from "../batch.ts";
import { anyRecord } from "../testing/any-record.ts";
import { leaseText, readEndedTask, readLease, readLeases, readRecord, recordText } from "./record-text.ts";

const anyLease = anyRecord(lease);
const anyTask = anyRecord(task);

test("S1: a stored record of any kind comes back as it was, whatever is in it", () => {
  for (const kind of Object.keys(recordFields) as RecordKind[]) {
    fc.assert(
      fc.property(anyRecord(recordFields[kind]), (record) => {
        const read = readRecord(kind, recordText(kind, record as never), 7);
        assert.deepEqual(read, { kind, record, row: 7 });
      }),
    );
  }
});

test("S1: leases that the store hands over by column are the same as one by one", () => {
  fc.assert(
    fc.property(fc.array(anyLease), (leases) => {
      const lists = leases.map((one) => JSON.parse(leaseText(one)) as unknown[]);
      assert.deepEqual(readLeases(toColumns([...leases.keys()], lists)), leases);
      assert.deepEqual(
        leases.map((one) => readLease(leaseText(one))),
        leases,
      );
    }),
  );
});

test("S1: an ended task comes back with its payload", () => {
  fc.assert(
    fc.property(anyTask, fc.option(anyRecord(payload), { nil: null }), (one, carried) => {
      assert.deepEqual(readEndedTask(endedTaskText(one, carried)), { ...one, payload: carried });
    }),
  );
});

/** Written by version 0.1. */
const texts: readonly (readonly [RecordKind, string])[] = [
  [
    "lease",
    '["default","lse_01jcs8qm5t6w8y0a","FILE:/src/auth.ts","MUTATES","agt_01jcs8qk2m9x4n7r","ACTIVE",4711,1,1794776391123,1794776451123,60000]',
  ],
  [
    "lease",
    '["default","lse_01jcs8qm5t6w8y0a","FILE:/src/auth.ts","MUTATES","agt_01jcs8qk2m9x4n7r","CLOSING",4711,1,1794776391123,1794776451123,60000,{"holder":"T-1","units":2,"purpose":"rename login()","tokens":true,"idleTimeout":5,"activeAt":6,"claimBy":7,"heldUntil":8,"verified":true,"linkedTo":"lse_2","cell":"c","cellBy":9,"coordinate":"x:1","closingAs":"REVOKED","endedAt":10,"endReason":"why","version":"v2"}]',
  ],
  [
    "agent",
    '{"tenant":"default","id":"agt_01jcs8qk2m9x4n7r","state":"PLANNING","priority":1763240391123,"attempts":0,"epoch":1,"registeredAt":1794776391123,"idleSince":1794776391123}',
  ],
  [
    "agent",
    '{"tenant":"default","id":"agt_01jcs8qk2m9x4n7r","state":"PLANNING","priority":1763240391123,"attempts":0,"epoch":1,"registeredAt":1794776391123,"idleSince":1794776391123,"labels":{"host":"build-3"},"restarting":true,"pausedByOperator":true,"pausedAt":5}',
  ],
  [
    "task",
    '["default","T-01jcs8qm5t6w8y0a2b4d6f","queued","code.generate","delegate.root",0,0,1794776391123,7,3,10,900000,30000,{}]',
  ],
  [
    "task",
    '["default","T-01jcs8qm5t6w8y0a2b4d6f","queued","code.generate","delegate.root",0,0,1794776391123,7,3,10,900000,30000,{"taskSummary":"Generate Python function for CSV parsing","payloadPointer":"p","expectedOutcomeKind":"artifact_pointer","expectedArtifactMime":"text/x-python","requires":["python"],"intents":[{"predicate":"MUTATES","resource":"FILE:/src/csv.py","units":1,"to":null,"pick":null}],"dependsOn":["T-0"],"concurrencyKey":"k","concurrencyLimit":2,"speculative":true,"preemptible":true,"parentTaskId":"T-9","idempotencyKey":"i","createdBy":"key_1","notBefore":5,"offers":1,"live":[["l",1,"w.1",2,null,null,false]],"past":[["m",0,"w.2",1,"r",true]],"waitingOn":["T-0"],"obligation":["o","OPEN","c",3],"lastWorker":"w.1","lastReceiptId":"r","dedupes":[{"key":"k","fingerprint":"f","receiptId":"r"}],"progress":{"percent":1},"winningReceiptId":"r2","endedAt":9,"endReason":"done"}]',
  ],
  ["payload", '["default","T-01jcs8qm5t6w8y0a2b4d6f","Create a function that reads CSV…",{"language":"python"}]'],
];

test("what version 0.1 stored is read, and written again byte for byte but for newer fields", () => {
  const newer = (text: string): string =>
    text
      .replace('null,false]],"past"', 'null,false,null,null,null]],"past"')
      .replace('"r"}]', '"r","submittedBy":null}]');
  for (const [kind, text] of texts)
    assert.equal(recordText(kind, readRecord(kind, text, 1).record as never), newer(text));
});

test("fields that version 0.1 stored by position are where the store's views look", () => {
  const first = ["tenant", "id", "resource", "predicate", "agentId", "state", "fence", "generation", "acquiredAt"];
  assert.deepEqual(leaseRow, [...first, "expiresAt", "ttl"]);
  const ofTask = ["tenant", "id", "status", "taskType", "principalAi", "taskPriority", "attempts", "createdAt"];
  assert.deepEqual(taskRow.slice(0, ofTask.length), ofTask);
});

test("data from before a field existed is read with what is usual now", () => {
  fc.assert(
    fc.property(anyRecord(recordFields.counters), anyRecord(recordFields.tenant), anyRecord(resource), (...records) => {
      const [counters, tenant, named] = records;
      const { receipts: _receipts, receiptBytes: _bytes, ...older } = counters;
      const none = { receipts: 0, receiptBytes: 0 };
      assert.deepEqual(readRecord("counters", JSON.stringify(older), 1).record, { ...older, ...none });
      const read = readRecord("tenant", JSON.stringify({ ...tenant, settings: {}, quotas: { leasesMax: 5 } }), 1);
      const filled = { settings: settingsDefault, quotas: { ...quotasDefault, leasesMax: 5 } };
      assert.deepEqual(read.record, { ...tenant, ...filled });
      const { driver: _driver, hardware: _hardware, fault: _fault, ...before } = named;
      const usual = { driver: null, hardware: [], fault: null };
      assert.deepEqual(readRecord("resource", JSON.stringify(before), 1).record, { ...named, ...usual });
    }),
  );
});

test("intents from before one could be picked have no choice", () => {
  const intent = { predicate: "MUTATES", resource: "FILE:/a", units: 1, to: null };
  fc.assert(
    fc.property(anyRecord(recordFields.request), anyRecord(recordFields.digest), (request, digest) => {
      const { picked: _picked, ...older } = { ...request, intents: [intent] };
      const read = readRecord("request", JSON.stringify(older), 1).record;
      assert.deepEqual(read, { ...request, intents: [{ ...intent, pick: null }], picked: [] });
      const saved = readRecord("digest", JSON.stringify({ ...digest, intentBacklog: [intent] }), 1).record;
      assert.deepEqual(saved, { ...digest, intentBacklog: [{ ...intent, pick: null }] });
    }),
  );
});
