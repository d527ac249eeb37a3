/** The OpenAPI 3.1 document, made of the operations alone: what it says cannot differ from what is served. */
import { defaultUrl } from "../../names/defaults.ts";
import { errorShape } from "../answers/error-shape.ts";
import { type ErrorCode, errors, statusOf } from "../answers/errors.ts";
import { commonErrors, type Operation, type ReplyShape, type Route, type Tag } from "../operation.ts";
import { operations } from "../operations.ts";
import type { Node } from "../schema/schema.ts";

type Json = Readonly<Record<string, unknown>>;

export function openApiDocument(version: string): Json {
  const schemas: Record<string, Json> = {};
  const paths: Record<string, Json> = {};
  for (const operation of operations) {
    for (const [index, route] of [operation, ...operation.also].entries()) {
      const described = describe(operation, route, index, schemas);
      paths[route.path] = { ...paths[route.path], [route.method.toLowerCase()]: described };
    }
  }
  const responses = commonResponses(schemas);
  return {
    openapi: "3.1.0",
    jsonSchemaDialect: "https://json-schema.org/draft/2020-12/schema",
    info: {
      title: "Leasehold",
      version,
      description: about,
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: defaultUrl }],
    tags: (Object.keys(tags) as Tag[]).map((name) => ({ name, description: tags[name] })),
    security: [{ bearer: [] }],
    paths,
    components: {
      schemas,
      responses,
      parameters: { Tenant: tenantParameter },
      securitySchemes: { bearer: { type: "http", scheme: "bearer", description: "A key, or an agent's token." } },
    },
  };
}

const tenantParameter: Json = {
  name: "Leasehold-Tenant",
  in: "header",
  required: false,
  description: "Which tenant this is about. An operator may name any; everybody else has one only.",
  schema: { type: "string" },
};

const about =
  "Time-bounded leases for fleets of AI agents and workers. Times (`*_at`) are ISO 8601 in UTC with milliseconds, " +
  "durations (`*_ms`, and a lease's `ttl`) integers in milliseconds. Unknown fields are refused; an optional field may be " +
  "null. Texts hold no U+0000 and no half of a surrogate pair. Every error is `{error, detail, …}` with a stable code.";

const tags: Readonly<Record<Tag, string>> = {
  Agents: "Registering, resuming, pausing.",
  Acquiring: "A manifest in, a verdict out.",
  Holding: "Keeping leases, and ending them.",
  Resources: "What can be leased, where that has to be said.",
  Tasks: "Work to be done: an offer of it is a lease.",
  Receipts: "The ledger of who promised and finished what.",
  Artifacts: "Bytes that a pointer can point to.",
  Watching: "What happens.",
  Operating: "Tenants and keys.",
};

function describe(operation: Operation, route: Route, index: number, schemas: Record<string, Json>): Json {
  const { name, tag, summary, description, roles } = operation;
  const parameters = [
    ...parametersOf(route, "path", schemas),
    ...parametersOf(route, "query", schemas),
    ...(roles === "anyone" ? [] : [{ $ref: "#/components/parameters/Tenant" }]),
  ];
  return {
    operationId: index === 0 ? name : otherId(operation, route),
    tags: [tag],
    summary,
    description:
      roles === "anyone" ? `${description} Needs no credential.` : `${description} Roles: ${roles.join(", ")}.`,
    ...(roles === "anyone" && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(hasFields(route.body) && { requestBody: bodyOf(operation, route.body, schemas) }),
    ...(operation.takesBytes && { requestBody: bytes }),
    responses: responsesOf(operation, schemas),
  };
}

/** By its method, or by its path where that is what differs. */
function otherId({ name, method }: Operation, route: Route): string {
  if (route.method !== method) return `${name}_by_${route.method.toLowerCase()}`;
  return `${name}_at_${route.path.split("/")[1]}`;
}

function parametersOf(route: Route, place: "path" | "query", schemas: Record<string, Json>): readonly Json[] {
  const { properties = {}, required = [] }: Node = place === "path" ? route.params : route.query;
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: place,
    required: required.includes(name),
    ...(schema.description !== undefined && { description: schema.description }),
    // A list is one value with commas between.
    ...(isList(schema) && { style: "form", explode: false }),
    schema: reference(schema, schemas),
  }));
}

function bodyOf({ example, exactlyOne }: Operation, body: Node, schemas: Record<string, Json>): Json {
  const names = Object.keys(body.properties ?? {});
  const shown = Object.fromEntries(Object.entries(example).filter(([name]) => names.includes(name)));
  const oneOf = exactlyOne.length === 0 ? {} : { oneOf: exactlyOne.map((name) => ({ required: [name] })) };
  return {
    required: (body.required ?? []).length > 0 || exactlyOne.length > 0,
    content: { "application/json": { schema: { ...reference(body, schemas), ...oneOf }, example: shown } },
  };
}

const bytes: Json = { required: true, content: { "application/octet-stream": { example: "any bytes", schema: {} } } };

/** By status: the operation's own shapes and codes, or, where it has none, what any operation may answer. */
function responsesOf({ replies, errors: own, roles }: Operation, schemas: Record<string, Json>): Json {
  const common = commonErrors.filter((code) => roles !== "anyone" || statusOf(code) >= 500);
  const ownStatus = (code: ErrorCode): number => statusHere(own, code);
  const ownStatuses = new Set([...replies.map(({ status }) => status), ...own.map(ownStatus)]);
  const statuses = new Set([...ownStatuses, ...common.map(statusOf)]);
  const describeStatus = (status: number): Json => {
    if (!ownStatuses.has(status)) return { $ref: `#/components/responses/${status}` };
    const codes = [...new Set([...own, ...common])].filter((code) => ownStatus(code) === status);
    return responseOf(
      replies.filter((reply) => reply.status === status),
      codes,
      schemas,
    );
  };
  return Object.fromEntries(
    [...statuses].sort((a, b) => a - b).map((status) => [String(status), describeStatus(status)]),
  );
}

/** A lease's end is 410, but 409 to a receipt. */
function statusHere(own: readonly ErrorCode[], code: ErrorCode): number {
  const [usual, other = usual] = errors[code].statuses;
  return own.includes("invalid_receipt") ? other : usual;
}

function commonResponses(schemas: Record<string, Json>): Json {
  const statuses = [...new Set(commonErrors.map(statusOf))];
  const codesOf = (status: number) => commonErrors.filter((code) => statusOf(code) === status);
  return Object.fromEntries(statuses.map((status) => [String(status), responseOf([], codesOf(status), schemas)]));
}

function responseOf(replies: readonly ReplyShape[], codes: readonly ErrorCode[], schemas: Record<string, Json>): Json {
  const shown = new Set(replies.flatMap(({ schema }) => codesShownBy(schema)));
  const others = codes.filter((code) => !shown.has(code));
  const shapes: Node[] = [...replies.map(({ schema }) => schema), ...(others.length > 0 ? [errorShape] : [])];
  const lines = [
    ...replies.map(({ description }) => description),
    ...others.map((code) => `\`${code}\`: ${errors[code].whatToDo}`),
  ];
  const [only] = shapes;
  const isEmpty = replies.some(({ status }) => status === 204);
  const schema =
    shapes.length === 1 && only ? reference(only, schemas) : { anyOf: shapes.map((one) => reference(one, schemas)) };
  return {
    description: lines.join("\n\n"),
    ...((isEmpty || codes.some(hasRetryAfter)) && { headers: { "Retry-After": retryAfter } }),
    ...(!isEmpty && { content: { [replies[0]?.mediaType ?? "application/json"]: { schema } } }),
  };
}

const retryAfter: Json = { description: "In seconds, rounded up.", schema: { type: "integer" } };

function hasRetryAfter(code: ErrorCode): boolean {
  return code === "die" || statusOf(code) === 429 || statusOf(code) === 503;
}

/** A shape with an `error` field speaks for the codes that it lists. */
function codesShownBy({ properties = {} }: Node): readonly unknown[] {
  const { error } = properties;
  return error?.enum ?? [];
}

/**
 * Schemas with a title stand among the components, once; other schemas refer to them. That one of them may be null here
 * is said here: a component that is null in one place would be null wherever it is used.
 */
function reference(schema: Node, schemas: Record<string, Json>): Json {
  const { title, type } = schema;
  if (title === undefined) return inline(schema, schemas);
  if (Array.isArray(type) && type.includes("null")) {
    return { anyOf: [reference(withoutNull(schema), schemas), { type: "null" }] };
  }
  if (!Object.hasOwn(schemas, title)) {
    schemas[title] = {}; // Taken, before what is inside asks for it.
    schemas[title] = inline(schema, schemas);
  }
  return { $ref: `#/components/schemas/${title}` };
}

function withoutNull(schema: Node): Node {
  const { type = [], enum: values, ...rest } = schema;
  const [only, ...more] = [type].flat().filter((one) => one !== "null");
  return {
    ...rest,
    ...(only !== undefined && { type: more.length === 0 ? only : [only, ...more] }),
    ...(values && { enum: values.filter((value) => value !== null) }),
  };
}

function inline(schema: Node, schemas: Record<string, Json>): Json {
  const { properties, items, additionalProperties: extra, anyOf, ...rest } = schema;
  return {
    ...rest,
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, one]) => [name, reference(one, schemas)])),
    }),
    ...(items && { items: reference(items, schemas) }),
    ...(anyOf && { anyOf: anyOf.map((one) => reference(one, schemas)) }),
    ...(extra !== undefined && { additionalProperties: typeof extra === "object" ? reference(extra, schemas) : extra }),
  };
}

function isList({ type }: Node): boolean {
  return type === "array" || (Array.isArray(type) && type.includes("array"));
}

function hasFields(body: Node | null): body is Node {
  return body !== null && Object.keys(body.properties ?? {}).length > 0;
}
