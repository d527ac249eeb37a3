/** `/v1/artifacts`: bytes in, a pointer out, so that a pointer can point somewhere; and out again (S4). */
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
import type { Operation } from "../../protocol/operation.ts";
import { deleteArtifact, getArtifact, listArtifacts } from "../../protocol/receipts/artifacts.ts";
import { limits } from "../../protocol/schema/limits.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import { answerForFault, Refused } from "../answering/faults.ts";
import { quotaAnswer } from "../answering/tenant-use.ts";
import type { Readers } from "../auth/may-read.ts";
import { sendAnswer } from "../http/edge.ts";
import type { EdgeHandler } from "../http/http.ts";
import { cursorFor, readCursor } from "../queries/paging.ts";
import type { Caller, Service } from "../service.ts";
import { isStored, type PutProblem } from "./artifact-files.ts";
import { pointerPrefix } from "./references.ts";

/** With which the sender says what the bytes are, so that damage on the way shows. */
export const checksumHeader = "leasehold-sha256";
const hex = /^[0-9a-f]{64}$/;

export interface ArtifactHandlers {
  readonly put: EdgeHandler;
  readonly get: EdgeHandler;
  readonly list: EdgeHandler;
  readonly delete: EdgeHandler;
}

export function createArtifactHandlers(service: Service, readers: Readers): ArtifactHandlers {
  const { artifacts: files } = service;
  const { bytesMax } = files;
  const senders = new Senders();
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

  const read = (operation: Operation, { params, query }: FastifyRequest) => {
    const found = readHttp(operation, operation, { params, query: query as RawQuery, body: undefined });
    if (!found.ok) throw new Refused(inputFaultAnswer(found));
    return found.value;
  };

  return {
    put: handle(async ({ raw, query }, response, caller) => {
      const { tenant } = caller;
      const [unknown] = Object.keys(query as RawQuery);
      if (unknown !== undefined) return refuse(raw, response, noQuery);
      const expected = raw.headers[checksumHeader];
      if (expected !== undefined && (typeof expected !== "string" || !hex.test(expected)))
        return refuse(raw, response, noChecksum);
      if (Number(raw.headers["content-length"] ?? 0) > bytesMax)
        return refuse(raw, response, problemAnswer("artifact_too_large", bytesMax));
      if (service.uses.isSuspended(tenant)) return refuse(raw, response, suspended);
      const stored = await files.put(tenant, raw, expected ?? null, service.uses.quotasOf(tenant));
      if (stored === "disk_full") service.log.error({ tenant }, "an artifact was refused: the disk is full");
      if (!isStored(stored)) return refuse(raw, response, problemAnswer(stored, bytesMax));
      const { sha256, size } = stored;
      if (raw.headers["content-length"] === undefined) service.limiter.charge(caller.meter, size);
      senders.note(caller, sha256);
      sendAnswer(response, answerJson(201, { pointer: pointerPrefix + sha256, sha256, size }));
    }),
    list: handle(async (request, response, { tenant }) => {
      const { limit, cursor } = read(listArtifacts, request) as {
        readonly limit?: number | null;
        readonly cursor?: string | null;
      };
      const most = limit ?? limits.pageDefault;
      const found = await files.list(tenant, readCursor("artifacts", cursor ?? null), most + 1);
      const last = found.length > most ? found[most - 1] : undefined;
      const artifacts = found.slice(0, most).map(({ sha256, size, storedAt }) => {
        const at = storedAt === null ? null : isoTime(storedAt);
        return { sha256, size, stored_at: at, referenced: storedAt === null };
      });
      const next = last === undefined ? null : cursorFor("artifacts", last.sha256);
      sendAnswer(response, answerJson(200, { artifacts, next_cursor: next }));
    }),
    delete: handle(async (request, response, caller) => {
      const { sha256 } = read(deleteArtifact, request) as { readonly sha256: string };
      const { role } = caller.actor;
      if (role !== "operator" && role !== "supervisor" && !senders.isBy(caller, sha256))
        return refuse(request.raw, response, notYours);
      const isGone = hex.test(sha256) && (await files.delete(caller.tenant, sha256));
      if (!isGone) return refuse(request.raw, response, unknownArtifact);
      sendAnswer(response, answerJson(200, { sha256, deleted: true }));
    }),
    get: handle(async (request, response, { tenant }) => {
      const { raw } = request;
      const { sha256 } = read(getArtifact, request) as { readonly sha256: string };
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

/** Who stored what, of the last that were: they may delete it again. */
class Senders {
  private readonly known = new Map<string, string>();

  note(caller: Caller, sha256: string): void {
    const name = `${caller.tenant}/${sha256}`;
    this.known.delete(name);
    this.known.set(name, nameOf(caller));
    if (this.known.size <= sendersMax) return;
    const [oldest] = this.known.keys();
    if (oldest !== undefined) this.known.delete(oldest);
  }

  isBy(caller: Caller, sha256: string): boolean {
    return this.known.get(`${caller.tenant}/${sha256}`) === nameOf(caller);
  }
}

const sendersMax = 100_000;

function nameOf({ actor: { role, agentId, keyId } }: Caller): string {
  return JSON.stringify([role, agentId, agentId === null ? keyId : null]);
}

export function problemAnswer(problem: PutProblem, bytesMax: number): Answer {
  if (typeof problem === "object") return quotaAnswer(problem.quota, problem.used, problem.limit, quotaFull);
  const details: Readonly<Record<typeof problem, string>> = {
    artifact_too_large: `An artifact has at most ${bytesMax} bytes here; keep larger ones elsewhere.`,
    artifact_mismatch: "The bytes do not have the checksum in Leasehold-Sha256; send them again.",
    artifact_space_exhausted: "The space for artifacts is used up; an operator can delete some or raise the limit.",
    disk_full: "The server's disk is full; nothing was kept. An operator has to make room; then send it again.",
  };
  return errorAnswer(problem === "disk_full" ? "artifact_space_exhausted" : problem, details[problem]);
}

const quotaFull = "The tenant's artifacts have used up its quota; delete some, or ask its operator to raise it.";
export const suspended = errorAnswer(
  "tenant_suspended",
  "The tenant is suspended; an operator has to resume it first.",
);
const notYours = errorAnswer(
  "forbidden",
  "Only operators, supervisors and the credential that stored an artifact may delete it.",
);
export const unknownArtifact = errorAnswer(
  "artifact_unknown",
  "There is no artifact with this checksum in the tenant.",
);
const noChecksum = errorAnswer("invalid_request", "Leasehold-Sha256 is not a SHA-256 in lower-case hex; correct it.", {
  field: "Leasehold-Sha256",
});
const noQuery = errorAnswer("invalid_request", "Nothing is taken from the query here; leave it out.");
