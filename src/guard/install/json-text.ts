/** JSON files of others: read whole, changed in one place, written the way they were written before. */
import { isRecord } from "../payload.ts";
import { CannotChange } from "./changes.ts";

export type Json = Readonly<Record<string, unknown>>;

export function parseConfig(path: string, text: string | null): Json {
  if (text === null || text.trim() === "") return {};
  try {
    const read: unknown = JSON.parse(text.replace(/^\ufeff/, ""));
    if (isRecord(read)) return read;
  } catch {
    // Said below.
  }
  throw new CannotChange(
    `${path} is not a plain JSON object (comments are not allowed); fix it, or add the entries by hand: docs/guards.md has them`,
  );
}

/** With the indentation, the line ends and the last line's end that it had. */
export function formatConfig(value: Json, like: string | null): string {
  const [, indent = "  "] = /^([ \t]+)"/m.exec(like ?? "") ?? [];
  const isOneLine = like !== null && like.trim() !== "" && !like.trim().includes("\n") && like.trim() !== "{}";
  const text = isOneLine ? JSON.stringify(value) : JSON.stringify(value, null, indent);
  const ended = like === null || like.trim() === "" || like.endsWith("\n") ? `${text}\n` : text;
  return like?.includes("\r\n") === true ? ended.replaceAll("\n", "\r\n") : ended;
}

/** The same value with one field set, or taken out where it is undefined; the order of the others stays. */
export function withField(value: Json, field: string, content: unknown): Json {
  if (content === undefined) return Object.fromEntries(Object.entries(value).filter(([name]) => name !== field));
  return { ...value, [field]: content };
}

/** Without containers that hold nothing: two files that differ only in those say the same. */
export function pruned(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value;
  if (!isRecord(value)) return value;
  const kept = Object.entries(value).flatMap(([name, one]) => {
    const rest = pruned(one);
    return rest === undefined ? [] : [[name, rest] as const];
  });
  return kept.length === 0 ? undefined : Object.fromEntries(kept);
}
