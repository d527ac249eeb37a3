/** `PUT /v1/artifacts` and `GET /v1/artifacts/{sha256}`: bytes in, a pointer out, so that a pointer can point somewhere. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { FastifyReply, FastifyRequest } from "fastify";
import {
  type Answer,
  answerJson,
  errorAnswer,
  faultAnswer as inputFaultAnswer,
} from "../../protocol/answers/answer.ts";
import { readHttp } from "../../protocol/http/http-input.ts";
import type { RawQuery } from "../../protocol/http/query-string.ts";
import { getArtifact } from "../../protocol/receipts/artifacts.ts";
import { answerForFault } from "../answering/faults.ts";
import type { Readers } from "../auth/may-read.ts";
import { sendAnswer } from "../http/edge.ts";
import type { EdgeHandler } from "../http/http.ts";
import type { Caller, Service } from "../service.ts";
import type { ArtifactFiles, PutProblem } from "./artifact-files.ts";

/** With which the sender says what the bytes are, so that damage on the way shows. */
export const checksumHeader = "leasehold-sha256";
const hex = /^[0-9a-f]{64}$/;

export interface ArtifactHandlers {
  readonly put: EdgeHandler;
  readonly get: EdgeHandler;
}

export function createArtifactHandlers(
  service: Service,
  readers: Readers,
  files: ArtifactFiles,
  bytesMax: number,
): ArtifactHandlers {
  const handle = (serve: (request: FastifyRequest, response: ServerResponse, caller: Caller) => Promise<void>) => {
    return (request: FastifyRequest, reply: FastifyReply): void => {
      const { caller } = request;
      if (caller === null) throw new TypeError("admission comes before the handler");
      readers
        .mayRead(caller)
        .then((refused) =>
          refused === null ? serve(request, reply.raw, caller) : refuse(request.raw, reply.raw, refused),
        )
        .catch((fault: unknown) => {
          if (reply.raw.headersSent || request.raw.destroyed) reply.raw.destroy();
          else refuse(request.raw, reply.raw, answerForFault(service, fault));
        });
    };
  };

  const refuse = (request: IncomingMessage, response: ServerResponse, answer: Answer): void => {
    service.counts.refuse(answer.code);
    // What is left of the body is not read, so the connection is of no further use.
    if (!request.complete) response.shouldKeepAlive = false;
    sendAnswer(response, answer);
    request.resume();
  };

  return {
    put: handle(async ({ raw, query }, response, { tenant }) => {
      const [unknown] = Object.keys(query as RawQuery);
      if (unknown !== undefined) return refuse(raw, response, noQuery);
      const expected = raw.headers[checksumHeader];
      if (expected !== undefined && (typeof expected !== "string" || !hex.test(expected)))
        return refuse(raw, response, noChecksum);
      if (Number(raw.headers["content-length"] ?? 0) > bytesMax)
        return refuse(raw, response, problemAnswer("artifact_too_large", bytesMax));
      const stored = await files.put(tenant, raw, expected ?? null);
      if (stored === "disk_full") service.log.error({ tenant }, "an artifact was refused: the disk is full");
      if (typeof stored === "string") return refuse(raw, response, problemAnswer(stored, bytesMax));
      const { sha256, size } = stored;
      sendAnswer(response, answerJson(201, { pointer: `leasehold://artifacts/${sha256}`, sha256, size }));
    }),
    get: handle(async ({ raw, params, query }, response, { tenant }) => {
      const read = readHttp(getArtifact, getArtifact, { params, query: query as RawQuery, body: undefined });
      if (!read.ok) return refuse(raw, response, inputFaultAnswer(read));
      const { sha256 } = read.value as { readonly sha256: string };
      const found = hex.test(sha256) ? await files.find(tenant, sha256) : null;
      if (found === null) return refuse(raw, response, unknownArtifact);
      response.writeHead(200, {
        "Content-Type": "application/octet-stream",
        "Content-Length": found.size,
        ETag: `"${sha256}"`,
        "Cache-Control": "private, max-age=31536000, immutable",
        "X-Content-Type-Options": "nosniff",
      });
      if (raw.method === "HEAD") response.end();
      else await pipeline(found.open(), response);
    }),
  };
}

export function problemAnswer(problem: PutProblem, bytesMax: number): Answer {
  const details: Readonly<Record<PutProblem, string>> = {
    artifact_too_large: `An artifact has at most ${bytesMax} bytes here; keep larger ones elsewhere.`,
    artifact_mismatch: "The bytes do not have the checksum in Leasehold-Sha256; send them again.",
    artifact_space_exhausted: "The space for artifacts is used up; an operator can delete some or raise the limit.",
    disk_full: "The server's disk is full; nothing was kept. An operator has to make room; then send it again.",
  };
  return errorAnswer(problem === "disk_full" ? "artifact_space_exhausted" : problem, details[problem]);
}

export const unknownArtifact = errorAnswer(
  "artifact_unknown",
  "There is no artifact with this checksum in the tenant.",
);
const noChecksum = errorAnswer("invalid_request", "Leasehold-Sha256 is not a SHA-256 in lower-case hex; correct it.", {
  field: "Leasehold-Sha256",
});
const noQuery = errorAnswer("invalid_request", "Nothing is taken from the query here; leave it out.");
