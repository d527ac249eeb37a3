/** What the server answers by itself, without the kernel: is it there, what can it do, how is it doing. */
import type { FastifyReply } from "fastify";
import { type Answer, answerJson, errorAnswer } from "../../protocol/answers/answer.ts";
import { openApiDocument } from "../../protocol/documents/openapi.ts";
import { challengeHeader, challengePattern, proofHeader } from "../../trust/owner-token.ts";
import type { ArtifactHandlers } from "../artifacts/artifacts.ts";
import { tenantHeader } from "../auth/authenticate.ts";
import type { createClusterHandlers } from "../cluster/cluster.ts";
import type { Metrics } from "../operating/metrics.ts";
import type { Service } from "../service.ts";
import { jsonType, sendAnswer, sendText } from "./edge.ts";
import type { EdgeHandler } from "./http.ts";

export interface EdgeOptions {
  readonly service: Service;
  readonly metrics: Metrics;
  readonly version: string;
  readonly events: EdgeHandler;
  readonly backup: EdgeHandler;
  readonly artifacts: ArtifactHandlers;
  readonly sessions: Readonly<
    Record<"get_session" | "create_session" | "end_session" | "create_session_link", EdgeHandler>
  >;
  readonly cluster: ReturnType<typeof createClusterHandlers>;
  readonly page: EdgeHandler;
}

/** By the names of their operations; the page at `/` is beside them. */
export function createEdges(options: EdgeOptions) {
  const { service, metrics, version, events, backup, artifacts, sessions, cluster, page } = options;
  // Made once it is asked for: it is large, and most servers are never asked.
  let openapi: string | null = null;
  return {
    events,
    ...sessions,
    ...cluster,
    backup,
    put_artifact: artifacts.put,
    get_artifact: artifacts.get,
    list_artifacts: artifacts.list,
    delete_artifact: artifacts.delete,
    stream: answering(() => upgradeNeeded),
    connect_cell: answering(() => upgradeNeeded),
    healthz: ({ headers }, reply) => {
      const challenge = headers[challengeHeader];
      const isOne = typeof challenge === "string" && challengePattern.test(challenge);
      const proof = isOne ? (service.owner?.prove(challenge) ?? null) : null;
      if (proof !== null) reply.raw.setHeader(proofHeader, proof);
      sendAnswer(reply.raw, healthy);
    },
    readyz: answering(() => (service.engine.isServing && !service.isClosing ? ready : notReady)),
    openapi: (_request, reply) => {
      openapi ??= JSON.stringify(openApiDocument(version));
      sendText(reply.raw, 200, jsonType, openapi);
    },
    metrics: ({ caller, headers }, reply) => {
      // An operator sees the whole server, or the tenant that it names; everybody else its own tenant.
      const isWhole = caller?.actor.role === "operator" && headers[tenantHeader] === undefined;
      metrics.text(isWhole ? null : (caller?.tenant ?? "")).then(
        (text) => sendText(reply.raw, 200, metrics.contentType, text),
        (fault: unknown) => {
          service.log.error({ err: fault }, "the metrics could not be collected");
          sendAnswer(reply.raw, errorAnswer("internal_error", "The metrics could not be collected; the log says why."));
        },
      );
    },
    page,
  } satisfies Record<string, EdgeHandler>;
}

function answering(find: () => Answer): EdgeHandler {
  return (_request, reply: FastifyReply) => sendAnswer(reply.raw, find());
}

const healthy = answerJson(200, { status: "ok" });
const ready = answerJson(200, { status: "ready" });
const notReady = errorAnswer(
  "database_unavailable",
  "The server does not serve commands at the moment; ask again soon.",
  {
    retry_after_ms: 1_000,
  },
);
const upgradeNeeded = errorAnswer("invalid_request", "This is a WebSocket: connect with `Upgrade: websocket`.", {
  field: "Upgrade",
});
