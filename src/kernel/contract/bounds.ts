/** Checks values against the bounds of their descriptions: the one place that says what is out of bounds, and how. */
import { type FieldData, type Fields, wireName } from "./field.ts";
import { type Refusal, type RefusalCode, refuse } from "./refusals.ts";

/** The refusal of a value out of bounds. `name` is its path on the wire. */
export function outOfBounds(name: string, field: FieldData, tooFew = false): Refusal {
  const { error = "invalid_task" } = field;
  const code: RefusalCode = typeof error === "string" ? error : error[tooFew ? "min" : "max"];
  return invalid(code, name, wanted(field));
}

/** For a value, its items and keys. What is checked with every command is generated instead (inputs.gen.ts). */
export function checkValue(name: string, field: FieldData, value: unknown): Refusal | null {
  if (value === null && field.usual === null) return null;
  if (!isWithin(field, value)) return outOfBounds(name, field);
  const { items } = field;
  if (items === undefined || items.kind === "record") return null;
  for (const [key, item] of Object.entries(value as object)) {
    const refusal = checkValue(field.kind === "map" ? name : `${name}.${key}`, items, item);
    if (refusal !== null) return refusal;
  }
  return null;
}

export function checkValues(fields: Fields, values: object): Refusal | null {
  for (const [key, field] of Object.entries(fields)) {
    const refusal = checkValue(wireName(key, field), field, (values as Readonly<Record<string, unknown>>)[key] ?? null);
    if (refusal !== null) return refusal;
  }
  return null;
}

function isWithin(field: FieldData, value: unknown): boolean {
  const { kind, min = 0, max = Number.MAX_SAFE_INTEGER, bytesMax, keyMax = max, matching, values = [] } = field;
  const isCount = (count: number) => count >= min && count <= max;
  switch (kind) {
    case "text": {
      const text = String(value);
      return text.length >= min && !exceedsCharacters(text, max) && (matching?.pattern.test(text) ?? true);
    }
    case "choice":
      return values.includes(String(value));
    case "integer":
      return Number.isSafeInteger(value) && isCount(Number(value));
    case "list":
      return Array.isArray(value) && isCount(value.length);
    case "map": {
      const keys = Object.keys(value as object);
      return isCount(keys.length) && !keys.some((key) => exceedsCharacters(key, keyMax));
    }
    case "json":
      return bytesMax === undefined || !jsonExceedsBytes(value, bytesMax);
    default:
      return true;
  }
}

/** Of a task or a receipt, what is wrong is also said apart from its field, in a few words. */
export function invalid(code: RefusalCode, field: string, problem: string): Refusal {
  const isTold = code === "invalid_task" || code === "invalid_receipt";
  return refuse(code, `${field}: ${problem}.`, isTold ? { field, problem } : { field });
}

function wanted({ kind, min = 0, max, bytesMax, oneLine, matching, values = [] }: FieldData): string {
  if (bytesMax !== undefined) {
    return `must have ${min > 0 ? "at least 1 character and " : ""}at most ${bytesMax} bytes; put more into an artifact`;
  }
  switch (kind) {
    case "text":
      return `must have ${range(min, max)} characters${oneLine ? " in one line" : ""}${matching ? `: ${matching.words}` : ""}`;
    case "choice":
      return `must be one of ${values.join(", ")}`;
    case "list":
    case "map":
      return `must have ${range(min, max)} items`;
    case "number":
      return `must be a number from ${min}${max === undefined ? "" : ` to ${max}`}`;
    default:
      return max === undefined
        ? `must be a whole number of at least ${min}`
        : `must be a whole number from ${min} to ${max}`;
  }
}

function range(min: number, max = Number.MAX_SAFE_INTEGER): string {
  if (max === Number.MAX_SAFE_INTEGER) return `at least ${min}`;
  return min === 0 ? `at most ${max}` : `${min} to ${max}`;
}

/** Characters are code points, as in JSON Schema; most texts are short enough whatever they hold. */
export function exceedsCharacters(text: string, most: number): boolean {
  if (text.length <= most) return false;
  let count = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code >= 0xd800 && code < 0xdc00 && (text.charCodeAt(at + 1) & 0xfc00) === 0xdc00) count--;
  }
  return count > most;
}

/** The kernel has no encoder: this counts what UTF-8 would take. */
export function utf8Length(text: string): number {
  let bytes = text.length;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x80) continue;
    // Of a surrogate pair each half counts two; everything else above 0x7ff takes three.
    bytes += code < 0x800 || (code >= 0xd800 && code <= 0xdfff) ? 1 : 2;
  }
  return bytes;
}

/** Quick for the usual case: a text never has more bytes than three times its characters. */
export function exceedsBytes(text: string, most: number): boolean {
  if (text.length > most) return true;
  return text.length * 3 > most && utf8Length(text) > most;
}

export function jsonExceedsBytes(value: unknown, most: number): boolean {
  return value !== null && value !== undefined && exceedsBytes(JSON.stringify(value), most);
}
