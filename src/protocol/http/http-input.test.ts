import assert from "node:assert/strict";
import { test } from "node:test";
import type { Operation } from "../operation.ts";
import { findOperation } from "../operations.ts";
import { type HttpParts, readHttp } from "./http-input.ts";
import { readQuery } from "./query-string.ts";

function operation(name: string): Operation {
  const found = findOperation(name);
  assert.ok(found !== undefined, name);
  return found;
}

function read(name: string, parts: Partial<HttpParts>, route: "main" | "also" = "main") {
  const found = operation(name);
  const chosen = route === "main" ? found : found.also[0];
  assert.ok(chosen !== undefined);
  return readHttp(found, chosen, { params: {}, query: {}, body: undefined, ...parts });
}

test("path and body are joined into one input; a missing body is an empty one", () => {
  const params = { lease_id: "lse_1" };
  assert.deepEqual(read("heartbeat", { params, body: { activity: true } }), {
    ok: true,
    value: { lease_id: "lse_1", activity: true },
  });
  assert.deepEqual(read("heartbeat", { params }), { ok: true, value: { lease_id: "lse_1" } });
});

test("a body cannot say again, or otherwise, what the path says", () => {
  const checked = read("heartbeat", { params: { lease_id: "lse_1" }, body: { lease_id: "lse_2" } });
  assert.ok(!checked.ok);
  assert.equal(checked.field, "lease_id");
});

test("a query's text is read as what the schema wants", () => {
  const checked = read("list_leases", { query: { limit: "10", state: "ACTIVE", agent_id: "agt_1" } });
  assert.deepEqual(checked, { ok: true, value: { limit: 10, state: "ACTIVE", agent_id: "agt_1" } });
  const types = read("events", { query: { since: "0", types: "lease.granted,lease.expired" } });
  assert.deepEqual(types, { ok: true, value: { since: 0, types: ["lease.granted", "lease.expired"] } });
});

test("an empty query value is one that was not given", () => {
  assert.deepEqual(read("list_leases", { query: { resource: "", agent_id: "", state: "", limit: "" } }), {
    ok: true,
    value: {},
  });
});

test("what a query's text cannot be is refused by name, and nothing is guessed", () => {
  for (const limit of ["ten", "1e2", "0x10", " 5", "5.0", "+5", "99999999999999999999"]) {
    const checked = read("list_leases", { query: { limit } });
    assert.ok(!checked.ok, limit);
    assert.deepEqual([checked.field, checked.detail], ["limit", "limit is a string; send an integer or null."]);
  }
  const repeated = read("list_leases", { query: { state: ["ACTIVE", "HELD"] } });
  assert.ok(!repeated.ok);
  assert.equal(repeated.field, "state");
});

test("a body's text is never read as a number", () => {
  const checked = read("verify_all", { params: { agent_id: "agt_1" }, body: { lease_ids: "lse_1" } });
  assert.ok(!checked.ok);
  const ttl = read("acquire", {
    body: { agent_id: "a", intents: [{ predicate: "MUTATES", resource: "FILE:/a" }], ttl_ms: "100" },
  });
  assert.ok(!ttl.ok);
  assert.equal(ttl.field, "ttl_ms");
});

test("unknown names in a query are refused, also where there is a body, and also __proto__", () => {
  const body = { agent_id: "a", intents: [{ predicate: "MUTATES", resource: "FILE:/a" }] };
  const extra = read("acquire", { body, query: { verbose: "1" } });
  assert.ok(!extra.ok);
  assert.equal(extra.field, "verbose");
  const query = JSON.parse('{"__proto__":"x"}') as Record<string, string>;
  const odd = read("list_leases", { query });
  assert.ok(!odd.ok);
  assert.equal(odd.field, "__proto__");
});

test("a release by DELETE takes its version from the query, and no body", () => {
  const params = { lease_id: "lse_1" };
  assert.deepEqual(read("release_lease", { params, query: { version: "v2" } }, "also"), {
    ok: true,
    value: { lease_id: "lse_1", version: "v2" },
  });
  assert.ok(!read("release_lease", { params, body: { version: "v2" } }, "also").ok);
});

test("what the schema cannot say is checked over HTTP too", () => {
  assert.ok(!read("revoke", { body: { reason: "x" } }).ok);
});

test("reading a query leaves alone what it does not know", () => {
  assert.deepEqual(readQuery({ properties: { flag: { type: "boolean" } } }, { flag: "true", other: "5" }), {
    flag: true,
    other: "5",
  });
  assert.deepEqual(readQuery({ properties: { flag: { type: ["boolean", "null"] } } }, { flag: "yes" }), {
    flag: "yes",
  });
  assert.deepEqual(readQuery({}, { constructor: "5" }), { constructor: "5" });
});
