/**
 * Store codecs from the descriptions of records: src/engine/codec/records.gen.ts. Each record is read into one literal
 * in the order of its description, so that restored records share one hidden shape with new ones.
 */
import type { FieldData, Fields } from "../../src/kernel/contract/field.ts";
import { recordFields } from "../../src/kernel/contract/kinds.ts";
import { intent, lease, leaseRow, type RecordKind } from "../../src/kernel/contract/records.ts";
import { taskRow } from "../../src/kernel/contract/task-records.ts";

interface Stored {
  /** The kind under which it is stored, and its TypeScript type. */
  readonly kind: string;
  readonly type: string;
  readonly fields: Fields;
  /** Stored as a list: these fields by position, then an object of what is not usual. */
  readonly row?: readonly string[];
  /** Of most records that object is empty. */
  readonly mostlyUsual?: true;
  /** Stored as an object without what is usual. */
  readonly lean?: true;
  /** Stored as a list of all its fields. */
  readonly listed?: true;
}

const special: Readonly<Partial<Record<RecordKind, Omit<Stored, "kind" | "type" | "fields">>>> = {
  lease: { row: leaseRow, mostlyUsual: true },
  task: { row: taskRow },
  agent: { lean: true },
  payload: { listed: true },
};

const stored: readonly Stored[] = Object.entries(recordFields).map(([kind, fields]) => {
  const type = upper(kind.replace(/_[a-z]/g, ([, letter = ""]) => letter.toUpperCase()));
  return { kind, type, fields, ...special[kind as RecordKind] };
});

export function codecText(): string {
  const functions = new Map<string, string>();
  for (const one of stored) addRecord(one, functions);
  return `/** Written by scripts/generate.ts from src/kernel/contract. Run \`npm run generate\` to write it again. */
import { type Predicate, predicates } from "../../kernel/contract/predicates.ts";
import { type Agent, type Cell, type Counters, type Digest, type Key, type Lease, type LeaseState, leaseStates,
  type RecordKind, type RecordOf, type Request, type Resource, type Tenant } from "../../kernel/contract/records.ts";
import type { Policy } from "../../kernel/contract/policy-records.ts";
import type { ForeignObligation, Payload, Task, TaskType, Worker } from "../../kernel/contract/task-records.ts";
import type { Write } from "../../kernel/contract/write-records.ts";
import type { ListColumns } from "../../store/store.ts";
import { constants, isEmpty } from "./stored-values.ts";

type Columns<Row extends readonly unknown[]> = { readonly [Place in keyof Row]: readonly Row[Place][] };

/** Shared by the million records that have none of it. */
const none: readonly never[] = [];

${[...functions.values()].join("\n\n")}

const writers: { readonly [K in RecordKind]: (record: RecordOf[K]) => string } = {
${stored.map(({ kind, type, ...how }) => `  ${kind}: ${isPlain(how) ? "JSON.stringify" : `${lower(type)}Text`},`).join("\n")}
};

/** The text that a record is stored as. */
export function recordText<K extends RecordKind>(kind: K, record: RecordOf[K]): string {
  return writers[kind](record);
}

export const readers: { readonly [K in RecordKind]: (text: string) => RecordOf[K] } = {
${stored.map(({ kind, type }) => `  ${kind}: read${type},`).join("\n")}
};
`;
}

function isPlain({ row, lean, listed }: Pick<Stored, "row" | "lean" | "listed">): boolean {
  return row === undefined && lean === undefined && listed === undefined;
}

function addRecord(one: Stored, functions: Map<string, string>): void {
  const { type, fields, row, lean, listed } = one;
  if (row !== undefined) addRow(one, row, functions);
  else if (listed) addList(type, type, fields, functions);
  else {
    const name = lower(type);
    if (lean) functions.set(`${name}Text`, leanText(name, type, fields));
    const from = addObject(type, type, fields, functions);
    functions.set(
      `read${type}`,
      `export function read${type}(text: string): ${type} {\n  return ${from}(JSON.parse(text));\n}`,
    );
  }
}

/** The reader of an object: what is missing, because it is usual or older than the field, is filled in. */
function addObject(name: string, type: string, fields: Fields, functions: Map<string, string>): string {
  const function_ = `${lower(name)}From`;
  const lines = Object.entries(fields).map(
    ([key, field]) => `    ${key}: ${readText(name, key, field, `from.${key}`, type, functions)},`,
  );
  functions.set(function_, `function ${function_}(from: ${type}): ${type} {\n  return {\n${lines.join("\n")}\n  };\n}`);
  return function_;
}

/** Its reader and writer as a list of all its fields. */
function addList(name: string, type: string, fields: Fields, functions: Map<string, string>): void {
  const keys = Object.keys(fields);
  const row = keys.map((key) => `${type}["${key}"]`).join(", ");
  // A list that was stored before a field existed is shorter.
  const read = Object.entries(fields).map(([key, field]) => (field.usual === null ? `${key} = null` : key));
  functions.set(`${name}Row`, `export type ${name}Row = [${row}];`);
  functions.set(
    `${lower(name)}Row`,
    `export function ${lower(name)}Row({ ${keys.join(", ")} }: ${type}): ${name}Row {\n  return [${keys.join(", ")}];\n}`,
  );
  functions.set(
    `${lower(name)}Of`,
    `export function ${lower(name)}Of([${read.join(", ")}]: ${name}Row): ${type} {\n  return { ${keys.join(", ")} };\n}`,
  );
  if (name !== type) return;
  functions.set(
    `${lower(name)}Text`,
    `export function ${lower(name)}Text(record: ${type}): string {\n  return JSON.stringify(${lower(name)}Row(record));\n}`,
  );
  functions.set(
    `read${type}`,
    `export function read${type}(text: string): ${type} {\n  return ${lower(name)}Of(JSON.parse(text));\n}`,
  );
}

/** A field with where it stands in the record: of a task most stand in its spec. */
interface Place {
  readonly key: string;
  readonly field: FieldData;
  readonly path: string;
  readonly type: string;
}

function placesOf(type: string, fields: Fields): readonly Place[] {
  const flat = Object.entries(fields).filter(([, field]) => field.flat);
  const inner = flat.flatMap(([outer, { fields: nested = {} }]) =>
    Object.entries(nested).map(([key, field]) => ({
      key,
      field,
      path: `${outer}.${key}`,
      type: `${type}["${outer}"]["${key}"]`,
    })),
  );
  const own = Object.entries(fields)
    .filter(([, field]) => !field.flat)
    .map(([key, field]) => ({ key, field, path: key, type: `${type}["${key}"]` }));
  return [...inner, ...own];
}

function addRow({ type, fields, mostlyUsual }: Stored, row: readonly string[], functions: Map<string, string>): void {
  const name = lower(type);
  const places = placesOf(type, fields);
  const inRow = row.map((key) => places.find((place) => place.key === key) ?? fail(`${type} has no ${key}`));
  const rest = places.filter(({ key }) => !row.includes(key));
  const unusual = rest.find(({ field }) => !field.optional);
  if (unusual !== undefined) fail(`${type}.${unusual.key} stands in no row and has no usual value`);
  const restLines = rest.map(
    ({ key, field, type: of }) => `  ${key}?: ${storedType(type, key, field, of)} | undefined;`,
  );
  functions.set(`${type}Rest`, `interface ${type}Rest {\n${restLines.join("\n")}\n}`);
  functions.set(
    `${type}Row`,
    `export type ${type}Row = [${inRow.map((place) => `${place.key}: ${place.type}`).join(", ")}, rest?: ${type}Rest];`,
  );
  const values = inRow.map(({ path }) => `${name}.${path}`).join(", ");
  functions.set(
    `${name}Row`,
    mostlyUsual
      ? `export function ${name}Row(${name}: ${type}): ${type}Row {\n  const row: ${type}Row = [${values}];\n  const rest = ${name}Rest(${name});\n  for (const _ in rest) {\n    row.push(rest);\n    break;\n  }\n  return row;\n}`
      : `export function ${name}Row(${name}: ${type}): ${type}Row {\n  return [${values}, ${name}Rest(${name})];\n}`,
  );
  for (const { key, field, type: of } of rest) addNested(type, key, field, of, functions);
  // Only what is written: to leave out what is undefined takes a quarter of the time that the text takes (decision 0048).
  const restLinesOf = rest.map(
    (place) => `  if (${isUnusual(name, place)}) rest.${place.key} = ${writtenOf(type, name, place)};`,
  );
  functions.set(
    `${name}Rest`,
    `function ${name}Rest(${name}: ${type}): ${type}Rest {\n  const rest: ${type}Rest = {};\n${restLinesOf.join("\n")}\n  return rest;\n}`,
  );
  functions.set(
    `${name}Text`,
    `export function ${name}Text(${name}: ${type}): string {\n  return JSON.stringify(${name}Row(${name}));\n}`,
  );
  const parameters = `...[${inRow.map(({ key }) => key).join(", ")}, given]: ${type}Row`;
  functions.set(`no${type}Rest`, `const no${type}Rest: ${type}Rest = {};`);
  functions.set(
    `${name}Of`,
    `function ${name}Of(${parameters}): ${type} {\n  const rest = given ?? no${type}Rest;\n  return ${literal(type, fields, row, functions)};\n}`,
  );
  const spread = `${inRow.map((_, at) => `row[${at}]`).join(", ")}, row[${inRow.length}]`;
  functions.set(
    `${name}From`,
    `export function ${name}From(row: ${type}Row): ${type} {\n  return ${name}Of(${spread});\n}`,
  );
  functions.set(
    `read${type}`,
    `export function read${type}(text: string): ${type} {\n  return ${name}From(JSON.parse(text) as ${type}Row);\n}`,
  );
  if (mostlyUsual) functions.set(`read${type}s`, columnsText(type, inRow));
}

/** Records as the store hands them over, by column. */
function columnsText(type: string, inRow: readonly Place[]): string {
  const name = lower(type);
  const chosen = inRow.filter(({ field }) => field.kind === "choice");
  const setUp = chosen.map(
    ({ key }) =>
      `  const ${key} = constants<${upper(key) === "State" ? `${type}State` : upper(key)}>(${key === "state" ? `${name}States` : `${key}s`});`,
  );
  const values = inRow.map(({ key, field }) =>
    field.kind === "choice" ? `${key}(${key}Column[at] as ${type}["${key}"])` : `${key}Column[at] as ${type}["${key}"]`,
  );
  return `/** ${type}s as the store hands them over, by column. */
export function read${type}s({ n, columns }: ListColumns): ${type}[] {
  const [${inRow.map(({ key }) => `${key}Column`).join(", ")}, rests] = columns as unknown as Columns<${type}Row>;
${setUp.join("\n")}
  const read: ${type}[] = [];
  for (let at = 0; at < n.length; at++) {
    const one = ${name}Of(${values.join(", ")}, rests?.[at]);
    read.push(one);
  }
  return read;
}`;
}

function literal(type: string, fields: Fields, row: readonly string[], functions: Map<string, string>): string {
  const lines = Object.entries(fields).map(([key, field]) => {
    if (field.flat && field.fields) return `${key}: ${literal(type, field.fields, row, functions)},`;
    return row.includes(key) ? `${key},` : `${key}: ${readText(type, key, field, `rest.${key}`, type, functions)},`;
  });
  return `{\n${lines.join("\n")}\n}`;
}

/** A nested record that is stored as a list has a reader and a writer of its own. */
function addNested(type: string, key: string, field: FieldData, of: string, functions: Map<string, string>): void {
  const inner = field.kind === "list" ? field.items : field;
  if (!inner?.listed || !inner.fields) return;
  addList(
    `${type}${upper(key)}`,
    field.kind === "list" ? `${of}[number]` : `NonNullable<${of}>`,
    inner.fields,
    functions,
  );
}

function storedType(type: string, key: string, field: FieldData, of: string): string {
  const inner = field.kind === "list" ? field.items : field;
  if (!inner?.listed) return of;
  return field.kind === "list" ? `readonly ${type}${upper(key)}Row[]` : `${type}${upper(key)}Row`;
}

function readText(
  name: string,
  key: string,
  field: FieldData,
  value: string,
  type: string,
  functions: Map<string, string>,
): string {
  const absent = field.like ?? usualText(field);
  const inner = field.kind === "list" ? field.items : field;
  const reader = inner?.kind === "record" ? readerOf(name, key, inner, `${type}["${key}"]`, field, functions) : null;
  if (reader !== null) {
    const read = field.kind === "list" ? `${value}.map(${reader})` : `${reader}(${value})`;
    // A record whose usual value is null is stored as null by JSON.stringify, or left out.
    const isAbsent = field.kind === "record" && !inner?.listed ? "== null" : "=== undefined";
    return field.optional ? `${value} ${isAbsent} ? ${absent} : ${read}` : read;
  }
  return field.optional ? `${value} ?? ${absent}` : value;
}

/** Null where the nested record is taken as it was parsed. */
function readerOf(
  name: string,
  key: string,
  inner: FieldData,
  of: string,
  field: FieldData,
  functions: Map<string, string>,
): string | null {
  if (inner.listed) return `${lower(name)}${upper(key)}Of`;
  const nested = inner.fields ?? {};
  if (nested === lease) return null;
  if (!Object.values(nested).some(({ optional }) => optional)) return null;
  const function_ = nested === intent ? "Intent" : `${name}${upper(key)}`;
  if (functions.has(`${lower(function_)}From`)) return `${lower(function_)}From`;
  const item = nested === intent ? `Request["intents"][number]` : `${of}[number]`;
  const one = field.optional && field.usual === null ? `NonNullable<${of}>` : of;
  return addObject(function_, field.kind === "list" ? item : one, nested, functions);
}

function usualText({ usual, kind }: FieldData): string {
  if (kind === "list" && Array.isArray(usual)) return "none";
  return JSON.stringify(usual ?? null);
}

function isUnusual(name: string, { field, path }: Place): string {
  const value = `${name}.${path}`;
  if (field.kind === "list") return `${value}.length > 0`;
  if (field.kind === "map") return `!isEmpty(${value})`;
  if (field.like !== undefined) return `${value} !== ${name}.${field.like}`;
  if (field.usual === false) return value;
  return `${value} !== ${usualText(field)}`;
}

function writtenOf(type: string, name: string, { key, field, path }: Place): string {
  const value = `${name}.${path}`;
  const writer = `${lower(type)}${upper(key)}Row`;
  if (field.kind === "list") return field.items?.listed ? `${value}.map(${writer})` : value;
  return field.listed ? `${writer}(${value})` : value;
}

function unlessUsual(type: string, name: string, { key, field, path }: Pick<Place, "key" | "field" | "path">): string {
  const value = `${name}.${path}`;
  const writer = `${lower(type)}${upper(key)}Row`;
  if (field.kind === "list") {
    return `${value}.length === 0 ? undefined : ${value}${field.items?.listed ? `.map(${writer})` : ""}`;
  }
  if (field.kind === "map") return `isEmpty(${value}) ? undefined : ${value}`;
  if (field.listed) return `${value} === null ? undefined : ${writer}(${value})`;
  if (field.usual === null) return `${value} ?? undefined`;
  if (field.usual === false || field.usual === 0) return `${value} || undefined`;
  return `${value} === ${usualText(field)} ? undefined : ${value}`;
}

/** What is usual is left out, and stands last where it is not. */
function leanText(name: string, type: string, fields: Fields): string {
  const entries = Object.entries(fields);
  const lines = [
    ...entries.filter(([, field]) => !field.optional).map(([key]) => `    ${key}: ${name}.${key},`),
    ...entries
      .filter(([, field]) => field.optional)
      .map(([key, field]) => `    ${key}: ${unlessUsual(type, name, { key, field, path: key })},`),
  ];
  return `/** What is undefined here is not written. */\nexport function ${name}Text(${name}: ${type}): string {\n  return JSON.stringify({\n${lines.join("\n")}\n  });\n}`;
}

function lower(text: string): string {
  return text.charAt(0).toLowerCase() + text.slice(1);
}

function upper(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

function fail(message: string): never {
  throw new Error(message);
}
