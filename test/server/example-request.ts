import type { Operation, Route } from "../../src/protocol/operation.ts";
import type { Node } from "../../src/protocol/schema/schema.ts";

/** An operation's example, as this route carries it. */
export function exampleRequest(
  { example, name }: Operation,
  route: Route,
): { readonly path: string; readonly body?: object } {
  const part = ({ properties = {} }: Node) =>
    Object.entries(example).filter(([field]) => Object.hasOwn(properties, field));
  const path = route.path.replaceAll(/\{(\w+)\}/g, (_whole, field: string) =>
    encodeURIComponent(String(example[field])),
  );
  const query = new URLSearchParams(part(route.query).map(([field, value]) => [field, String(value)])).toString();
  const address = query === "" ? path : `${path}?${query}`;
  // A suspended default tenant would block all later calls.
  const safe = name === "suspend_tenant" ? address.replace("default", "acme") : address;
  return route.body === null ? { path: safe } : { path: safe, body: Object.fromEntries(part(route.body)) };
}
