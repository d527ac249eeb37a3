/** Puts an operation's input together from the parts of an HTTP request, each checked where it comes from. */

import type { Input, Operation, Route } from "../operation.ts";
import { type Checked, checkOf } from "../schema/check.ts";
import { type RawQuery, readQuery } from "./query-string.ts";

export interface HttpParts {
  readonly params: unknown;
  readonly query: RawQuery;
  /** What JSON.parse gave; undefined where nothing was sent, which is the same as `{}`. */
  readonly body: unknown;
}

/** `route` is the operation itself, or one of its `also`. Mostly all fields come in the body. */
export function readHttp(operation: Operation, route: Route, parts: HttpParts): Checked<Input> {
  const { query, body } = parts;
  if (route.isAllBody && isEmpty(query)) return operation.check(body === undefined ? none : body);
  const read = readParts(operation, route, parts);
  const { faultCode } = operation;
  return read.ok || faultCode === null ? read : { ...read, code: faultCode };
}

/** Names differ between the parts, so nothing overwrites anything. */
function readParts(operation: Operation, route: Route, { params, query, body }: HttpParts): Checked<Input> {
  const inPath = checkOf(route.params)(params);
  if (!inPath.ok) return inPath;
  const inQuery = checkOf(route.query)(isEmpty(query) ? none : readQuery(route.query, query));
  if (!inQuery.ok) return inQuery;
  const inBody = route.body === null ? bodiless(body) : checkOf(route.body)(body === undefined ? none : body);
  if (!inBody.ok) return inBody;
  const value = { ...inPath.value, ...inQuery.value, ...inBody.value };
  const fault = operation.refine?.(value) ?? null;
  return fault === null ? { ok: true, value } : { ok: false, ...fault };
}

const none: Input = Object.freeze({});

function bodiless(body: unknown): Checked<Input> {
  if (body === undefined || body === null) return { ok: true, value: none };
  return {
    ok: false,
    code: "invalid_request",
    field: "",
    detail: "This method takes no body; put the fields into the query.",
  };
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}
