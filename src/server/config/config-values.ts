/** Reads a setting's value, which is text from a flag or the environment, and JSON from a file. */

export type Reader<T> = (value: unknown) => { readonly value: T } | { readonly problem: string };

export const text: Reader<string> = (value) =>
  typeof value === "string" && value !== "" ? { value } : { problem: "is empty, or no text" };

export function integer(min: number, max: number): Reader<number> {
  return (value) => {
    const number = typeof value === "string" && /^\d{1,16}$/.test(value) ? Number(value) : value;
    if (typeof number === "number" && Number.isInteger(number) && number >= min && number <= max)
      return { value: number };
    return { problem: `is ${shown(value)}; give a whole number from ${min} to ${max}` };
  };
}

export function choice<const T extends string>(values: readonly T[]): Reader<T> {
  return (value) => {
    const found = values.find((one) => one === value);
    return found === undefined ? { problem: `is ${shown(value)}; give one of ${values.join(", ")}` } : { value: found };
  };
}

/** Given several times, with commas between, or as a JSON array. */
export const list: Reader<readonly string[]> = (value) => {
  const parts = typeof value === "string" ? value.split(",") : value;
  if (!Array.isArray(parts) || !parts.every((part) => typeof part === "string"))
    return { problem: "is no list of texts" };
  return {
    value: parts
      .flatMap((part) => part.split(","))
      .map((part) => part.trim())
      .filter(Boolean),
  };
};

/** Names as they stand in a Host header, with or without a port. */
export const hosts = listOf(
  /^(\*|\[[0-9a-f:.]+\](:\d+)?|[a-z0-9._-]+(:\d+)?)$/i,
  "give names such as leases.example.com",
);

/** As a browser sends them: scheme, host and port, and no more. */
export const origins = listOf(/^https?:\/\/[^\s/,]+$/i, "give origins such as https://ops.example.com");

function listOf(pattern: RegExp, hint: string): Reader<readonly string[]> {
  return (value) => {
    const found = list(value);
    if ("problem" in found) return found;
    const wrong = found.value.find((one) => !pattern.test(one));
    return wrong === undefined ? found : { problem: `has ${shown(wrong)}; ${hint}` };
  };
}

function shown(value: unknown): string {
  return JSON.stringify(value)?.slice(0, 80) ?? String(value);
}
