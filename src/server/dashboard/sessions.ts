/** `/v1/session`: a browser signs in with a key or a link, asks who it is, and signs out. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Answer, answerJson, errorAnswer, faultAnswer } from "../../protocol/answers/answer.ts";
import { readHttp } from "../../protocol/http/http-input.ts";
import type { RawQuery } from "../../protocol/http/query-string.ts";
import { createSession, createSessionLink } from "../../protocol/operating/sessions.ts";
import type { Operation } from "../../protocol/operation.ts";
import { isoTime } from "../../protocol/schema/text.ts";
import { authenticate, isCaller } from "../auth/authenticate.ts";
import { linkMs, Sessions } from "../auth/sessions.ts";
import { type Gate, sendAnswer } from "../http/edge.ts";
import type { EdgeHandler } from "../http/http.ts";
import type { Caller, Service } from "../service.ts";

export interface SessionOptions {
  readonly service: Service;
  readonly gate: Gate;
  readonly isLoopback: boolean;
  readonly version: string;
}

export function createSessionHandlers({ service, gate, isLoopback, version }: SessionOptions) {
  const { sessions, keys, owner, engine } = service;

  function viewOf(found: Caller | Answer): Record<string, unknown> {
    const caller = isCaller(found) ? found : null;
    const needsKey = !isLoopback || !keys.isEmpty;
    return {
      signed_in: caller !== null,
      sign_in: needsKey ? "key" : owner === null ? "none" : "link",
      role: caller?.actor.role ?? null,
      tenant_id: caller?.tenant ?? null,
      key_id: caller?.actor.keyId ?? null,
      csrf_token: caller?.csrf ?? null,
      expires_at: caller === null || !Number.isFinite(caller.until) ? null : isoTime(caller.until),
      now: isoTime(engine.now()),
      version,
    };
  }

  return {
    get_session: ({ raw }, { raw: response }) => {
      const found = authenticate(service, raw.headers, isLoopback);
      // One that is no longer good would be refused again and again.
      if (!isCaller(found) && sessions.find(raw.headers.cookie) === false) {
        response.setHeader("Set-Cookie", sessions.end(undefined, gate.speaksTls(raw)));
      }
      sendAnswer(response, answerJson(200, viewOf(found)));
    },

    create_session: (request, reply) => {
      const input = read(createSession, request, reply);
      if (input === null) return;
      if (!engine.isServing) return void sendAnswer(reply.raw, unavailable);
      const isSecure = gate.speaksTls(request.raw);
      const cookie =
        typeof input["key"] === "string"
          ? cookieForKey(input["key"], isSecure)
          : cookieForCode(String(input["code"]), isSecure);
      const [shown] = cookie?.split(";", 1) ?? [];
      const caller = sessions.find(shown) || null;
      if (cookie === null || caller === null) {
        const refused = service.failedLogins.note(gate.addressOf(request.raw)) ?? invalid;
        service.counts.refuse(refused.code);
        return void sendAnswer(reply.raw, refused);
      }
      reply.raw.setHeader("Set-Cookie", cookie);
      sendAnswer(reply.raw, answerJson(201, viewOf(caller)));
    },

    end_session: ({ raw }, reply) => {
      const { cookie, ...rest } = raw.headers;
      reply.raw.setHeader("Set-Cookie", sessions.end(cookie, gate.speaksTls(raw)));
      sendAnswer(reply.raw, answerJson(200, viewOf(authenticate(service, rest, isLoopback))));
    },

    create_session_link: (request, reply) => {
      if (read(createSessionLink, request, reply) === null) return;
      const { caller } = request;
      if (caller === null) throw new TypeError("admission comes before the handler");
      const secret = Sessions.secretOf(caller);
      // Without keys there is nothing to sign in with, and no need to.
      if (secret === null && caller.actor.agentId === null) {
        return void sendAnswer(reply.raw, answerJson(201, { path: "/", expires_in_ms: linkMs }));
      }
      if (secret === null) return void sendAnswer(reply.raw, notForAgents);
      // A session could make itself last longer than it may, again and again.
      if (caller.csrf !== undefined) return void sendAnswer(reply.raw, notForSessions);
      const path = `/#/sign-in/${sessions.createLink(secret)}`;
      sendAnswer(reply.raw, answerJson(201, { path, expires_in_ms: linkMs }));
    },
  } satisfies Record<string, EdgeHandler>;

  function cookieForKey(key: string, isSecure: boolean): string | null {
    if (service.agentTokens.find(key) !== null) return sessions.beginAgent(key, isSecure);
    const secret = (keys.find(key) ?? owner?.find(key))?.secret ?? null;
    return secret === null ? null : sessions.begin(secret, isSecure);
  }

  function cookieForCode(code: string, isSecure: boolean): string | null {
    const secret = sessions.redeem(code);
    return secret === null ? null : sessions.begin(secret, isSecure);
  }

  function read(operation: Operation, { params, query, body }: FastifyRequest, reply: FastifyReply) {
    const input = readHttp(operation, operation, { params, query: query as RawQuery, body });
    if (input.ok) return input.value;
    service.counts.refuse(input.code);
    sendAnswer(reply.raw, faultAnswer(input));
    return null;
  }
}

const invalid = errorAnswer(
  "unauthorized",
  "The key or link is not valid: it is unknown here, has expired, was deleted, or was used before. Links are good once.",
);
const notForSessions = errorAnswer("forbidden", "A session makes no link, which would outlast it; use a key.");
const notForAgents = errorAnswer("forbidden", "An agent's token signs no browser in; use a key.");
const unavailable = errorAnswer("database_unavailable", "The database is not available; try again.", {
  retry_after_ms: 1_000,
});
