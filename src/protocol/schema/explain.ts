/**
 * Says what is wrong with a value, and what to do: the first fault, with its path. It runs only after the compiled
 * check has said no, so it is written for good sentences and not for speed. A test holds that the two agree.
 */

import type { ErrorCode } from "../answers/errors.ts";
import { limits } from "./limits.ts";
import type { Node } from "./schema.ts";
import { isStorable } from "./text.ts";

export interface Fault {
  readonly code: ErrorCode;
  /** A dotted path, "intents.0.resource"; empty for the whole. */
  readonly field: string;
  /** A sentence: what is wrong, and what to do. */
  readonly detail: string;
}

type Path = readonly string[];

export function explain(schema: Node, value: unknown, path: Path = []): Fault | null {
  const fault = wrongType(schema, value, path) ?? wrongChoice(schema, value, path);
  if (fault !== null || value === null || schema.type === undefined) return fault;
  if (typeof value === "string") return wrongText(schema, value, path);
  if (typeof value === "number") return wrongNumber(schema, value, path);
  if (Array.isArray(value)) return wrongList(schema, value, path);
  if (typeof value === "object") return wrongObject(schema, value as Readonly<Record<string, unknown>>, path);
  return null;
}

/** Keys that name the machinery of objects. As data they are never meant well, not even in a map. */
export const unsafeKeys: readonly string[] = ["__proto__", "constructor", "prototype"];

function wrongType(schema: Node, value: unknown, path: Path): Fault | null {
  const types = typesOf(schema);
  if (types.length === 0 || types.some((type) => isOfType(type, value))) return null;
  const wanted = types.map((type) => articles[type] ?? type).join(" or ");
  return fault("invalid_request", path, `${subject(path)} is ${kindOf(value)}; send ${wanted}.`);
}

function wrongChoice(schema: Node, value: unknown, path: Path): Fault | null {
  const values = schema.enum;
  if (values === undefined || values.includes(value)) return null;
  const named = values.filter((one) => one !== null).join(", ");
  return fault(codeFor(schema, "enum"), path, `${subject(path)} is none of the known values; send one of ${named}.`);
}

function wrongText(schema: Node, value: string, path: Path): Fault | null {
  const { minLength, maxLength } = schema;
  const length = codePoints(value);
  if (minLength !== undefined && length < minLength) {
    return fault(
      codeFor(schema, "minLength"),
      path,
      `${subject(path)} is empty; send at least ${count(minLength, "character")}.`,
    );
  }
  if (maxLength !== undefined && length > maxLength) {
    return fault(
      codeFor(schema, "maxLength"),
      path,
      `${subject(path)} has ${length} characters; shorten it to ${maxLength}.`,
    );
  }
  if (schema.enum === undefined && !isStorable(value)) {
    return fault(
      "invalid_request",
      path,
      `${subject(path)} holds U+0000 or half of a surrogate pair; send text without.`,
    );
  }
  return null;
}

function wrongNumber(schema: Node, value: number, path: Path): Fault | null {
  const { minimum, maximum } = schema;
  if (minimum !== undefined && value < minimum) {
    return fault(codeFor(schema, "minimum"), path, `${subject(path)} is ${value}; send at least ${minimum}.`);
  }
  if (maximum !== undefined && value > maximum) {
    return fault(codeFor(schema, "maximum"), path, `${subject(path)} is ${value}; send at most ${maximum}.`);
  }
  return null;
}

function wrongList(schema: Node, value: readonly unknown[], path: Path): Fault | null {
  const { items, minItems, maxItems } = schema;
  if (minItems !== undefined && value.length < minItems) {
    return fault(
      codeFor(schema, "minItems"),
      path,
      `${subject(path)} is empty; send at least ${count(minItems, "item")}.`,
    );
  }
  if (maxItems !== undefined && value.length > maxItems) {
    return fault(
      codeFor(schema, "maxItems"),
      path,
      `${subject(path)} has ${value.length} items; send at most ${maxItems}.`,
    );
  }
  if (items === undefined || schema["x-apart"]) return null;
  return firstFault(value.entries(), ([index, item]) => explain(items, item, [...path, String(index)]));
}

function wrongObject(schema: Node, value: Readonly<Record<string, unknown>>, path: Path): Fault | null {
  const { properties = {}, required = [], additionalProperties } = schema;
  if (additionalProperties === undefined) return null;
  if (typeof additionalProperties === "object") return wrongMap(schema, additionalProperties, value, path);
  const known = Object.keys(properties);
  const unknown = Object.keys(value).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    const instead = known.length === 0 ? "Nothing is taken here" : `Known here: ${known.join(", ")}`;
    return fault(
      "invalid_request",
      [...path, short(unknown)],
      `"${short(unknown)}" is not a known field; leave it out. ${instead}.`,
    );
  }
  const missing = required.find((key) => !Object.hasOwn(value, key));
  if (missing !== undefined) {
    const wanted = typesOf(properties[missing] ?? {})
      .map((type) => articles[type] ?? type)
      .join(" or ");
    return fault(
      "invalid_request",
      [...path, missing],
      `${subject([...path, missing])} is missing; send ${wanted || "it"}.`,
    );
  }
  return firstFault(Object.entries(properties), ([key, property]) =>
    Object.hasOwn(value, key) && value[key] !== undefined ? explain(property, value[key], [...path, key]) : null,
  );
}

function wrongMap(schema: Node, values: Node, map: Readonly<Record<string, unknown>>, path: Path): Fault | null {
  const keys = Object.keys(map);
  if (schema.maxProperties !== undefined && keys.length > schema.maxProperties) {
    const detail = `${subject(path)} has ${keys.length} entries; send at most ${schema.maxProperties}.`;
    return fault(codeFor(schema, "maxProperties"), path, detail);
  }
  return firstFault(keys, (key) => {
    const at = [...path, short(key)];
    if (unsafeKeys.includes(key)) return fault("invalid_request", at, `"${key}" cannot be a key here; choose another.`);
    const wrongKey = schema.propertyNames === undefined ? null : wrongText(schema.propertyNames, key, at);
    if (wrongKey !== null)
      return { ...wrongKey, code: codeFor(schema, "propertyNames"), detail: `As a key, ${wrongKey.detail}` };
    return explain(values, map[key], at);
  });
}

function isOfType(type: string, value: unknown): boolean {
  if (type === "null") return value === null;
  if (type === "array") return Array.isArray(value);
  if (type === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (type === "integer") return Number.isInteger(value);
  return typeof value === type;
}

function typesOf({ type }: Node): readonly string[] {
  return type === undefined ? [] : typeof type === "string" ? [type] : type;
}

function codeFor(schema: Node, keyword: string): ErrorCode {
  const named = schema["x-error"];
  if (named === undefined) return "invalid_request";
  return typeof named === "string" ? named : (named[keyword] ?? "invalid_request");
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (typeof value === "object") return "an object";
  if (typeof value !== "number") return `a ${typeof value}`;
  return Number.isInteger(value) ? "an integer" : "a number that is not whole";
}

const articles: Readonly<Record<string, string>> = {
  string: "a string",
  integer: "an integer",
  number: "a number",
  boolean: "a boolean",
  array: "an array",
  object: "an object",
};

function subject(path: Path): string {
  return path.length === 0 ? "The input" : path.join(".");
}

/** The name of an unknown field may be anything, of any length; what is said of it stays short and storable. */
function short(key: string): string {
  const cut = key.length > limits.idLengthMax ? `${key.slice(0, limits.idLengthMax)}…` : key;
  return cut.toWellFormed().replaceAll("\0", "\ufffd");
}

function codePoints(value: string): number {
  let total = 0;
  for (const _ of value) total++;
  return total;
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

function fault(code: ErrorCode, path: Path, detail: string): Fault {
  return { code, field: path.join("."), detail };
}

function firstFault<T>(items: Iterable<T>, look: (item: T) => Fault | null): Fault | null {
  for (const item of items) {
    const found = look(item);
    if (found !== null) return found;
  }
  return null;
}
