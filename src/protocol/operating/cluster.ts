/** Operating: the servers that share one database, and which of them leads. */
import { ok, operationsOf } from "../operation.ts";
import { limits } from "../schema/limits.ts";
import { choice, flag, integer, list, nullable, optional, record, text, time } from "../schema/schema.ts";
import { above, operating } from "./roles.ts";

const { edge } = operationsOf("Operating");

const server = record(
  {
    server_id: text({ description: "Of the process: another one after each start." }),
    url: nullable(text({ description: "Where other servers reach it." })),
    version: text({ description: "Of Leasehold." }),
    alive: flag({ description: "Whether it reported to the database within the last five seconds." }),
    may_lead: flag({ description: "False: it was started with --no-lead, and only passes requests on." }),
    started_at: time({ description: "When it first reported." }),
    seen_at: time({ description: "When it last reported." }),
  },
  { title: "ClusterServer" },
);

const shard = record(
  {
    shard: integer({ description: "Its number." }),
    server_id: nullable(text({ description: "Of its leader; null: nobody leads it." })),
    url: nullable(text({ description: "Of its leader." })),
    epoch: integer({ description: "Grows with every change of leader." }),
    since: nullable(time({ description: "When this leader was elected." })),
    lease_left_ms: nullable(integer({ description: "How long the leader's lease lasts without a renewal." })),
  },
  { title: "ClusterShard" },
);

const cluster = record(
  {
    store: choice(["memory", "postgres", "sqlite"], { description: "Only servers on PostgreSQL can be several." }),
    server_id: text({ description: "Of the server that answers." }),
    now: time({ description: "The service's time." }),
    servers: list(server),
    shards: list(shard),
  },
  { title: "Cluster" },
);

export const getCluster = edge({
  name: "get_cluster",
  path: "/v1/cluster",
  roles: above,
  summary: "Shows servers, and who leads",
  description:
    "On PostgreSQL every server that reported within the last minute, and of each shard its leader, its epoch and since when it " +
    "leads. A server without others shows itself.",
  replies: [ok(cluster, "As the database has it now.")],
});

export const resignLeader = edge({
  name: "resign_leader",
  method: "POST",
  path: "/v1/cluster/resign",
  roles: operating,
  fields: {
    server_id: optional(
      text({ maxLength: limits.idLengthMax, description: "Whose shards; the server that answers if absent." }),
    ),
    shard: optional(
      integer({ minimum: 0, description: "Only this shard, of any server; all of the server's if absent." }),
    ),
  },
  summary: "Lets other servers lead",
  description:
    "A leader finishes what is under way and resigns; another server serves within about a second. It is refused where no " +
    "other server could lead.",
  example: {},
  replies: [
    ok(
      record({
        server_id: text({ description: "Of the server that resigns." }),
        epoch: integer({ description: "Of the term that ends; of several, of the first." }),
        shards: list(integer({ minimum: 0 }), { description: "Those that it resigns." }),
      }),
      "It resigns once this answer has left; another server within about a second.",
      202,
    ),
  ],
});
