/** Puts an operation's input together from the parts of an HTTP request, each checked where it comes from. */

import { type Decoding, decode, type Input, type Operation, type Route, type Sender } from "../operation.ts";
import { type Checked, checkOf } from "../schema/check.ts";
import { type RawQuery, readQuery } from "./query-string.ts";

export interface HttpParts {
  readonly params: unknown;
  readonly query: RawQuery;
  /** What JSON.parse gave; undefined where nothing was sent, which is the same as `{}`. */
  readonly body: unknown;
}

/** `route` is the operation itself, or one of its `also`. */
export function decodeHttp(
  operation: Operation,
  route: Route,
  parts: HttpParts,
  sender: Omit<Sender, "entropy">,
): Checked<Decoding> {
  const read = readHttp(operation, route, parts);
  return read.ok ? { ok: true, value: decode(operation, read.value, sender) } : read;
}

export function readHttp(operation: Operation, route: Route, parts: HttpParts): Checked<Input> {
  const read = readParts(operation, route, parts);
  const { faultCode } = operation;
  return read.ok || faultCode === null ? read : { ...read, code: faultCode };
}

function readParts(operation: Operation, route: Route, { params, query, body }: HttpParts): Checked<Input> {
  const inPath = read(route.params, params);
  if (!inPath.ok) return inPath;
  const inQuery = read(route.query, isEmpty(query) ? none : readQuery(route.query, query));
  if (!inQuery.ok) return inQuery;
  const inBody = route.body === null ? bodiless(body) : read(route.body, body === undefined ? none : body);
  if (!inBody.ok) return inBody;
  const value = joined(inPath.value, inQuery.value, inBody.value);
  const fault = operation.refine(value);
  return fault === null ? { ok: true, value } : { ok: false, ...fault };
}

const none: Input = Object.freeze({});

function read(schema: Route["params"], value: unknown): Checked<Input> {
  return checkOf(schema)(value) as Checked<Input>;
}

function bodiless(body: unknown): Checked<Input> {
  if (body === undefined || body === null) return { ok: true, value: none };
  return {
    ok: false,
    code: "invalid_request",
    field: "",
    detail: "This method takes no body; put the fields into the query.",
  };
}

/** Names differ between the parts, so nothing overwrites anything. Mostly all fields come from one part. */
function joined(inPath: Input, inQuery: Input, inBody: Input): Input {
  if (isEmpty(inPath) && isEmpty(inQuery)) return inBody;
  return { ...inPath, ...inQuery, ...inBody };
}

function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}
