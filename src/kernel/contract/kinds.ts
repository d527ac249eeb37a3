/** Every kind of record with its description, by the name under which it is stored. */
import type { Fields } from "./field.ts";
import { policy } from "./policy-records.ts";
import { agent, cell, counters, digest, key, lease, type RecordKind, request, resource, tenant } from "./records.ts";
import { foreignObligation, payload, task, taskTypeRecord, worker } from "./task-records.ts";
import { write } from "./write-records.ts";

export const recordFields = {
  tenant,
  counters,
  agent,
  digest,
  resource,
  cell,
  request,
  lease,
  key,
  task,
  payload,
  task_type: taskTypeRecord,
  worker,
  foreign_obligation: foreignObligation,
  write,
  policy,
} satisfies Readonly<Record<RecordKind, Fields>>;
