/** Calls of the documented API, with the routes and types that are generated from the contract. */
import { type OperationAnswers, type OperationInputs, routes } from "../../../src/sdk/wire.ts";
import { csrfToken, noteSignedOut, tenant } from "./session.ts";

export type OperationName = keyof OperationInputs;

/** What the server refused, in its own words. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>) {
    super(String(body["detail"] ?? `The server answered ${status}.`));
    this.status = status;
    this.code = String(body["error"] ?? "");
    this.body = body;
  }
}

/** Of an operation, relative to the page, so that a prefix before it does not matter. */
export function addressOf(path: string): string {
  const { origin, pathname } = location;
  return `${origin}${pathname.replace(/[^/]*$/, "")}${path.replace(/^\//, "")}`;
}

export function headersFor(method: string): Record<string, string> {
  const csrf = csrfToken.peek();
  const chosen = tenant.peek();
  return {
    ...(method !== "GET" && { "content-type": "application/json" }),
    ...(method !== "GET" && csrf !== null && { "leasehold-csrf": csrf }),
    ...(chosen !== null && { "leasehold-tenant": chosen }),
  };
}

export function call<N extends OperationName>(
  name: N,
  input: OperationInputs[N],
  signal?: AbortSignal,
): Promise<OperationAnswers[N]> {
  const { method, path } = routes[name];
  const rest: Record<string, unknown> = { ...input };
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, field: string) => {
    const value = encodeURIComponent(String(rest[field]));
    delete rest[field];
    return value;
  });
  return request(method, filled, rest, signal) as Promise<OperationAnswers[N]>;
}

/** Fields go into the query of a GET or DELETE, and into the body of all others. */
export async function request(
  method: string,
  path: string,
  fields: Readonly<Record<string, unknown>> = {},
  signal?: AbortSignal,
  headers: Readonly<Record<string, string>> = {},
): Promise<unknown> {
  const hasBody = method === "POST" || method === "PUT";
  const query = hasBody ? "" : queryOf(fields);
  const response = await fetch(`${addressOf(path)}${query}`, {
    method,
    headers: { ...headersFor(method), ...headers },
    credentials: "same-origin",
    ...(hasBody && { body: JSON.stringify(fields) }),
    ...(!hasBody && method !== "GET" && { headers: withoutType(headersFor(method)) }),
    ...(signal !== undefined && { signal }),
  });
  const text = await response.text();
  const body: unknown = text === "" ? {} : readJson(text);
  if (response.ok) return body;
  if (response.status === 401 && path !== "/v1/session") noteSignedOut();
  throw new Refusal(response.status, body as Readonly<Record<string, unknown>>);
}

function withoutType({ "content-type": _, ...rest }: Record<string, string>): Record<string, string> {
  return rest;
}

function queryOf(fields: Readonly<Record<string, unknown>>): string {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length === 0 ? "" : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { error: "bad_answer", detail: "What answered is not Leasehold." };
  }
}

export function wordsOf(error: unknown): string {
  if (error instanceof Refusal) return error.message;
  return "The server cannot be reached.";
}
