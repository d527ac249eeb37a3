/** Requests that no route takes: an unknown path, a method that the path does not know, or a question about both. */
import type { IncomingMessage, ServerResponse } from "node:http";
import { errorAnswer } from "../../protocol/answers/answer.ts";
import type { Method, Operation } from "../../protocol/operation.ts";
import { operations } from "../../protocol/operations.ts";
import type { Counts } from "../answering/command-run.ts";
import { tenantHeader } from "../auth/authenticate.ts";
import { mcpHeaders, mcpMethods, mcpPaths } from "../mcp/routes.ts";
import { type Gate, sendAnswer } from "./edge.ts";

export function answerUnrouted(request: IncomingMessage, response: ServerResponse, gate: Gate, counts: Counts): void {
  const { method = "", url = "" } = request;
  const allowed = url === "*" ? ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS"] : methodsFor(url);
  if (allowed.length === 0) {
    counts.refuse("not_found");
    return void sendAnswer(
      response,
      errorAnswer("not_found", "Nothing is at this path; see /openapi.json for what there is."),
    );
  }
  response.setHeader("Allow", allowed.join(", "));
  if (method === "OPTIONS") return answerOptions(request, response, gate, allowed);
  counts.refuse("method_not_allowed");
  const detail = `This path does not take ${method}; use ${allowed.join(" or ")}.`;
  sendAnswer(response, errorAnswer("method_not_allowed", detail));
}

/** Browsers ask first whether a page of another origin may. */
function answerOptions(
  { headers }: IncomingMessage,
  response: ServerResponse,
  gate: Gate,
  allowed: readonly string[],
): void {
  if (headers.origin !== undefined && gate.lets(headers.origin)) {
    response.setHeader("Access-Control-Allow-Methods", allowed.join(", "));
    const headers = `authorization, content-type, last-event-id, leasehold-sha256, ${tenantHeader}, ${mcpHeaders}`;
    response.setHeader("Access-Control-Allow-Headers", headers);
    response.setHeader("Access-Control-Max-Age", "600");
  }
  response.writeHead(204);
  response.end();
}

/** Every GET has a HEAD, except those that change something or never end. */
export function takesHead({ kind, name }: Operation, method: Method): boolean {
  return method === "GET" && kind !== "command" && name !== "events" && name !== "stream";
}

/** Of the page and its files. */
export const pagePaths = ["/", "/assets/:name", "/favicon.svg", "/favicon.ico"];

function isPagePath(path: string): boolean {
  return pagePaths.includes(path) || /^\/assets\/[^/]+$/.test(path);
}

interface KnownPath {
  readonly pattern: RegExp;
  readonly methods: readonly string[];
}

const knownPaths: readonly KnownPath[] = operations.flatMap((operation) =>
  [operation, ...operation.also].map(({ method, path }) => ({
    pattern: new RegExp(`^${path.replaceAll(".", "\\.").replaceAll(/\{\w+\}/g, "[^/]+")}$`),
    methods: takesHead(operation, method) ? [method, "HEAD"] : [method],
  })),
);

function methodsFor(url: string): readonly string[] {
  const [path = ""] = url.split("?", 1);
  const methods = new Set(knownPaths.filter(({ pattern }) => pattern.test(path)).flatMap((known) => known.methods));
  if (isPagePath(path)) methods.add("GET").add("HEAD");
  if (mcpPaths.some((known) => known === path)) for (const method of mcpMethods) methods.add(method);
  return methods.size === 0 ? [] : [...methods, "OPTIONS"];
}
