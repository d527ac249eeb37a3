/**
 * The few kinds of schema that the wire is made of. Everything is plain JSON Schema 2020-12, so that OpenAPI, MCP and
 * the validators read one and the same object; typebox brings the TypeScript types along.
 */
import Type, { type Static, type TProperties, type TSchema } from "typebox";
import type { ErrorCode } from "../answers/errors.ts";
import { limits } from "./limits.ts";

export type { Static, TProperties, TSchema };

/** The part of JSON Schema that is used here, for those who walk over schemas. */
export interface Node {
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly items?: Node;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Node>>;
  readonly required?: readonly string[];
  /** False on every object with named fields: unknown ones are refused. A schema on maps. */
  readonly additionalProperties?: boolean | Node;
  readonly propertyNames?: Node;
  readonly maxProperties?: number;
  readonly anyOf?: readonly Node[];
  readonly title?: string;
  readonly description?: string;
  /** Each item is checked by itself when the list is decoded: a bad one costs its own answer only. */
  readonly "x-apart"?: true;
  /** The code of a value out of bounds where it is not `invalid_request`: one, or one by keyword. */
  readonly "x-error"?: ErrorCode | Readonly<Record<string, ErrorCode>>;
}

type Notes = Pick<Node, "title" | "description" | "x-error">;
type Sizes = Pick<Node, "minLength" | "maxLength">;
type Bounds = Pick<Node, "minimum" | "maximum">;
type Counts = Pick<Node, "minItems" | "maxItems" | "x-apart">;

export function text(options: Notes & Sizes = {}) {
  return Type.Unsafe<string>({ type: "string", ...options });
}

/** ISO 8601 in UTC with milliseconds. */
export function time(options: Notes = {}) {
  return Type.Unsafe<string>({ type: "string", format: "date-time", ...options });
}

export function integer(options: Notes & Bounds = {}) {
  return Type.Unsafe<number>({ type: "integer", minimum: 0, maximum: limits.integerMax, ...options });
}

/** One that need not be whole. */
export function number(options: Notes & Bounds = {}) {
  return Type.Unsafe<number>({ type: "number", minimum: 0, ...options });
}

export function flag(options: Notes = {}) {
  return Type.Unsafe<boolean>({ type: "boolean", ...options });
}

/** A flag that has one value here, and so tells two shapes apart. */
export function always<const T extends boolean>(value: T, options: Notes = {}) {
  return Type.Unsafe<T>({ type: "boolean", enum: [value], ...options });
}

export function choice<const T extends string>(values: readonly T[], options: Notes = {}) {
  return Type.Unsafe<T>({ type: "string", enum: [...values], ...options });
}

export function list<T extends TSchema>(items: T, options: Notes & Counts = {}) {
  return Type.Unsafe<readonly Static<T>[]>({ type: "array", items, ...options });
}

/** An object with named fields and no others. */
export function record<F extends TProperties>(fields: F, options: Notes = {}) {
  return Type.Object(fields, { additionalProperties: false, ...options });
}

/** An object whose keys are data. */
export function map<T extends TSchema>(values: T, keys: Sizes, maxProperties: number, options: Notes = {}) {
  return Type.Unsafe<Readonly<Record<string, Static<T>>>>({
    type: "object",
    additionalProperties: values,
    propertyNames: { type: "string", ...keys },
    maxProperties,
    ...options,
  });
}

export function nothing(options: Notes = {}) {
  return Type.Unsafe<null>({ type: "null", ...options });
}

/** Any JSON. The operation bounds its depth. */
export function anything(options: Notes = {}) {
  return Type.Unsafe<unknown>({ ...options });
}

/** A choice between whole shapes, for replies; what comes in has none, because its faults would be hard to tell. */
export function either<const T extends readonly TSchema[]>(shapes: T, options: Notes = {}) {
  return Type.Unsafe<Static<T[number]>>({ anyOf: [...shapes], ...options });
}

export function nullable<T extends TSchema>(schema: T) {
  const node: Node = schema;
  const values = node.enum === undefined ? {} : { enum: [...node.enum, null] };
  if (typeof node.type !== "string") return Type.Unsafe<Static<T> | null>({ ...node });
  return Type.Unsafe<Static<T> | null>({ ...node, type: [node.type, "null"], ...values });
}

/** A field that may be left out, and may be null, which says the same. */
export function optional<T extends TSchema>(schema: T) {
  return Type.Optional(nullable(schema));
}

/** A field of a reply that is there or not, but is never null. */
export function sometimes<T extends TSchema>(schema: T) {
  return Type.Optional(schema);
}
