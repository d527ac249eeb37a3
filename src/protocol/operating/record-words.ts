/** The words for a tenant's settings and quotas, set and shown. */
import type { tenantQuotas, tenantSettings } from "../../kernel/contract/records.ts";
import type { Words } from "../schema/from-fields.ts";

export const settingsWords: Words<typeof tenantSettings> = {
  strategy: "Switched only while nobody waits (W7).",
  ttl_ms_default: "A lease's TTL where the caller sends none.",
  ttl_ms_max: "What a TTL is capped at.",
  wait_timeout_ms_default: "A wait's timeout where the caller sends none.",
  wait_timeout_ms_max: "What a wait's timeout is capped at.",
  claim_within_ms: "How soon a grant that ended a wait must be collected (W8).",
  retry_ms_base: "The first term of DIE's hint (W5).",
  idle_timeout_ms_by_type:
    "Idle timeouts by the type of resource, such as `GPU`; holders can only ask for shorter ones; replaces what there was (L10).",
  retry_ms_cap: "What that hint is capped at, before jitter.",
  supervisor: "Who gets policy escalations of tasks that name no other (T5); null: each task's principal.",
  foreign_receipts: "Receipts about tasks that this system does not own are taken into the ledger too (R1).",
};

export const quotasWords: Words<typeof tenantQuotas> = {
  leases_max: "Leases alive at once.",
  waiters_max: "Requests waiting at once.",
  agents_max: "Registered agents.",
  resources_max: "Declared resources.",
  patterns_max: "Leases on patterns alive at once.",
  tasks_max: "Tasks.",
  receipts_max: "Receipts in the ledger; beyond it, what was accepted can still be completed (R8).",
  receipt_bytes_max: "Their size together, about as they are stored (R8).",
  foreign_obligations_max: "Open obligations on tasks that this system does not own (R8).",
  connections_max: "Connections at once, of all its credentials together (S4).",
  subscriptions_max: "Subscriptions to events at once (S4).",
  held_max: "Answers that are held for a long poll at once (S4).",
  unread_bytes_max: "Bytes that wait for readers which do not read; beyond it the slowest are cut off (S4).",
  requests_per_second_max:
    "Requests a second of all its credentials together; every 16 KiB of a body or an answer is one more (S4); null: the server's limit for tenants.",
  artifacts_max: "Stored artifacts (S4).",
  artifact_bytes_max: "Their size together; each counts at least 4,096 bytes (S4).",
  payload_bytes_max: "Bodies and inputs of tasks that are not done, in bytes as they are stored.",
  digest_bytes_max: "Digests of agents, in bytes as they are stored.",
  memory_bytes_max: "About what memory keeps of the tenant's live records, in bytes.",
  lease_time_ms_max: "The longest that one lease may live, however often it is extended; null: no limit.",
  tenant_lease_time_ms_max: "Lease time of all leases together, per day; null: no limit.",
  kinds: "Units of live leases by the type of resource, such as `GPU`; replaces what there was (G2).",
};
