/** The closed lists of the wire, for edges that know the protocol only: the kernel's own, and two that it does not have. */
export { eventTypes } from "../../kernel/contract/events.ts";
export { policyActions } from "../../kernel/contract/policy-records.ts";
export { predicates } from "../../kernel/contract/predicates.ts";
export {
  cellStates,
  leaseStates,
  resolutionStrategies,
  roles,
  strategies,
  wireAgentStates,
} from "../../kernel/contract/records.ts";
export { denialReasons } from "../../kernel/contract/refusals.ts";
export { directives, pauseReasons } from "../../kernel/contract/replies.ts";
export { obligationStates, receiptPhases, taskStatuses } from "../../kernel/contract/task-records.ts";

/** The state of an id that never was (L8). */
export const unknownState = "UNKNOWN";

export const resourceStates = ["READY", "FENCED", "WITHDRAWN"] as const;
export type ResourceState = (typeof resourceStates)[number];
