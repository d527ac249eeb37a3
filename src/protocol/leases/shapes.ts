/** What replies look like: the schemas that OpenAPI shows, and that the encoders' tests hold them to. */
import { only, without } from "../../kernel/contract/field.ts";
import { limits } from "../../kernel/contract/limits.ts";
import { keyScopes } from "../../kernel/contract/policy-records.ts";
import {
  agent as agentFields,
  cell as cellFields,
  digest as digestFields,
  intent,
  key as keyFields,
  lease as leaseFields,
  request as requestFields,
  resource as resourceFields,
  tenant as tenantFields,
  tenantQuotas,
  tenantSettings,
} from "../../kernel/contract/records.ts";
import { blocker as blockerFields, observation as observationFields, verdicts } from "../../kernel/contract/replies.ts";
import { scopes } from "../operating/policy-shapes.ts";
import { quotasWords, settingsWords } from "../operating/record-words.ts";
import { intent as intentShape } from "../schema/fields.ts";
import { outputs, parts, registerShape } from "../schema/from-fields.ts";
import { always, choice, either, flag, integer, list, nullable, record, sometimes, text } from "../schema/schema.ts";
import * as views from "../schema/views.ts";
import { denialReasons, resourceStates, unknownState, wireAgentStates } from "../schema/vocabulary.ts";

registerShape(intent, intentShape);

const expiresInMs = integer({ description: "How long it can still be used; needs no clock of yours." });

export const leaseParts = {
  ...outputs(leaseFields, {
    id: "The lease's id.",
    state: "ACTIVE while it can be used.",
    units: "Units of a counted resource.",
    acquired_at: "When it was granted.",
    expires_at: "When it ends without a heartbeat.",
    ttl: "In milliseconds; a heartbeat extends the lease by this much from now.",
    coordinate: "Where to connect, for a bound resource.",
  }),
  expires_in_ms: expiresInMs,
  token: sometimes(text({ description: "Proves the lease to a data plane." })),
};

export const lease = record(leaseParts, { title: "Lease" });

registerShape(leaseFields, lease);

const blocker = record(parts(blockerFields), {
  title: "Blocker",
  description: "Something in the way: a lease, or a request that waits ahead.",
});
registerShape(blockerFields, blocker);

export const observationUpdate = record(
  parts(observationFields, { truncated: "There were more changes, or older history was pruned." }),
  {
    title: "ObservationUpdate",
    description: "What others did to the resources that concern the agent while it was not executing (A4).",
  },
);
registerShape(observationFields, observationUpdate);

/** A4: the answer that lets an agent go on after a pause says what happened meanwhile. */
/** Very many leases are not all listed. */
export const leasesTotal = {
  leases_total: sometimes(
    integer({ description: `How many there are; absent where all are listed. At most ${limits.leasesListedMax} are.` }),
  ),
};

export const update = { observation_update: sometimes(observationUpdate) };
export const keptLease = record({ ...leaseParts, ...update }, { title: "KeptLease" });

const waitWords = {
  request_id: "For the question after the request; null for a dry run.",
  position: "1 for the first in line; 0 while cells set the leases up.",
  blocked_by: "At most 16, leases first.",
  blocked_by_total: "How many there are, listed or not.",
  units_back_in_ms: "Where units that come back with time are waited for (G15): when enough of them are back.",
  claim_within_ms: "Once granted, ask for the request or send a heartbeat within this time.",
};

const grantWords = {
  ...waitWords,
  claim_within_ms: "Only where the grant is not collected (W8): send a heartbeat within this time, or it lapses.",
};
export const granted = record(parts(views.granted, grantWords), { title: "Granted" });
export const waiting = record(parts(views.waiting, waitWords), { title: "Waiting" });
export const standby = record(parts(views.standby, waitWords), {
  title: "Standby",
  description: "It reserves nothing; at the end of `wait_timeout_ms` it ends in DIE (W14).",
});
export const died = record(parts(views.died, waitWords), { title: "Died" });
export const paused = record(parts(views.paused), { title: "Paused" });

const { lease_ids: _leaseIds, ...openProperties } = outputs(requestFields, {
  request_id: "For the question after the request.",
  state: "WAITING, STANDBY (W14), or BINDING while cells set the leases up.",
  submitted_at: "When it was submitted.",
  wait_timeout_ms: "How long it waits at most.",
});

export const openRequest = record(
  {
    ...openProperties,
    state: choice(["WAITING", "STANDBY", "BINDING"]),
    times_out_in_ms: integer({ description: "How long it can still wait; needs no clock of yours." }),
    position: sometimes(integer({ description: `${waitWords.position} Absent in STANDBY.` })),
    ...parts(only(verdicts.waiting, "blockers", "blockersTotal"), waitWords),
  },
  { title: "OpenRequest", description: "A request that waits, and what it waits for." },
);

export const denied = record(
  { error: choice(["lease_denied"]), detail: text(), reason: choice(denialReasons), field: sometimes(text()) },
  { title: "Denied" },
);

/** L13: shown to those above only. */
export const registeredBy = {
  registered_by: sometimes(
    nullable(text({ description: "The key that it belongs to, for those above; null: to nobody below them (L13)." })),
  ),
};

const agentParts = {
  ...outputs(agentFields, {
    epoch: "Which instance of the agent is the present one.",
    state: "Where it is in its unit of work (A1).",
    attempts: "How often it died since its last grant.",
    paused_by_operator: "Whether its operator has paused it (W9).",
    registered_at: "When it was registered.",
    paused_at: "Since when it is PAUSED.",
    paused_for: "Why it is PAUSED: a verdict (W9), a wound (W7), or the loss of its last lease.",
    retry_at: "After DIE: when it is to ask again (W5).",
  }),
  state: choice(wireAgentStates),
  ...registeredBy,
  returns_to: sometimes(choice(wireAgentStates, { description: "Of an agent in DIE_RESTART." })),
};

export const agent = record(agentParts, { title: "Agent" });
export const movedAgent = record({ ...agentParts, ...update }, { title: "MovedAgent" });

export const tokenWords = {
  agent_token: "The credential of this instance; an older instance's is void.",
  agent_token_expires_in_ms: "How long it is good at most: renew it before; it ends with the key it was drawn with.",
};

export const registered = record(parts(views.registered, tokenWords), { title: "RegisteredAgent" });

export const digest = record(
  outputs(digestFields, {
    checkpoint_id: "The caller's name for it.",
    resume_point: "Where to go on.",
    context: "Whatever the agent saved.",
    intent_backlog: "What it still has to acquire.",
    resolution_strategy: "What to do at resume (A2).",
    assumptions: "What the work relies on; judged at resume (A5).",
    saved_at: "When it was saved.",
  }),
  { title: "Digest" },
);

export const leaseEnd = record(parts(views.leaseEnd, { error: "Why a live one could not be served." }), {
  title: "LeaseEnd",
});

export const verified = either([
  record(parts(views.verifiedLease)),
  record({ id: text(), state: choice([unknownState]) }),
]);

const { driver, hardware, fault, ...resourceProperties } = outputs(resourceFields, {
  capacity: "In units; null: not counted.",
  refill_ms: "How long after a grant its units come back (G15); null: when its lease ends.",
  driver: "What its cell serves it with.",
  hardware: "Labels of what it runs on.",
  fault: "Why its cell cannot serve it now.",
  reason: "Why it is fenced.",
  fenced_at: "Since when it is fenced.",
  declared_at: "When it was declared.",
});

export const resource = record(
  {
    ...resourceProperties,
    state: choice(resourceStates),
    driver: sometimes(driver ?? text()),
    hardware: sometimes(hardware ?? text()),
    fault: sometimes(fault ?? text()),
  },
  { title: "Resource" },
);

const cellProperties = outputs(cellFields, {
  state: "READY, or GONE.",
  reason: "Why it is gone.",
  withdrawn: "Nothing new is leased on its resources (G12).",
  version: "Of the program.",
  enrolled_at: "When it first enrolled.",
  since: "When this last changed.",
});

export const cell = record(cellProperties, { title: "Cell" });

export const cellView = record(
  {
    ...cellProperties,
    ...registeredBy,
    connected: flag({ description: "To this server, now." }),
    resources: list(
      record(
        parts(views.hosted, {
          fault: "Why the cell cannot serve it.",
          fenced: "Why nothing is leased on it until it is reset.",
          leases: "Live ones.",
        }),
      ),
    ),
  },
  { title: "CellView" },
);

export const verifiedToken = record(
  {
    valid: always(true),
    tenant: text(),
    lease,
    caveats: list(record(parts(views.tokenCaveat)), {
      description: "What the token was narrowed by; all of it allows what was asked.",
    }),
  },
  { title: "VerifiedToken" },
);

export const tokenKeys = record(
  {
    keys: list(
      record(
        parts(views.tokenKey, { retires_at: "Nothing made with it is taken from then on; null: the present one." }),
      ),
    ),
  },
  { title: "TokenKeys", description: "The master keys of tokens, without the keys." },
);

export const tenant = record(
  {
    ...outputs(without(tenantFields, "settings", "quotas"), {
      suspended: "Nothing is granted while it is.",
      reason: "Why it is suspended.",
    }),
    settings: record(outputs(tenantSettings, settingsWords)),
    quotas: record(outputs(tenantQuotas, quotasWords)),
  },
  { title: "Tenant" },
);

registerShape(keyScopes, scopes);

const keyProperties = outputs(keyFields, {
  key_id: "The key's id, not its secret.",
  role: "What the key allows.",
  label: "What it is for.",
  scopes: "What it is narrowed to; null: nothing beyond its role.",
  expires_at: "It is refused from then on; null: never.",
  last_used_at: "When it, or an agent's token drawn with it, was last shown, to the minute.",
  rotated_at: "When its secret was last replaced.",
  former_until: "Until then the secret before is good too; null: none is.",
});

export const key = record(keyProperties, { title: "Key" });
export const newKey = record(
  {
    ...keyProperties,
    key: text({ description: "The secret; shown this once." }),
    warnings: sometimes(list(text(), { description: "What the first key changes." })),
  },
  { title: "NewKey" },
);

export function page<const K extends string>(items: K, shape: Parameters<typeof list>[0]) {
  return record({
    [items]: list(shape),
    sequence: sometimes(
      integer({
        description:
          "The last event that this is sure to include: follow `/v1/events?since=` from the first page's. Absent where the page is read from history.",
      }),
    ),
    next_cursor: nullable(text({ description: "null on the last page." })),
  });
}

export const nothingMore = record({}, { title: "Done" });
