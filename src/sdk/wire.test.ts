import assert from "node:assert/strict";
import { test } from "node:test";
import { readHttp } from "../protocol/http/http-input.ts";
import { operations } from "../protocol/operations.ts";
import { requestFor } from "./http-form.ts";
import { keyFields, type OperationName, safe } from "./idempotency.ts";
import { routes } from "./wire.ts";

/** Sent again, these would do more, or be refused although they had succeeded. */
const once: ReadonlySet<OperationName> = new Set<OperationName>([
  "resign_leader",
  "transition_agent",
  "resume_agent",
  "renew_lease",
  "transfer_lease",
  "downgrade_lease",
  "report_violation",
  "revoke",
  "redrive_task",
  "recover_obligation",
  "create_tenant",
  "create_key",
  "delete_key",
  "rotate_key",
  "delete_policy",
  "delete_artifact",
  "rotate_token_keys",
  "cancel_tasks",
  "redrive_tasks",
  "create_session",
  "create_session_link",
]);

test("every operation's example arrives at the server as it was given", () => {
  for (const operation of operations) {
    if (!Object.hasOwn(routes, operation.name)) continue;
    const { path, body } = requestFor(operation.name as OperationName, operation.example);
    const url = new URL(path, "http://localhost");
    const read = readHttp(operation, operation, {
      params: paramsOf(operation.path, url.pathname),
      query: Object.fromEntries(url.searchParams),
      body: body === null ? undefined : JSON.parse(body),
    });
    assert.ok(read.ok, `${operation.name}: ${read.ok ? "" : read.detail}`);
    const given = Object.entries(operation.example).filter(([, value]) => value !== null || body !== null);
    assert.deepEqual({ ...read.value }, Object.fromEntries(given), operation.name);
  }
});

test("of everything that changes something it is said whether it may be sent again", () => {
  for (const name of Object.keys(routes) as OperationName[]) {
    const lists = [safe.has(name), once.has(name), keyFields[name] !== undefined, routes[name].method === "GET"];
    assert.equal(lists.filter(Boolean).length, 1, name);
  }
});

function paramsOf(pattern: string, path: string): Record<string, string> {
  const names = [...pattern.matchAll(/\{(\w+)\}/g)].map(([, name = ""]) => name);
  const found = new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, "([^/]+)")}$`).exec(path);
  return Object.fromEntries(names.map((name, index) => [name, decodeURIComponent(found?.[index + 1] ?? "")]));
}
