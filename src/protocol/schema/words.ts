/** The words for fields that many operations and records share. */
export const commonWords = {
  agent_id: "The agent's id.",
  lease_id: "The lease's id.",
  lease_ids: "Ids of leases of this agent; left out: all of them.",
  tenant_id: "The tenant's id.",
  task_id: "The task's id.",
  resource:
    "`TYPE:/path`. In the path `*` and `?` match within a segment, `**` any number of segments; " +
    "`/d/**` at the end leases `/d` and everything below it.",
  predicate: "What the holder intends to do with the resource.",
  purpose: "Why, in the agent's words; shown to callers that conflict with it.",
  reason: "Why, for those it concerns.",
  version: "What the resource is now (a hash, or any text), for agents that resume later.",
  activity: "Whether the agent is working, for idle detection (L10).",
  labels: "Names and values of the caller's choice.",
  generation: "How often the lease was issued.",
  fence: "Greater than every earlier fence of the tenant; show it to the resource.",
  task_type: "The kind of work, such as `code.generate`.",
  cell: "The cell's name.",
  priority_timestamp: "Older is smaller; it stays for the unit of work.",
  intents: "What is needed: granted together or not at all.",
  created_at: "When it was created.",
} as const;
export type CommonWords = typeof commonWords;
