import assert from "node:assert/strict";
import { test } from "node:test";
import { comesWith, isErrorCode } from "../../src/protocol/answers/errors.ts";
import type { Operation } from "../../src/protocol/operation.ts";
import { operations } from "../../src/protocol/operations.ts";
import type { Node } from "../../src/protocol/schema/schema.ts";
import { findAnswerFault } from "../../src/protocol/testing/conformance.ts";
import { serve } from "./harness.ts";
import { malformedBodies, oddBodies, oddHeads, post, randomFrom } from "./hostile-bytes.ts";
import { brokenInputs, brokenTwice, jsonOf, splitInput } from "./hostile-values.ts";
import type { RawAnswer } from "./raw-client.ts";
import { RawPool } from "./raw-pool.ts";

/** The bar, and the number of cases of each kind. */
const casesMin = 10_000;
const pairsPerRoute = 220;
const malformedPerRoute = 70;
const random = randomFrom(20_261_115);
const linesMax = 24;

interface Case {
  readonly what: string;
  readonly bytes: Buffer;
  /** The operation that the request addresses, if any: the response must be one that it declares. */
  readonly operation: Operation | null;
}

test("S3: ten thousand bad requests each get a 4xx with a code, change nothing, and the server still serves", async (t) => {
  // Some requests never end and are cut off by this timeout.
  const server = await serve(t, { requestTimeoutMs: 4_000 });
  await server.register("alice");
  const lease = await server.grant("alice", "FILE:/kept", { ttl_ms: 300_000 });
  const cases: Case[] = [...fieldCases(), ...queryCases(), ...nameCases()];
  const plain = [...oddBodies("/v1/agents", '{"agent_id":"bob"}'), ...oddBodies("/v1/acquire", acquire), ...oddHeads()];
  cases.push(...plain.map((one) => ({ ...one, operation: null })));
  assert.ok(cases.length >= casesMin, `${cases.length} cases`);

  const { engine } = server.service;
  const lastSeq = engine.lastSeq;
  const pool = new RawPool(server.address.port, linesMax);
  const faults: string[] = [];
  await Promise.all(
    cases.map(async (one) => {
      const answer = await pool.send(one.bytes);
      const fault = faultOf(one, answer);
      if (fault !== null) faults.push(`${one.what}: ${fault}\n  ${one.bytes.toString("latin1").slice(0, 300)}`);
    }),
  );
  pool.close();
  t.diagnostic(`${cases.length} bad requests, ${faults.length} badly answered`);
  assert.deepEqual(faults.slice(0, 10), [], `${faults.length} of ${cases.length}`);
  assert.equal(engine.lastSeq, lastSeq, "nothing has happened");
  assert.equal((await server.post(`/v1/leases/${lease.id}/heartbeat`)).status, 200);
  assert.ok(!("admin" in {}), "no prototype was touched");
});

function faultOf({ operation }: Case, { status, head, body }: RawAnswer): string | null {
  if (status < 400 || status > 499) return `status ${status} ${head} ${body.slice(0, 300)}`;
  if (/^HEAD/.test(head)) return null;
  let parsed: { readonly error?: unknown; readonly detail?: unknown };
  try {
    parsed = JSON.parse(body);
  } catch {
    return `no JSON: ${head} ${body.slice(0, 200)}`;
  }
  if (typeof parsed.error !== "string" || !isErrorCode(parsed.error)) return `unknown code ${body}`;
  const isSentence = typeof parsed.detail === "string" && /[.!]$/.test(parsed.detail);
  // Its messages are those of the AsyncGate document.
  if (!isSentence && parsed.error !== "invalid_worker_id") return `no sentence: ${body}`;
  if (/node:|node_modules|src\/\w+\/|:\d+:\d+/.test(body)) return `tells of its inside: ${body}`;
  if (!comesWith(parsed.error, status)) return `${parsed.error} with ${status}`;
  return operation === null ? null : findAnswerFault(operation, { status, body });
}

const acquire = JSON.stringify(operations.find(({ name }) => name === "acquire")?.example);

/** Every operation with a body, with every field broken in every way, alone and in pairs; and invalid JSON. */
function fieldCases(): readonly Case[] {
  return operations.flatMap((operation) =>
    [operation, ...operation.also].flatMap((route) => {
      if (route.body === null || operation.kind === "edge") return [];
      const { path, body } = splitInput(operation, route);
      const once = brokenInputs(route.body, body);
      const fields = [...once, ...brokenTwice(once, body, pairsPerRoute, random)].map(({ what, value }) => ({
        what,
        bytes: post(path, jsonOf(value)),
      }));
      const malformed = malformedBodies(path, jsonOf(body), malformedPerRoute, random);
      return [...fields, ...malformed].map(({ what, bytes }) => ({
        what: `${operation.name} ${what}`,
        operation,
        bytes: withMethod(route.method, bytes),
      }));
    }),
  );
}

function withMethod(method: string, bytes: Buffer): Buffer {
  return Buffer.concat([Buffer.from(method), bytes.subarray("POST".length)]);
}

/** The same for the query, where everything is text. */
function queryCases(): readonly Case[] {
  return operations.flatMap((operation) =>
    [operation, ...operation.also].flatMap((route) => {
      if (route.body !== null || operation.roles === "anyone") return [];
      const { path } = splitInput(operation, route);
      const ask = (what: string, query: string): Case => ({
        what: `${operation.name} ${what}`,
        operation: operation.kind === "edge" ? null : operation,
        bytes: Buffer.from(`${route.method} ${path}?${query} HTTP/1.1\r\nHost: localhost\r\n\r\n`),
      });
      const known = Object.entries((route.query as Node).properties ?? {});
      const unknown = ["surprise=1", "__proto__=1", "constructor[x]=1", "%5f%5fproto%5f%5f=1", "a%00b=1", "=%20"];
      const broken = known.flatMap(([field, schema]) => badTexts(schema).map((text) => `${field}=${text}`));
      return operation.name === "metrics" || operation.name === "stream"
        ? []
        : [...unknown, ...broken].map((query) => ask(query.slice(0, 60), query));
    }),
  );
}

function badTexts({ type, maxLength, enum: choices }: Node): readonly string[] {
  const takes = (name: string) => type === name || (Array.isArray(type) && type.includes(name));
  if (takes("integer")) return ["x", "-1", "1.5", "1e3", "0x10", "99999999999999999999", "%F0%9F%98%80", "NaN"];
  if (choices !== undefined || takes("array")) return ["nonsense", "ACTIVE%00", "__proto__"];
  return ["a%00b", `${"x".repeat((maxLength ?? 2_000) + 1)}`];
}

/** Names that only the kernel can refuse, for an agent that exists. */
function nameCases(): readonly Case[] {
  const operation = operations.find(({ name }) => name === "acquire") ?? null;
  const names = [
    "FILE",
    "FILE:",
    "FILE:a",
    "file:/a",
    "1FILE:/a",
    ":/a",
    "FILE:/a//b",
    "FILE:/a/",
    "FILE:/./a",
    "FILE:/a/../b",
    "FILE:/a\\b",
    "FILE:/a\u0007",
    "FILE:/a\u202eb",
    "FILE:/\u200e",
    "FILE:/\ufeff",
    "FILE:/\u2028",
    "FILE:/\ufffe",
    "TASK:/a",
    "F ILE:/a",
    "FILE:/a\tb",
    `FILE:/${"a/".repeat(70)}b`,
    `${"F".repeat(80)}:/a`,
    " FILE:/a",
    "FILE :/a",
    "http://evil.example/",
    "../../etc/passwd",
    "*",
    "**",
  ];
  const intents = names.flatMap((name) => [
    [{ predicate: "MUTATES", resource: name }],
    [
      { predicate: "CONSUMES", resource: "FILE:/good" },
      { predicate: "MUTATES", resource: name },
    ],
    [{ predicate: "RENAMES", resource: "FILE:/a", to: name }],
  ]);
  const wrong = [
    [{ predicate: "RENAMES", resource: "FILE:/a" }],
    [{ predicate: "MUTATES", resource: "FILE:/a", to: "FILE:/b" }],
    [
      { predicate: "MUTATES", resource: "FILE:/a" },
      { predicate: "MUTATES", resource: "FILE:/a" },
    ],
  ];
  return [...intents, ...wrong].map((manifest) => ({
    what: JSON.stringify(manifest).slice(0, 80),
    operation,
    bytes: post("/v1/acquire", JSON.stringify({ agent_id: "alice", intents: manifest })),
  }));
}
