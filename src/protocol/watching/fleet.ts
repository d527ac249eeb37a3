/** Watching a fleet: the figures of now, agents with what they do, who waits for whom, and what was held at a moment. */
import { activities } from "../../kernel/contract/activities.ts";
import { optional } from "../../kernel/contract/field.ts";
import { agentId, resourceName, taskId } from "../../kernel/contract/inputs.ts";
import { page } from "../leases/shapes.ts";
import { reading } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { paging } from "../schema/fields.ts";
import { inputs } from "../schema/from-fields.ts";
import { limits } from "../schema/limits.ts";
import { choice, optional as optionalSchema, text } from "../schema/schema.ts";
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
