/** Any record of a description, for properties. */
import fc from "fast-check";
import type { FieldData, Fields, Values } from "../../kernel/contract/field.ts";

const text = fc.string({ unit: "grapheme", maxLength: 20 });
const time = fc.integer({ min: 1_600_000_000_000, max: 2_000_000_000_000 });
/** What JSON gives back as it was: it has no negative zero. */
const json = fc.jsonValue().map((value) => JSON.parse(JSON.stringify(value)) as unknown);

export function anyRecord<F extends Fields>(fields: F): fc.Arbitrary<Values<F>> {
  const values = Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, anyValue(field)]));
  return fc.record(values, { noNullPrototype: true }) as unknown as fc.Arbitrary<Values<F>>;
}

function anyValue(field: FieldData): fc.Arbitrary<unknown> {
  const some = anyKind(field);
  if (!field.optional || field.like !== undefined) return some;
  return fc.oneof(some, fc.constant(field.usual));
}

function anyKind({ kind, values = [], items, fields = {} }: FieldData): fc.Arbitrary<unknown> {
  switch (kind) {
    case "text":
      return text;
    case "choice":
      return fc.constantFrom(...values);
    case "integer":
      return fc.nat();
    case "number":
      return fc.nat().map((n) => n / 8);
    case "flag":
      return fc.boolean();
    case "time":
    case "remaining":
      return time;
    case "json":
      return json;
    case "list":
      return fc.array(anyKind(items ?? { kind: "json" }), { maxLength: 2 });
    case "map":
      return fc.dictionary(text, anyKind(items ?? { kind: "json" }), { maxKeys: 3, noNullPrototype: true });
    case "record":
      return anyRecord(fields);
  }
}
