/**
 * The protocol's schemas as MCP clients are shown them: plain JSON Schema that every client and every model's provider
 * takes. Marks of our own (`x-…`) are left out. On the way in, what may be null may as well be left out, so null is not
 * offered, and free JSON is offered as an object, which is what models send there; the rest is taken all the same.
 */
import type { ReplyShape } from "../protocol/operation.ts";
import { type Node, record, type TProperties } from "../protocol/schema/schema.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;
export type ObjectSchema = JsonSchema & { readonly type: "object" };

export function inputSchemaOf(fields: TProperties): ObjectSchema {
  return { ...shown(record(fields), "in"), type: "object" };
}

/** The shapes of what goes well, and of a refusal: some clients hold errors to the schema too. */
export function outputSchemaOf(replies: readonly ReplyShape[]): ObjectSchema {
  const good = replies.filter(({ status }) => status < 300 && status !== 204).map(({ schema }) => shown(schema, "out"));
  const bad = replies.filter(({ status }) => status >= 400).map(({ schema }) => shown(schema, "out"));
  return { type: "object", anyOf: [...new Set(good), ...bad, refusal] };
}

/** The names of what an answer may have, and their types: the rest is in the OpenAPI document, and costs a client nothing. */
export function shortOutput({ anyOf }: ObjectSchema): ObjectSchema {
  const shapes = (anyOf ?? []) as readonly { readonly properties?: Readonly<Record<string, JsonSchema>> }[];
  const fields = shapes.flatMap(({ properties = {} }) => Object.entries(properties));
  const types = Map.groupBy(fields, ([name]) => name);
  const properties = [...types].map(([name, found]) => {
    const kinds = found.map(([, { type }]) => type);
    const [type] = kinds;
    const isOne = type !== undefined && kinds.every((kind) => JSON.stringify(kind) === JSON.stringify(type));
    return [name, isOne ? { type } : {}];
  });
  return { type: "object", properties: Object.fromEntries(properties) };
}

/** The same fields of an input with fewer words: named ones only, without bounds, which a refusal explains anyway. */
export function brief(schema: JsonSchema, words: Readonly<Record<string, string>>): ObjectSchema {
  const { properties, required = [] } = schema as {
    readonly properties: Fields;
    readonly required?: readonly string[];
  };
  const shown = Object.entries(words).filter(([name]) => name in properties);
  const fields = shown.map(([name, description]) => {
    return [name, { ...bare(properties[name] ?? {}), ...(description !== "" && { description }) }];
  });
  return { type: "object", ...(required.length > 0 && { required }), properties: Object.fromEntries(fields) };
}

type Fields = Readonly<Record<string, JsonSchema>>;

/** An intent is shown with what most of them say. */
const rare: ReadonlySet<string> = new Set(["units", "pick"]);

function bare({
  type,
  enum: values,
  items,
  properties,
  required,
  additionalProperties: extra,
}: JsonSchema): JsonSchema {
  const fields = Object.entries((properties ?? {}) as Fields).filter(([name]) => !rare.has(name));
  return {
    ...(type !== undefined && { type }),
    ...(values !== undefined && { enum: values }),
    ...(items !== undefined && { items: bare(items as JsonSchema) }),
    ...(properties !== undefined && {
      required,
      properties: Object.fromEntries(fields.map(([name, one]) => [name, bare(one)])),
    }),
    ...(typeof extra === "object" && { additionalProperties: bare(extra as JsonSchema) }),
  };
}

const refusal: JsonSchema = {
  type: "object",
  title: "Refusal",
  required: ["error", "detail"],
  properties: {
    error: { type: "string", description: "A stable code; docs/errors.md has them all." },
    detail: { type: "string", description: "What is wrong, and what to do." },
    field: { type: "string", description: "The field at fault, as a dotted path." },
  },
};

function shown(node: Node, way: "in" | "out"): JsonSchema {
  const { properties, items, additionalProperties: extra, anyOf, propertyNames, type, enum: values, required } = node;
  const { "x-apart": _apart, "x-error": _error, maximum, ...rest } = node;
  const isFree = type === undefined && anyOf === undefined && values === undefined;
  if (isFree && way === "in") return { ...rest, type: "object", additionalProperties: true };
  const fields = Object.entries(properties ?? {}).filter(([, one]) => way === "out" || one.type !== "null");
  return {
    ...rest,
    // That numbers are exact goes without saying, and not every reader of schemas takes one so large.
    ...(maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER && { maximum }),
    ...(type !== undefined && { type: way === "in" ? withoutNull(type) : type }),
    ...(values !== undefined && { enum: way === "in" ? values.filter((value) => value !== null) : values }),
    ...(properties && { properties: Object.fromEntries(fields.map(([name, one]) => [name, shown(one, way)])) }),
    ...(required && { required }),
    ...(items && { items: shown(items, way) }),
    ...(anyOf && { anyOf: anyOf.map((one) => shown(one, way)) }),
    ...(propertyNames && { propertyNames: shown(propertyNames, way) }),
    ...(extra !== undefined && { additionalProperties: typeof extra === "object" ? shown(extra, way) : extra }),
  };
}

function withoutNull(type: NonNullable<Node["type"]>): NonNullable<Node["type"]> {
  if (typeof type === "string") return type;
  const [first, ...others] = type.filter((one) => one !== "null");
  return first === undefined ? type : others.length === 0 ? first : [first, ...others];
}
