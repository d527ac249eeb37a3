/**
 * Schemas from the contract's descriptions: bounds and types come from there, the words for people from here. Words are
 * keyed by the field's name on the wire; one that is missing does not compile.
 */
import type { TOptional, TUnsafe } from "typebox";
import { type Field, type FieldData, type Fields, type WireName, wireName } from "../../kernel/contract/field.ts";
import type { ErrorCode } from "../answers/errors.ts";
import { limits } from "./limits.ts";
import {
  anything,
  choice,
  flag,
  integer,
  list,
  map,
  nullable,
  number,
  optional,
  record,
  sometimes,
  type TProperties,
  type TSchema,
  text,
  time,
} from "./schema.ts";
import { type CommonWords, commonWords } from "./words.ts";

type Names<F> = { [K in keyof F & string]: WireName<F, K> }[keyof F & string];

/** Words that many operations share may be left out. */
export type Words<F> = { readonly [N in Exclude<Names<F>, keyof CommonWords>]: string } & {
  readonly [N in Names<F> & keyof CommonWords]?: string;
};

type InOf<F> = F extends Field<infer In, unknown> ? In : never;
type InputSchema<In> = null extends In ? TOptional<TUnsafe<In>> : TUnsafe<In>;
export type InputProperties<F> = { [K in keyof F & string as WireName<F, K>]: InputSchema<InOf<F[K]>> };

/** The fields of an input as properties of a schema. */
export function inputs<F extends Fields>(fields: F, words: Words<NoInfer<F>>): InputProperties<F> {
  return propertiesOf(fields, words, inputSchema) as InputProperties<F>;
}

/** The fields of a record that the wire shows, as properties of a schema. */
export function outputs<F extends Fields>(fields: F, words: Words<NoInfer<F>>): TProperties {
  return propertiesOf(fields, words, outputSchema);
}

type PartSchema<F> = F extends { readonly omitted: true } ? TOptional<TUnsafe<NonNullable<InOf<F>>>> : TUnsafe<InOf<F>>;
type PartProperties<F> = { [K in keyof F & string as WireName<F, K>]: PartSchema<F[K]> };

/** The same for a part of an answer, whose names mostly say enough. */
export function parts<F extends Fields>(fields: F, words: Partial<Words<NoInfer<F>>> = {}): PartProperties<F> {
  return propertiesOf(fields, words, outputSchema) as PartProperties<F>;
}

function propertiesOf(
  fields: Fields,
  words: Readonly<Record<string, string | undefined>>,
  schemaOf: (field: FieldData, notes: Notes) => TSchema,
): TProperties {
  const properties: TProperties = {};
  for (const [key, field] of Object.entries(fields)) {
    if (field.wire === null) continue;
    const name = wireName(key, field);
    const description = words[name] ?? (commonWords as Readonly<Record<string, string>>)[name];
    properties[name] = schemaOf(field, description === undefined ? {} : { description });
  }
  return properties;
}

interface Notes {
  readonly description?: string;
}

const shapes = new Map<Fields, TSchema>();

/** A nested record with a title; fields of this description then have this schema. */
export function shape<F extends Fields>(
  fields: F,
  words: Words<NoInfer<F>>,
  notes: { title?: string; description?: string },
) {
  const schema = record(inputs(fields, words), notes);
  shapes.set(fields, schema);
  return schema;
}

type FrameProperties<F> = { [K in keyof F & string as WireName<F, K>]: TUnsafe<InOf<F[K]>> };

/** A record between our own programs: every field is there, null where it has no value. */
export function frame<F extends Fields>(fields: F) {
  const schemaOf = (field: FieldData) =>
    field.optional ? nullable(boundedSchema(field, {})) : boundedSchema(field, {});
  return record(propertiesOf(fields, {}, schemaOf) as FrameProperties<F>);
}

/** Fields of this description, too, have the schema. */
export function registerShape(fields: Fields, schema: TSchema): void {
  shapes.set(fields, schema);
}

function inputSchema(field: FieldData, notes: Notes): TSchema {
  const schema = boundedSchema(field, notes);
  return field.optional ? optional(schema) : schema;
}

function boundedSchema(field: FieldData, { description }: Notes): TSchema {
  const { kind, min, max, bytesMax, values = [], items, keyMax, error } = field;
  const code: ErrorCode | undefined = typeof error === "string" ? error : undefined;
  const notes = { ...(description && { description }), ...(code && { "x-error": code }) };
  switch (kind) {
    case "text": {
      const most = max ?? bytesMax;
      const sizes = { ...(min && { minLength: min }), ...(most && { maxLength: most }) };
      return text({ ...sizes, ...notes });
    }
    case "choice":
      return choice(values, notes);
    case "integer":
      return integer({
        ...(min !== undefined && { minimum: min }),
        ...(max !== undefined && { maximum: max }),
        ...notes,
      });
    case "number":
      return number({
        ...(min !== undefined && { minimum: min }),
        ...(max !== undefined && { maximum: max }),
        ...notes,
      });
    case "flag":
      return flag(description ? { description } : {});
    case "remaining":
      return integer(notes);
    case "time":
      return text({ maxLength: limits.timeLengthMax, ...notes });
    case "json":
      return anything(description ? { description } : {});
    case "list": {
      const counts = { ...(min && { minItems: min }), ...(max && { maxItems: max }) };
      const codes = typeof error === "object" && { "x-error": { minItems: error.min, maxItems: error.max } };
      return list(boundedSchema(items ?? { kind: "json" }, {}), { ...counts, ...notes, ...codes });
    }
    case "map": {
      const keys = { minLength: 1, ...(keyMax && { maxLength: keyMax }) };
      return map(boundedSchema(items ?? { kind: "json" }, {}), keys, max ?? limits.pageMax, notes);
    }
    case "record":
      return shapes.get(field.fields ?? {}) ?? record(propertiesOf(field.fields ?? {}, {}, inputSchema), notes);
  }
}

function outputSchema(field: FieldData, notes: Notes): TSchema {
  if (field.mark !== undefined) return typeof field.mark === "string" ? text(notes) : anything(notes);
  const schema = plainSchema(field, notes);
  if (field.omitted) return sometimes(schema);
  return field.optional && field.usual === null ? nullable(schema) : schema;
}

/** Of what the server shows, bounds say nothing that a client needs, but for the smallest number. */
function plainSchema({ kind, min, values = [], items, fields = {}, max }: FieldData, notes: Notes): TSchema {
  switch (kind) {
    case "integer":
    case "remaining":
      return integer({ ...(min !== undefined && { minimum: min }), ...notes });
    case "time":
      return time(notes);
    case "text":
      return text(notes);
    case "choice":
      return choice(values, notes);
    case "number":
      return number(notes);
    case "flag":
      return flag(notes);
    case "json":
      return anything(notes);
    case "list":
      return list(plainSchema(items ?? { kind: "json" }, {}), notes);
    case "map":
      return map(plainSchema(items ?? { kind: "json" }, {}), {}, max ?? limits.pageMax, notes);
    case "record":
      return shapes.get(fields) ?? record(propertiesOf(fields, {}, outputSchema), notes);
  }
}
