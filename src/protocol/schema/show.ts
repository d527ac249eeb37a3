/**
 * Records as the wire shows them, from the contract's descriptions: as objects, and as text where a busy server says
 * them most. The text of a lease is put together directly: 0.4 µs, and 0.6 to 0.9 with writing it out, against 0.9 to
 * 1.3 for the object and its JSON.stringify.
 */
import { type FieldData, type Fields, wireName } from "../../kernel/contract/field.ts";
import { isoTime } from "./iso-time.ts";
import { escaped } from "./json-text.ts";

export type WireObject = Record<string, unknown>;

/** What of a record the wire shows, under its names there. */
export function show(fields: Fields, record: object): WireObject {
  const shown: WireObject = {};
  add(shown, fields, record as Readonly<Record<string, unknown>>);
  return shown;
}

function add(shown: WireObject, fields: Fields, record: Readonly<Record<string, unknown>>): void {
  for (const [key, field] of Object.entries(fields)) {
    if (field.wire === null) continue;
    const value = record[key] ?? null;
    if (field.flat && field.fields) add(shown, field.fields, value as Readonly<Record<string, unknown>>);
    else if (value !== null || !field.omitted) shown[wireName(key, field)] = shownValue(field, value);
  }
}

function shownValue(field: FieldData, value: unknown): unknown {
  if (value === null) return field.mark ?? null;
  if (field.kind === "time") return isoTime(value as number);
  if (field.kind === "record") return show(field.fields ?? {}, value as object);
  const { items } = field;
  if (field.kind === "list" && items?.kind === "record") {
    return (value as readonly object[]).map((item) => show(items.fields ?? {}, item));
  }
  return value;
}

/** The members of a record's text, without braces; compiled on first use. Nested records and lists are not for this. */
export function membersTextOf<T>(fields: Fields): (record: T) => string {
  let text: ((record: T) => string) | undefined;
  return (record) => {
    text ??= compile<T>(fields);
    return text(record);
  };
}

/** The names are those of our own descriptions, so nothing of a caller's is ever part of the code. */
function compile<T>(fields: Fields): (record: T) => string {
  const shown = Object.entries(fields).filter(([, { wire }]) => wire !== null);
  const pieces = shown.map(([key, field], index) => {
    const start = `${index === 0 ? "" : ","}"${wireName(key, field)}":`;
    const value = `record.${key}`;
    if (!field.optional || (field.usual !== null && field.usual !== undefined))
      return `\`${start}\` + ${valueText(field, value)}`;
    const absent = field.omitted ? '""' : JSON.stringify(`${start}${JSON.stringify(field.mark ?? null)}`);
    return `(${value} === null ? ${absent} : \`${start}\` + ${valueText(field, value)})`;
  });
  const make = new Function("escaped", "isoTime", `return (record) => ${pieces.join(" + ")};`);
  return make(escaped, isoTime) as (record: T) => string;
}

function valueText({ kind }: FieldData, value: string): string {
  switch (kind) {
    case "text":
      return `'"' + escaped(${value}) + '"'`;
    case "choice":
      return `'"' + ${value} + '"'`;
    case "time":
      return `'"' + isoTime(${value}) + '"'`;
    case "json":
      return `JSON.stringify(${value})`;
    default:
      return value;
  }
}
