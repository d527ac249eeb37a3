/** Watching: events, the stream, health. The edge serves these itself; they are here for the record and for OpenAPI. */

import { following, reading, watching } from "../operating/roles.ts";
import { ok, operationsOf } from "../operation.ts";
import { agentId, resource } from "../schema/fields.ts";
import { limits } from "../schema/limits.ts";
import { anything, choice, flag, integer, list, optional, record, text } from "../schema/schema.ts";
import { eventTypes } from "../schema/vocabulary.ts";

const { edge } = operationsOf("Watching");

export const events = edge({
  name: "events",
  path: "/v1/events",
  fields: {
    since: optional(integer({ description: "Only events after this sequence number; `Last-Event-ID` says the same." })),
    types: optional(
      list(choice(eventTypes), { maxItems: limits.eventTypesMax, description: "Only these; commas between." }),
    ),
    resource: optional(resource),
    agent_id: optional(agentId),
    batch_ms: optional(
      integer({
        minimum: 0,
        maximum: limits.eventBatchMsMax,
        description:
          "Events are gathered for this long and sent together, which costs the server less; 0 if left out. Not on the stream.",
      }),
    ),
    follow: optional(
      flag({ description: "False: only what there is so far, and then the answer ends. Not on the stream." }),
    ),
  },
  roles: reading,
  summary: "Follows what happens",
  description:
    "Server-sent events; `id` is the sequence number, and `Last-Event-ID` resumes without loss or repetition. " +
    "On the stream this subscribes the connection.",
  example: { since: 1042, types: ["lease.granted", "lease.expired"] },
  replies: [
    {
      ...ok(text({ description: "Each `data` is an event, `{type, at, …}`." }), "The events."),
      mediaType: "text/event-stream",
    },
  ],
  errors: ["history_pruned"],
});

export const stream = edge({
  name: "stream",
  path: "/v1/stream",
  roles: following,
  summary: "Opens a WebSocket for many commands in flight",
  description:
    "A frame is a command `{id, op, input}` or an array of them; `op` is the name of an operation and `input` all its " +
    "fields. Replies `{id, status, body}` and events `{seq, event}` come as they are ready, several in a frame.",
  replies: [ok(text(), "Switching protocols.", 101)],
  errors: ["too_many_in_flight", "slow_reader"],
});

export const healthz = edge({
  name: "healthz",
  path: "/healthz",
  roles: "anyone",
  summary: "Is the process alive?",
  description: "It answers, so it is.",
  replies: [ok(record({ status: choice(["ok"]) }), "It is.")],
});

export const readyz = edge({
  name: "readyz",
  path: "/readyz",
  roles: "anyone",
  summary: "Can it serve?",
  description: "Not while it starts, shuts down, or has lost its store.",
  replies: [ok(record({ status: choice(["ready"]) }), "It can.")],
});

export const metrics = edge({
  name: "metrics",
  path: "/metrics",
  roles: watching,
  summary: "Shows metrics",
  description:
    "In the text format of Prometheus. Operators see the whole server, or the tenant that they name in " +
    "`Leasehold-Tenant`; everybody else the figures of its own tenant.",
  replies: [{ ...ok(text(), "The metrics."), mediaType: "text/plain" }],
});

export const openapi = edge({
  name: "openapi",
  path: "/openapi.json",
  roles: "anyone",
  summary: "Shows this document",
  description: "The reference for all that is served over HTTP.",
  replies: [ok(anything(), "OpenAPI 3.1.")],
});
