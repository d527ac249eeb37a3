/**
 * The language in which records, commands and replies are described: each field once, as plain data, with its type,
 * bounds, default and wire name. TypeScript types are derived from a description by the mapped types below; store
 * codecs, schemas, JSON, SDK types and checks are derived or generated from the same data (`npm run generate`).
 */
import type { RefusalCode } from "./refusals.ts";

export type FieldKind =
  | ("text" | "choice" | "integer" | "number" | "flag" | "time" | "remaining")
  | ("json" | "list" | "map" | "record");

/** What a field is when the program runs. */
export interface FieldData {
  readonly kind: FieldKind;
  /** Of a text in characters, of a number its value, of a list or map its items. */
  readonly min?: number;
  readonly max?: number;
  /** The size of a text in UTF-8, or of free JSON as text. */
  readonly bytesMax?: number;
  /** The text must not contain a line break. */
  readonly oneLine?: true;
  /** The text must match, which says in words what it consists of. The kernel checks it where such a name is new. */
  readonly matching?: { readonly pattern: RegExp; readonly words: string };
  /** A number above this is lowered to it with a warning, never refused (L2). */
  readonly cap?: number;
  /** Of a choice: its values. */
  readonly values?: readonly string[];
  /** Of a list or a map: what each item is; of a map also the longest key. */
  readonly items?: FieldData;
  readonly keyMax?: number;
  /** Of a nested record. */
  readonly fields?: Fields;
  /** The refusal of a value out of bounds: one code, or one for too few items and one for too many. */
  readonly error?: RefusalCode | { readonly min: RefusalCode; readonly max: RefusalCode };
  /** May be left out of an input, or be null there, which means the same. */
  readonly optional?: true;
  /** What an absent value means, in an input and in the store; null unless the description says otherwise. */
  readonly usual?: unknown;
  /** The usual value is that of this other field. */
  readonly like?: string;
  /** Its name on the wire where it is not the key in snake_case; null: the wire never carries it. */
  readonly wire?: string | null;
  /** Shown on the wire only where it is not null, or not empty if the usual value is an empty list. */
  readonly omitted?: true;
  /** Of an answer: where its value is, if not under the key ("lease.expiresAt", "payload?.inputs"); "": the whole. */
  readonly path?: string;
  /** Of an answer: always this. */
  readonly fixed?: unknown;
  /** What the wire shows in place of null (LegiVellum's marks). */
  readonly mark?: unknown;
  /** Of a nested record: stored as a list of its values, in the order of its fields. */
  readonly listed?: true;
  /** Of a nested record: what was left out is null, whatever is usual. */
  readonly asGiven?: true;
  /** Of a nested record: only what was given is passed on. */
  readonly partial?: true;
  /** The fields of a nested record stand beside those of the outer one on the wire. */
  readonly flat?: true;
}

declare const types: unique symbol;

/** `In` is the value as a caller may give it, `Out` with the default filled in. */
export interface Field<In = unknown, Out = In> extends FieldData {
  readonly [types]?: { readonly in: In; readonly out: Out };
}

export type Fields = Readonly<Record<string, FieldData>>;

type InOf<F> = F extends Field<infer In, unknown> ? In : never;
type OutOf<F> = F extends Field<unknown, infer Out> ? Out : never;

/** What a described record is: every default filled in. */
export type Values<F> = { readonly [K in keyof F]: OutOf<F[K]> };
/** The same as a caller gives it: null where something was left out. */
export type InputValues<F> = { readonly [K in keyof F]: InOf<F[K]> };

interface Bounds {
  readonly min?: number;
  readonly max?: number;
  readonly error?: RefusalCode;
}
interface TextBounds extends Bounds {
  readonly bytesMax?: number;
  readonly oneLine?: true;
  readonly matching?: NonNullable<FieldData["matching"]>;
}

export function text<T extends string = string>(bounds: TextBounds = {}): Field<T> {
  return { kind: "text", ...bounds };
}

/** One of a closed list. */
export function choice<const T extends string>(values: readonly T[], bounds: Pick<Bounds, "error"> = {}): Field<T> {
  return { kind: "choice", values, ...bounds };
}

/** One of a closed list, which the kernel has not checked yet. */
export function uncheckedChoice(values: readonly string[], bounds: Pick<Bounds, "error"> = {}): Field<string> {
  return { kind: "choice", values, ...bounds };
}

/** A whole number, exact as a JSON number; not negative unless `min` says so. */
export function integer(bounds: Bounds & { readonly cap?: number } = {}): Field<number> {
  return { kind: "integer", ...bounds };
}

export function number(bounds: Bounds = {}): Field<number> {
  return { kind: "number", ...bounds };
}

export function flag(): Field<boolean> {
  return { kind: "flag" };
}

/** Milliseconds since 1970 by the control plane's clock (L7); ISO 8601 on the wire. */
export function time(bounds: Pick<Bounds, "error"> = {}): Field<number> {
  return { kind: "time", ...bounds };
}

/** A time that the wire shows as the milliseconds that are left, so that a reader needs no clock of the server's. */
export function remaining(): Field<number> {
  return { kind: "remaining" };
}

/** Any JSON of the caller's own. */
export function json(bounds: Pick<TextBounds, "bytesMax" | "error"> = {}): Field {
  return { kind: "json", ...bounds };
}

export function list<In, Out>(
  items: Field<In, Out>,
  bounds: Pick<FieldData, "min" | "max" | "error"> = {},
): Field<readonly In[], readonly Out[]> {
  return { kind: "list", items, ...bounds };
}

/** An object whose keys are data. */
export function map<T>(
  items: Field<T>,
  bounds: Pick<FieldData, "max" | "keyMax" | "error"> = {},
): Field<Readonly<Record<string, T>>> {
  return { kind: "map", items, ...bounds };
}

export function record<F extends Fields>(fields: F): Field<Values<F>> {
  return { kind: "record", fields };
}

/** A nested record that is stored as a list of its values, in this order. */
export function listed<F extends Fields>(fields: F): Field<Values<F>> {
  return { kind: "record", fields, listed: true };
}

/** A nested record as a caller gives it. */
export function given<F extends Fields>(fields: F): Field<InputValues<F>> {
  return { kind: "record", fields, asGiven: true };
}

/** A nested record of which any part may be left out, which then stays as it was. */
export function partial<T>(field: Field<T>): Field<Partial<T>> {
  return { ...field, partial: true } as Field<Partial<T>>;
}

/** May be left out; then it is null, or what is usual. */
export function optional<T>(field: Field<T>): Field<T | null>;
export function optional<T, const U>(field: Field<T>, usual: U): Field<T | null, [U] extends [T] ? T : T | U>;
export function optional(field: FieldData, usual: unknown = null): Field {
  return { ...field, optional: true, usual };
}

/** Left out, it is what another field of the record is. */
export function optionalLike<T>(field: Field<T>, like: string): Field<T | null, T> {
  return { ...field, optional: true, like } as Field<T | null, T>;
}

/** Has another name on the wire than the key in snake_case. */
export function named<const N extends string, F extends FieldData>(wire: N, field: F): F & { readonly wire: N } {
  return { ...field, wire };
}

/** Never on the wire. */
export function hidden<F extends FieldData>(field: F): F & { readonly wire: null } {
  return { ...field, wire: null };
}

/** Left out on the wire where it is null. */
export function omitted<F extends FieldData>(field: F): F & { readonly omitted: true } {
  return { ...field, omitted: true };
}

/** Each is left out on the wire where it was not given. */
export function whereGiven<F extends Fields>(
  fields: F,
): { readonly [K in keyof F]: F[K] & { readonly omitted: true } } {
  const entries = Object.entries(fields).map(([key, field]) => [key, omitted({ ...field, optional: true })]);
  return Object.fromEntries(entries);
}

/** An answer takes it from this place in what it shows. */
export function from<F extends FieldData>(path: string, field: F): F {
  return { ...field, path };
}

/** An answer always has this text. */
export function fixed<const T extends string>(value: T): Field<T> {
  return { kind: "choice", values: [value], fixed: value };
}

/** An answer always has this value, of a field that is described elsewhere. */
export function always<In, Out>(value: Out, field: Field<In, Out>): Field<In, Out> {
  return { ...field, fixed: value };
}

/** Where it is null, the wire has this mark. */
export function marked<F extends FieldData>(mark: unknown, field: F): F & { readonly mark: unknown } {
  return { ...field, mark };
}

/** On the wire its fields stand beside those of the outer record. */
export function flat<F extends FieldData>(field: F): F & { readonly flat: true } {
  return { ...field, flat: true };
}

/** Gives every field that has no code of its own this one. */
export function refusedWith<F extends Fields>(error: RefusalCode, fields: F): F {
  return Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, { error, ...field }])) as F;
}

/** Some of the fields. */
export function only<F extends Fields, K extends keyof F & string>(fields: F, ...keys: readonly K[]): Pick<F, K> {
  return Object.fromEntries(keys.map((key) => [key, fields[key]])) as Pick<F, K>;
}

/** The fields without some of them. */
export function without<F extends Fields, K extends keyof F & string>(fields: F, ...keys: readonly K[]): Omit<F, K> {
  const rest = Object.keys(fields).filter((key) => !(keys as readonly string[]).includes(key));
  return only(fields, ...rest) as Omit<F, K>;
}

/** All of it left out: what a test or an example then fills in. */
export function blank<F extends Fields>(fields: F): InputValues<F> {
  return Object.fromEntries(Object.keys(fields).map((key) => [key, null])) as InputValues<F>;
}

/** The record with the usual value in every field that has one. */
export function usual<F extends Fields>(fields: F): Partial<Values<F>> {
  const entries = Object.entries(fields).filter(([, field]) => field.optional === true && field.like === undefined);
  return Object.fromEntries(entries.map(([key, field]) => [key, field.usual])) as Partial<Values<F>>;
}

export type SnakeCase<S extends string> = S extends `${infer First}${infer Rest}`
  ? `${First extends Capitalize<First> ? (First extends Uncapitalize<First> ? First : `_${Uncapitalize<First>}`) : First}${SnakeCase<Rest>}`
  : S;

/** The name of a field on the wire; never for what is hidden. */
export type WireName<F, K extends keyof F & string> = F[K] extends { readonly wire: infer N }
  ? N extends string
    ? N
    : never
  : SnakeCase<K>;

export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

export function wireName(key: string, { wire }: FieldData): string {
  return wire ?? snakeCase(key);
}
