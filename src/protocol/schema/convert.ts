/**
 * Between wire and kernel, from the contract's descriptions: input is decoded, and records are shown.
 *
 * From checked input to a command: each field under the kernel's name, with its default where it was left out. The
 * functions are compiled from the descriptions on first use, because every command passes here: one literal, so that
 * commands of a type share one hidden shape, whatever was left out (and their fingerprints are equal, W10).
 */
import { type Actor, type Command, type CommandBase, commands } from "../../kernel/contract/commands.ts";
import { type FieldData, type FieldKind, type Fields, wireName } from "../../kernel/contract/field.ts";
import type { Lease, Millis } from "../../kernel/contract/records.ts";
import { taskCommands } from "../../kernel/contract/task-commands.ts";
import { limits } from "./limits.ts";
import { escaped, isoTime, readIsoTime } from "./text.ts";

type Input = Readonly<Record<string, unknown>>;
type Decode<T> = (input: Input, caller: CommandBase) => T;

/** The fields of the kernel's commands. */
export const commandFields: Readonly<Record<string, Fields>> = { ...commands, ...taskCommands };

/** The decoder of a command that has a description, by its type. */
export function decoderOf(type: string): Decode<Command> {
  const members = membersText(descriptionOf(type), "input");
  return compile(
    `{ type: ${JSON.stringify(type)}, tenant: caller.tenant, actor: caller.actor, entropy: caller.entropy, ${members} }`,
  );
}

function descriptionOf(type: string): Fields {
  const fields = commandFields[type];
  if (fields === undefined) throw new TypeError(`no command ${type} is commandFields`);
  return fields;
}

/** How values of a kind are read where they may be left out. */
type Readers = Readonly<Partial<Record<FieldKind, (value: never) => unknown>>>;

/** The decoder of a part of a command, which comes many times in one input. */
export function partDecoderOf<T>(fields: Fields, readers: Readers = {}): (input: unknown) => T {
  let decode: ((input: unknown) => T) | undefined;
  return (input) => {
    if (decode === undefined) {
      const members = Object.entries(fields).map(([key, field]) => {
        const reader = field.optional && readers[field.kind] !== undefined;
        const value = `input.${wireName(key, field)}`;
        const plain = valueText(key, field.optional ? { ...field, usual: null } : field, "input");
        return `${key}: ${reader ? `readers.${field.kind}(${value})` : plain}`;
      });
      decode = new Function("readers", `return (input) => ({ ${members.join(", ")} });`)(readers) as (
        input: unknown,
      ) => T;
    }
    return decode(input);
  };
}

/** The decoder of a query: its fields under their names in camelCase, null where they were left out. */
export function queryDecoderOf<Q>(
  type: string,
  names: readonly string[],
): (input: Input, caller: { readonly tenant: string; readonly actor: Actor }) => Q {
  const members = names.map(
    (name) => `${camelCase(name)}: input.${name} ?? ${name === "limit" ? "pageDefault" : "null"}`,
  );
  let decode: Decode<Q> | undefined;
  return (input, caller) => {
    decode ??= compile(
      `{ type: ${JSON.stringify(type)}, tenant: caller.tenant, actor: caller.actor, ${members.join(", ")} }`,
    );
    return decode(input, caller as CommandBase);
  };
}

/** The names are those of our own descriptions, so nothing of a caller's is ever part of the code. */
function compile<T>(literal: string): Decode<T> {
  const make = new Function("given", "readTime", "pageDefault", `return (input, caller) => (${literal});`);
  return make(given, readIsoTime, limits.pageDefault) as Decode<T>;
}

/** `asGiven`: what was left out is null, whatever is usual. */
function membersText(fields: Fields, from: string, asGiven = false): string {
  return Object.entries(fields)
    .map(
      ([key, field]) =>
        `${key}: ${valueText(key, asGiven && field.optional ? { ...field, usual: null } : field, from)}`,
    )
    .join(", ");
}

function valueText(key: string, field: FieldData, from: string): string {
  if (field.flat && field.fields) {
    return field.partial
      ? `given(${partialText(field.fields, from)})`
      : `{ ${membersText(field.fields, from, field.asGiven)} }`;
  }
  // What the wire does not carry is for the server to fill in.
  if (field.wire === null) return usualText(field);
  const value = `${from}.${wireName(key, field)}`;
  const items = field.kind === "list" && field.items?.kind === "record" ? field.items.fields : undefined;
  if (items !== undefined) {
    const read = `${value}.map((item) => ({ ${membersText(items, "item", true)} }))`;
    return field.optional ? `${value} == null ? ${usualText(field)} : ${read}` : read;
  }
  if (field.kind === "record" && field.asGiven && field.fields) {
    const read = `({ ${membersText(field.fields, value, true)} })`;
    return field.optional ? `${value} == null ? ${usualText(field)} : ${read}` : read;
  }
  if (field.kind === "time") return `${value} == null ? ${usualText(field)} : readTime(${value})`;
  return field.optional ? `${value} ?? ${usualText(field)}` : value;
}

function usualText({ usual }: FieldData): string {
  return JSON.stringify(usual ?? null);
}

/** Where null is a value (no limit), it is not the same as left out. */
function partialText(fields: Fields, from: string): string {
  const members = Object.entries(fields).map(([key, field]) => {
    const value = `${from}.${wireName(key, field)}`;
    return `${key}: ${field.usual === null ? value : `${value} ?? undefined`}`;
  });
  return `{ ${members.join(", ")} }`;
}

function camelCase(name: string): string {
  return name.replace(/_[a-z]/g, ([, letter = ""]) => letter.toUpperCase());
}

/** Only what was given: the kernel keeps the rest as it is. */
function given(values: object): object {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

/**
 * What the wire shows of a value, from its description: as an object, and as text for what a busy server sends most. The
 * text of a lease is put together directly: 0.4 µs, and 0.6 to 0.9 with writing it out, against 0.9 to 1.3 for the object
 * and its JSON.stringify.
 */
export type WireObject = Record<string, unknown>;

/** What an encoder needs besides the value. */
export interface FormContext {
  readonly now: Millis;
  /** Mints the token of a lease that has one (G3). */
  readonly tokenOf?: ((lease: Lease, now: Millis) => string | null) | undefined;
}

/** The two ways in which a value leaves: HTTP and the stream send the text, MCP the object. */
export interface Form<T = never> {
  text(value: T, context: FormContext): string;
  object(value: T, context: FormContext): object;
}

/** Records that are shown with more than their fields say. */
const forms = new Map<Fields, Form>();

export function registerForm<T>(fields: Fields, form: Form<T>): void {
  forms.set(fields, form);
}

/** Both encoders of a description. The one for text is compiled on first use. */
export function formOf<T>(fields: Fields): Form<T> {
  const known = forms.get(fields);
  if (known !== undefined) return known as Form<T>;
  let compiled: Form<T>["text"] | undefined;
  const form: Form<T> = {
    text(value, context) {
      compiled ??= compileText(fields);
      return compiled(value, context);
    },
    object: (value, context) => show(fields, value as object, context),
  };
  forms.set(fields, form);
  return form;
}

/** For what holds no time that is left, and no lease. */
export const timeless: FormContext = { now: 0 };

/** What of a record the wire shows, under its names there. The context is for what is left of a time, and for leases. */
export function show(fields: Fields, record: object, context: FormContext = timeless): WireObject {
  const shown: WireObject = {};
  add(shown, fields, record as Members, context);
  return shown;
}

type Members = Readonly<Record<string, unknown>>;

function add(shown: WireObject, fields: Fields, record: Members, context: FormContext): void {
  for (const [key, field] of Object.entries(fields)) {
    if (field.wire === null) continue;
    const value = field.fixed ?? (field.path === undefined ? record[key] : valueAt(record, field.path)) ?? null;
    if (field.flat && field.fields) add(shown, field.fields, value as Members, context);
    else if (!(field.omitted && isUsual(field, value))) shown[wireName(key, field)] = shownValue(field, value, context);
  }
}

function valueAt(record: Members, path: string): unknown {
  if (path === "") return record;
  let value: unknown = record;
  for (const key of path.split(/\??\./)) value = (value as Members | null | undefined)?.[key];
  return value;
}

function isUsual({ usual }: FieldData, value: unknown): boolean {
  return value === null || (Array.isArray(usual) && (value as readonly unknown[]).length === 0);
}

function shownValue(field: FieldData, value: unknown, context: FormContext): unknown {
  if (value === null) return field.mark ?? null;
  const { kind, fields = {}, items } = field;
  if (kind === "time") return isoTime(value as number);
  if (kind === "remaining") return Math.max(0, (value as number) - context.now);
  if (kind === "record") return formOf<object>(fields).object(value as object, context);
  if (kind !== "list" || items?.kind !== "record") return value;
  const form = formOf<object>(items.fields ?? {});
  return (value as readonly object[]).map((item) => form.object(item, context));
}

/** The members of a record's text, without braces, for a form that adds others. */
export function membersTextOf<T>(fields: Fields): (record: T) => string {
  let text: ((record: T, context: FormContext) => string) | undefined;
  return (record) => {
    text ??= compileText<T>(fields, "");
    return text(record, timeless);
  };
}

/** The names are those of our own descriptions, so nothing of a caller's is ever part of the code. */
function compileText<T>(fields: Fields, brace = "{"): (value: T, context: FormContext) => string {
  const nested: Form[] = [];
  const pieces = piecesOf(fields, "value", nested).map((piece, index) => piece(index === 0 ? "" : ","));
  const code = pieces.length === 0 ? '""' : pieces.join(" + ");
  const whole = brace === "" ? code : `"{" + ${code} + "}"`;
  const make = new Function("escaped", "isoTime", "listText", "nested", `return (value, context) => ${whole};`);
  return make(escaped, isoTime, listText, nested) as (value: T, context: FormContext) => string;
}

/** For each member that is shown: the code of its text, which begins with the given comma or nothing. */
function piecesOf(fields: Fields, from: string, nested: Form[]): readonly ((comma: string) => string)[] {
  return Object.entries(fields)
    .filter(([, { wire }]) => wire !== null)
    .flatMap(([key, field]) => {
      const value = field.path === "" ? from : `${from}.${field.path ?? key}`;
      if (field.flat && field.fields) return piecesOf(field.fields, value, nested);
      const encoded = encodedText(field, value, nested);
      return (comma: string): string => {
        const start = `${comma}"${wireName(key, field)}":`;
        if (field.fixed !== undefined) return JSON.stringify(start + JSON.stringify(field.fixed));
        const present = `${JSON.stringify(start)} + ${encoded}`;
        const { optional, usual = null, omitted, mark = null } = field;
        if (omitted && comma === "") throw new TypeError(`${key} comes first and may be absent`);
        if (omitted && Array.isArray(usual)) return `(${value}.length === 0 ? "" : ${present})`;
        if (!optional || usual !== null) return present;
        const absent = omitted ? "" : start + JSON.stringify(mark);
        return `(${value} == null ? ${JSON.stringify(absent)} : ${present})`;
      };
    });
}

function encodedText({ kind, fields, items }: FieldData, value: string, nested: Form[]): string {
  switch (kind) {
    case "text":
      return `'"' + escaped(${value}) + '"'`;
    case "choice":
      return `'"' + ${value} + '"'`;
    case "time":
      return `'"' + isoTime(${value}) + '"'`;
    case "remaining":
      return `Math.max(0, ${value} - context.now)`;
    case "json":
    case "map":
      return `JSON.stringify(${value})`;
    case "record":
      return `nested[${nested.push(formOf(fields ?? {})) - 1}].text(${value}, context)`;
    case "list":
      if (items?.kind !== "record") return `(${value}.length === 0 ? "[]" : JSON.stringify(${value}))`;
      return `listText(nested[${nested.push(formOf(items.fields ?? {})) - 1}], ${value}, context)`;
    case "integer":
    case "number":
    case "flag":
      return value;
  }
}

function listText<T>(form: Form<T>, items: readonly T[], context: FormContext): string {
  let text = "";
  for (const item of items) text += text === "" ? form.text(item, context) : `,${form.text(item, context)}`;
  return `[${text}]`;
}
