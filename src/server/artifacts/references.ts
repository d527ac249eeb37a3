/** Which artifacts a task or a receipt points to, so that they are kept: pointers of the form that `PUT /v1/artifacts` gives. */

export const pointerPrefix = "leasehold://artifacts/";
const hex = /^[0-9a-f]{64}$/;

/** In texts, and in lists and objects of them. */
export function artifactsIn(...values: readonly unknown[]): readonly string[] {
  const found = new Set<string>();
  const pending: unknown[] = [values];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === "string") {
      const sha256 = value.startsWith(pointerPrefix) ? value.slice(pointerPrefix.length) : "";
      if (hex.test(sha256)) found.add(sha256);
    } else if (typeof value === "object" && value !== null) for (const one of Object.values(value)) pending.push(one);
  }
  return [...found];
}
