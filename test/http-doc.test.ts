import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { operations } from "../src/protocol/operations.ts";
import { serve } from "./server/harness.ts";

const page = readFileSync("docs/http.md", "utf8");
const examples = [...page.matchAll(/^### (\w+) (\S+)\n[^#]*?```json\n([\s\S]*?)\n```/gm)].map(
  ([, method = "", path = "", body = ""]) => ({ method, path, body }),
);

test("docs/http.md has every operation and each of its paths", () => {
  const missing = operations
    .flatMap((operation) => [operation, ...operation.also])
    .map(({ method, path }) => `### ${method} ${path}`)
    .filter((title) => !page.includes(`${title}\n`));
  assert.deepEqual(missing, []);
});

test("every example of docs/http.md is a request that a server understands", async (t) => {
  const { address } = await serve(t);
  assert.ok(examples.length >= 30, `${examples.length} examples`);
  const refused: string[] = [];
  for (const { method, path, body } of examples) {
    const filled = path.replaceAll(/\{\w+\}/g, "agt_01jcs8qk2m9x4n7r");
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${address.url}${filled}`, {
      method,
      headers,
      body,
      signal: AbortSignal.timeout(30_000),
    });
    const text = await answer.text();
    if (answer.status >= 500 || text.includes('"invalid_request"'))
      refused.push(`${method} ${path}: ${answer.status} ${text}`);
  }
  assert.deepEqual(refused, []);
});
