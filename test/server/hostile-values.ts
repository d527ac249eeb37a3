/** Bad input made from the schemas: each case breaks exactly one thing and is certainly invalid. */
import type { Input, Operation, Route } from "../../src/protocol/operation.ts";
import type { Node } from "../../src/protocol/schema/schema.ts";

export interface Broken {
  readonly what: string;
  readonly value: unknown;
}

/** Raw JSON text instead of a value, for what a JavaScript object cannot express. */
export class JsonText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The example with one thing broken, for each thing that can be broken. */
export function brokenInputs(schema: Node, example: Input): readonly Broken[] {
  return [...brokenObject(schema, example), ...wrongTypes(schema).map((value) => ({ what: "not an object", value }))];
}

/** Two things broken at once, in random pairs. At least one of them remains. */
export function brokenTwice(
  cases: readonly Broken[],
  example: Input,
  count: number,
  random: (below: number) => number,
): readonly Broken[] {
  const objects = cases.filter(({ value }) => typeof value === "object" && value !== null && !Array.isArray(value));
  const draw = (): Broken | undefined => objects[random(objects.length)];
  return Array.from({ length: count }, () => {
    const [first, second] = [draw(), draw()];
    const changed = Object.entries(second?.value ?? {}).filter(([field, value]) => value !== example[field]);
    return {
      what: `${first?.what} and ${second?.what}`,
      value: Object.fromEntries([...Object.entries(first?.value ?? {}), ...changed]),
    };
  });
}

function brokenObject(schema: Node, example: Input): readonly Broken[] {
  const { properties = {}, required = [] } = schema;
  const cases: Broken[] = [];
  for (const key of ["surprise", "__proto__", "constructor", "prototype", "toString", "", "agent-id", "\u0000"]) {
    if (Object.hasOwn(properties, key)) continue;
    cases.push({ what: `unknown field ${JSON.stringify(key)}`, value: withField(example, key, { admin: true }) });
  }
  for (const field of required) {
    const { [field]: _left, ...rest } = example;
    cases.push(
      { what: `${field} missing`, value: rest },
      { what: `${field} null`, value: { ...example, [field]: null } },
    );
  }
  for (const [field, inner] of Object.entries(properties)) {
    for (const { what, value } of brokenValues(inner, example[field])) {
      cases.push({ what: `${field}: ${what}`, value: { ...example, [field]: value } });
    }
  }
  return cases;
}

/** An own key of any name, including `__proto__`. */
function withField(example: Input, key: string, value: unknown): Input {
  return Object.fromEntries([...Object.entries(example), [key, value]]);
}

function brokenValues(schema: Node, example: unknown): readonly Broken[] {
  const cases: Broken[] = wrongTypes(schema).map((value) => ({
    what: `is ${JSON.stringify(value)?.slice(0, 30)}`,
    value,
  }));
  const { maxLength, minLength, minimum, maximum, items, minItems, maxItems, properties, enum: choices } = schema;
  if (choices !== undefined) {
    for (const value of ["", "nonsense", "MUTATES ", "mutates", "__proto__"]) {
      if (!choices.includes(value)) cases.push({ what: "no such choice", value });
    }
  } else if (takes(schema, "string")) {
    for (const value of ["a\u0000b", "\ud800", "x\udfff"]) cases.push({ what: "cannot be stored", value });
    if (maxLength !== undefined) cases.push({ what: "too long", value: "x".repeat(maxLength + 1) });
    if (minLength !== undefined && minLength > 0) cases.push({ what: "too short", value: "" });
  }
  if (minimum !== undefined)
    cases.push({ what: "too small", value: minimum - 1 }, { what: "far too small", value: -1e300 });
  if (maximum !== undefined) {
    for (const text of [String(maximum + 1), "1e400", "9007199254740993", "99999999999999999999999999"]) {
      cases.push({ what: `too large: ${text}`, value: new JsonText(text) });
    }
  }
  if (takes(schema, "integer")) cases.push({ what: "not whole", value: 1.5 });
  if (items !== undefined) {
    const [first] = Array.isArray(example) ? example : [];
    if (minItems !== undefined && minItems > 0) cases.push({ what: "empty", value: [] });
    // This many large items would already be too large.
    const filler = schema["x-apart"] === true ? 0 : (first ?? "x");
    if (maxItems !== undefined) cases.push({ what: "too many", value: new Array(maxItems + 1).fill(filler) });
    // Where items are checked separately, a bad one is answered in its own place; tasks-bad.test.ts tests those.
    if (schema["x-apart"] !== true)
      for (const { what, value } of brokenValues(items, first)) cases.push({ what: `item ${what}`, value: [value] });
  }
  if (properties !== undefined && typeof example === "object" && example !== null) {
    cases.push(...brokenObject(schema, example as Input));
  }
  if (typeof schema.additionalProperties === "object") {
    for (const key of ["__proto__", "constructor", "prototype", "a\u0000", "\ud800"]) {
      cases.push({ what: `key ${JSON.stringify(key)}`, value: withField({}, key, "x") });
    }
    for (const { what, value } of brokenValues(schema.additionalProperties, "x")) {
      if (value !== null) cases.push({ what: `value ${what}`, value: { key: value } });
    }
  }
  return cases;
}

function wrongTypes(schema: Node): readonly unknown[] {
  if (schema.type === undefined) return [];
  const all: readonly (readonly [type: string, values: readonly unknown[]])[] = [
    ["string", ["text", "7", "true", "null"]],
    ["integer", [7, 0, -0.5]],
    ["boolean", [true, false]],
    ["array", [[], [[]], ["x"]]],
    ["object", [{}, { length: 1 }, { toString: "x" }]],
  ];
  const isTaken = (type: string) => takes(schema, type) || (type === "integer" && takes(schema, "number"));
  return all.flatMap(([type, values]) => (isTaken(type) ? [] : values));
}

function takes({ type }: Node, name: string): boolean {
  return type === name || (Array.isArray(type) && type.includes(name));
}

/** Which fields the route has in its body, path and query, and their types. */
export function splitInput({ example }: Operation, route: Route): { readonly path: string; readonly body: Input } {
  const part = ({ properties = {} }: Node) =>
    Object.entries(example).filter(([field]) => Object.hasOwn(properties, field));
  return {
    path: route.path.replaceAll(/\{(\w+)\}/g, (_whole, field: string) => encodeURIComponent(String(example[field]))),
    body: Object.fromEntries(route.body === null ? [] : part(route.body)),
  };
}

/** JSON.stringify, with texts put in as they are. */
export function jsonOf(value: unknown): string {
  if (value instanceof JsonText) return value.text;
  if (Array.isArray(value)) return `[${value.map(jsonOf).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return `{${Object.entries(value)
    .map(([key, inner]) => `${JSON.stringify(key)}:${jsonOf(inner)}`)
    .join(",")}}`;
}
