/** What replies look like: the schemas that OpenAPI shows, and that the encoders' tests hold them to. */
import { intent } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import {
  always,
  anything,
  choice,
  either,
  flag,
  integer,
  list,
  map,
  nullable,
  record,
  sometimes,
  text,
  time,
} from "../schema/schema.ts";
import {
  cellStates,
  denialReasons,
  leaseStates,
  pauseReasons,
  predicates,
  resolutionStrategies,
  resourceStates,
  roles,
  strategies,
  unknownState,
  wireAgentStates,
} from "../schema/vocabulary.ts";

const predicate = choice(predicates);
const leaseState = choice(leaseStates);
const expiresInMs = integer({ description: "How long it can still be used; needs no clock of yours." });
const fence = integer({ description: "Greater than every earlier fence of the tenant; show it to the resource." });

export const lease = record(
  {
    id: text(),
    resource: text(),
    predicate,
    agent_id: text(),
    state: leaseState,
    fence,
    generation: integer({ minimum: 1, description: "How often the lease was issued." }),
    units: integer({ minimum: 1 }),
    purpose: nullable(text()),
    acquired_at: time(),
    expires_at: time(),
    expires_in_ms: expiresInMs,
    ttl: integer({ description: "In milliseconds; a heartbeat extends the lease by so much from now." }),
    token: sometimes(text({ description: "Proves the lease to a data plane." })),
    coordinate: sometimes(text({ description: "Where to connect, for a bound resource." })),
  },
  { title: "Lease" },
);

export const blocker = record(
  {
    lease_id: sometimes(text()),
    request_id: sometimes(text()),
    agent_id: text(),
    resource: text(),
    predicate,
    purpose: nullable(text()),
    expires_in_ms: sometimes(integer()),
  },
  { title: "Blocker", description: "Something in the way: a lease, or a request that waits ahead." },
);

export const blockers = {
  blocked_by: list(blocker, { maxItems: 16 }),
  blocked_by_total: integer({ description: "How many there are, listed or not." }),
};

export const observationUpdate = record(
  {
    since: time(),
    truncated: flag({ description: "Older history was pruned; there may have been more." }),
    changes: list(record({ resource: text(), predicate, agent_id: text(), at: time(), version: sometimes(text()) })),
  },
  { title: "ObservationUpdate", description: "What happened to the resources the agent relied on." },
);

const requestId = nullable(text({ description: "For the question after the request; null for a dry run." }));

export const granted = record(
  {
    verdict: choice(["GRANTED"]),
    request_id: requestId,
    leases: list(lease),
    warnings: list(text()),
    observation_update: sometimes(observationUpdate),
  },
  { title: "Granted" },
);

export const waiting = record(
  {
    verdict: choice(["WAIT"]),
    request_id: requestId,
    position: integer({ description: "1 for the first in line; 0 while cells set the leases up." }),
    ...blockers,
    wait_timeout_ms: integer(),
    claim_within_ms: integer({
      description: "Once granted, ask for the request or send a heartbeat within this time.",
    }),
    warnings: sometimes(list(text())),
  },
  { title: "Waiting" },
);

export const openRequest = record(
  {
    request_id: text(),
    agent_id: text(),
    state: choice(["WAITING", "BINDING"]),
    intents: list(intent),
    purpose: nullable(text()),
    submitted_at: time(),
    wait_timeout_ms: integer(),
    times_out_in_ms: integer({ description: "How long it can still wait; needs no clock of yours." }),
    position: integer({ description: "1 for the first in line; 0 while cells set the leases up." }),
    ...blockers,
  },
  { title: "OpenRequest", description: "A request that waits, and what it waits for." },
);

export const died = record(
  {
    verdict: choice(["DIE"]),
    error: choice(["die"]),
    detail: text(),
    retry_after_ms: integer(),
    attempt: integer({ minimum: 1 }),
    priority_timestamp: integer(),
    ...blockers,
  },
  { title: "Died" },
);

export const paused = record(
  {
    verdict: choice(["PAUSED"]),
    error: choice(["paused"]),
    reason: choice(pauseReasons),
    detail: text(),
    resource: sometimes(text()),
  },
  { title: "Paused" },
);

export const denied = record(
  { error: choice(["lease_denied"]), detail: text(), reason: choice(denialReasons), field: sometimes(text()) },
  { title: "Denied" },
);

export const agent = record(
  {
    agent_id: text(),
    state: choice(wireAgentStates),
    priority_timestamp: integer({ description: "Older is smaller; it stays for the unit of work." }),
    epoch: integer({ description: "Which instance of the agent is the present one." }),
    labels: map(text(), {}, limits.labelsMax),
    attempts: integer({ description: "How often it died since its last grant." }),
    paused_by_operator: flag(),
    registered_at: time(),
    paused_at: nullable(time()),
    returns_to: sometimes(choice(wireAgentStates)),
  },
  { title: "Agent" },
);

export const registered = record(
  {
    agent_id: text(),
    agent_token: text({ description: "The credential of this instance; an older instance's is void." }),
    priority_timestamp: integer(),
    epoch: integer(),
    state: choice(wireAgentStates),
  },
  { title: "RegisteredAgent" },
);

export const digest = record(
  {
    agent_id: text(),
    checkpoint_id: text(),
    resume_point: text(),
    context: anything({ description: "Whatever the agent saved." }),
    intent_backlog: list(intent),
    resolution_strategy: choice(resolutionStrategies),
    priority_timestamp: integer(),
    saved_at: time(),
  },
  { title: "Digest" },
);

export const leaseEnd = record(
  {
    id: text(),
    state: choice([...leaseStates, unknownState]),
    error: sometimes(text({ description: "Why a live one could not be served." })),
  },
  { title: "LeaseEnd" },
);

export const verified = either([
  record({ id: text(), state: leaseState, resource: text(), predicate, fence, expires_in_ms: expiresInMs }),
  record({ id: text(), state: choice([unknownState]) }),
]);

export const resource = record(
  {
    resource: text(),
    state: choice(resourceStates),
    capacity: nullable(integer()),
    cell: nullable(text()),
    driver: sometimes(nullable(text({ description: "What its cell serves it with." }))),
    hardware: sometimes(list(text())),
    fault: sometimes(nullable(text({ description: "Why its cell cannot serve it now." }))),
    reason: nullable(text()),
    fenced_at: nullable(time()),
    declared_at: time(),
  },
  { title: "Resource" },
);

const cellFields = {
  cell: text(),
  state: choice(cellStates),
  reason: nullable(text({ description: "Why it is gone." })),
  withdrawn: flag({ description: "Nothing new is leased on its resources (G12)." }),
  version: nullable(text()),
  since: time({ description: "When this last changed." }),
  enrolled_at: time(),
};

export const cell = record(cellFields, { title: "Cell" });

export const cellView = record(
  {
    ...cellFields,
    connected: flag({ description: "To this server, now." }),
    resources: list(
      record({
        resource: text(),
        driver: nullable(text()),
        capacity: nullable(integer()),
        hardware: list(text()),
        ready: flag(),
        fault: nullable(text({ description: "Why the cell cannot serve it." })),
        fenced: nullable(text({ description: "Why nothing is leased on it until it is reset." })),
        withdrawn: flag(),
        leases: integer({ description: "Live ones." }),
      }),
    ),
  },
  { title: "CellView" },
);

export const verifiedToken = record(
  {
    valid: always(true),
    tenant: text(),
    lease,
    caveats: list(
      record({
        type: text(),
        expires_at: sometimes(time()),
        path: sometimes(text()),
        operations: sometimes(list(text())),
        program: sometimes(text()),
        hardware: sometimes(text()),
        bytes_max: sometimes(integer()),
      }),
      { description: "What the token was narrowed by; all of it allows what was asked." },
    ),
  },
  { title: "VerifiedToken" },
);

export const tokenKeys = record(
  {
    keys: list(
      record({
        key_id: text(),
        created_at: time(),
        retires_at: nullable(
          time({ description: "Nothing made with it is taken from then on; null: the present one." }),
        ),
      }),
    ),
  },
  { title: "TokenKeys", description: "The master keys of tokens, without the keys." },
);

export const tenant = record(
  {
    tenant_id: text(),
    suspended: flag(),
    reason: nullable(text()),
    settings: record({
      strategy: choice(strategies),
      ttl_ms_default: integer(),
      ttl_ms_max: integer(),
      wait_timeout_ms_default: integer(),
      wait_timeout_ms_max: integer(),
      claim_within_ms: integer(),
      retry_ms_base: integer(),
      retry_ms_cap: integer(),
    }),
    quotas: record({
      leases_max: integer(),
      waiters_max: integer(),
      agents_max: integer(),
      resources_max: integer(),
      patterns_max: integer(),
      tasks_max: integer(),
      lease_time_ms_max: nullable(integer()),
      tenant_lease_time_ms_max: nullable(integer()),
      kinds: map(integer(), {}, limits.kindsMax),
    }),
    created_at: time(),
  },
  { title: "Tenant" },
);

const keyFields = {
  key_id: text(),
  role: choice(roles),
  tenant_id: text(),
  label: nullable(text()),
  created_at: time(),
};

export const key = record(keyFields, { title: "Key" });
export const newKey = record(
  { ...keyFields, key: text({ description: "The secret; shown this once." }) },
  { title: "NewKey" },
);

export function page<const K extends string>(items: K, shape: Parameters<typeof list>[0]) {
  return record({ [items]: list(shape), next_cursor: nullable(text({ description: "null on the last page." })) });
}

export const nothingMore = record({}, { title: "Done" });
