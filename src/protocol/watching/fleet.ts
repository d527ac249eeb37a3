/** Watching a fleet: the figures of now, agents with what they do, who waits for whom, and what was held at a moment. */
import { activities } from "../../kernel/contract/activities.ts";
import { optional, text as textField } from "../../kernel/contract/field.ts";
import { agentId, resourceName, taskId } from "../../kernel/contract/inputs.ts";
import { page } from "../leases/shapes.ts";
import { reading } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, optional as optionalSchema, text } from "../schema/schema.ts";
import { readIsoTime } from "../schema/text.ts";
import * as shapes from "./fleet-shapes.ts";

const { query } = operationsOf("Watching");

export const getOverview = query({
  name: "get_overview",
  path: "/v1/overview",
  roles: reading,
  summary: "Counts what goes on now",
  description:
    "Agents by what they do, leases, waits, tasks, obligations, resources and cells of the tenant. Counted once a second " +
    "at most, in slices.",
  replies: [ok(shapes.overview, "The figures.")],
});

export const listActivity = query({
  name: "list_activity",
  path: "/v1/activity",
  fields: {
    ...inputs({ agentId: optional(agentId) }, { agent_id: "Only this agent." }),
    activity: optionalSchema(choice(activities, { description: "Only agents that do this." })),
    search: optionalSchema(
      text({ maxLength: limits.searchLengthMax, description: "Only agents with this in their id or labels." }),
    ),
    ...paging,
  },
  roles: reading,
  summary: "Lists agents with what they do",
  description:
    "Each with one of five words (`working`, `blocked`, `waiting_for_person`, `idle`, `lost`), what it holds and what it " +
    "asks for. The words are derived when they are read; docs/api.md says how.",
  example: { activity: "blocked", limit: 100 },
  replies: [ok(page("agents", shapes.agentActivity), "One page.")],
});

export const listWaits = query({
  name: "list_waits",
  path: "/v1/waits",
  fields: {
    ...inputs(
      { agentId: optional(agentId), taskId: optional(taskId), resource: optional(resourceName) },
      { agent_id: "Only what this agent waits for.", task_id: "Only what this task waits for." },
    ),
    waiter: optionalSchema(choice(shapes.waiters, { description: "Only these." })),
    ...paging,
  },
  roles: reading,
  summary: "Lists who waits for whom",
  description:
    "Requests that wait or stand by, agents that got DIE or PAUSED and are to ask again, and tasks that wait for a " +
    "resource, another task or a time; each with what is in its way and the time left. A page may be short where few " +
    "match, and still have a next one.",
  example: { limit: 100 },
  replies: [ok(page("waits", shapes.wait), "One page.")],
});

export const getHistory = query({
  name: "get_history",
  path: "/v1/history",
  fields: {
    ...inputs(
      { at: textField({ max: limits.timeLengthMax }), agentId: optional(agentId), resource: optional(resourceName) },
      { at: "The moment; ISO 8601 with a zone.", agent_id: "Only what this agent held and waited for." },
    ),
    ...paging,
  },
  roles: reading,
  summary: "Says what was held and who waited at a moment",
  description:
    "Leases from memory and history, requests from memory and events; leases come first. `complete` is false where history since " +
    "that moment is pruned. A page may be short, or empty, and still have a next one; what ends while the pages are read may " +
    "be listed twice.",
  example: { at: "2026-01-05T10:00:00Z", limit: 100 },
  replies: [ok(shapes.history, "One page.")],
  refine: ({ at }) =>
    Number.isNaN(readIsoTime(at))
      ? { code: "invalid_request", field: "at", detail: "at is not a time; send one in ISO 8601 with a zone." }
      : null,
  decode: (input, { tenant, actor }) => ({
    type: "get_history",
    tenant,
    actor,
    at: readIsoTime(input.at),
    agentId: input.agent_id ?? null,
    resource: input.resource ?? null,
    limit: input.limit ?? limits.pageDefault,
    cursor: input.cursor ?? null,
  }),
});
