/**
 * A query string has only text. What the schema wants as a number, a boolean or a list is read as such here; what
 * cannot be is left as it is, for the check to name. Bodies never come this way: there "5" is not 5.
 */
import type { Node } from "../schema/schema.ts";

/** As parsers give it: a list where a name was repeated. */
export type RawQuery = Readonly<Record<string, string | readonly string[] | undefined>>;

export function readQuery(schema: Node, raw: RawQuery): Readonly<Record<string, unknown>> {
  const read: [string, unknown][] = [];
  for (const name of Object.keys(raw)) {
    const value = raw[name];
    if (value === undefined || value === "") continue; // "?state=&limit=10": an empty one is not given.
    const field =
      schema.properties !== undefined && Object.hasOwn(schema.properties, name) ? schema.properties[name] : undefined;
    read.push([name, field === undefined ? value : readValue(field, value)]);
  }
  return Object.fromEntries(read);
}

function readValue(field: Node, value: string | readonly string[]): unknown {
  if (takes(field, "array"))
    return typeof value === "string" ? value.split(",") : value.flatMap((one) => one.split(","));
  if (typeof value !== "string") return value;
  if (takes(field, "integer")) return /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  if (takes(field, "boolean")) return value === "true" ? true : value === "false" ? false : value;
  return value;
}

function takes({ type }: Node, name: string): boolean {
  return type === name || (Array.isArray(type) && type.includes(name));
}
