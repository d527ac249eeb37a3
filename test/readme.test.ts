import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { serve } from "./server/harness.ts";

const text = readFileSync("README.md", "utf8");

/** `curl -s URL -H … -d 'JSON'`, as the page has them; a comment may follow. */
function curlsIn(page: string): readonly { readonly path: string; readonly body: string }[] {
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  return blocks.flatMap((block) =>
    [...block.matchAll(/curl -s http:\/\/127\.0\.0\.1:7117(\S+)[\s\S]*?-d '([^']*)'/g)].map(
      ([, path = "", body = ""]) => ({ path, body }),
    ),
  );
}

test("newuser 1.5: the requests of the README are answered as it says, the second agent's refusal included", async (t) => {
  const { post } = await serve(t);
  const curls = curlsIn(text);
  assert.equal(curls.length, 10, "every request with a body is found");
  let leaseId = "";
  const answers: (readonly [string, number])[] = [];
  for (const { path, body } of curls) {
    const input = JSON.parse(body.replace("lse_…", leaseId)) as object;
    const { status, body: answer } = await post<{ lease_id?: string; verdict?: string }>(path, input);
    leaseId = answer.lease_id ?? leaseId;
    answers.push([answer.verdict ?? path, status]);
  }
  assert.deepEqual(answers, [
    ["/v1/agents", 201],
    ["GRANTED", 200],
    ["/v1/agents", 201],
    ["DIE", 409],
    ["/v1/heartbeat", 200],
    ["/v1/release", 200],
    ["/v1/tasks", 201],
    ["/lease", 200],
    ["/v1/receipts", 201],
    ["/v1/receipts", 201],
  ]);
});

test("newuser 1.1: the README's first screen has the three commands, and the refusal that a second agent reads", () => {
  const screen = text.split("\n").slice(0, 30).join("\n");
  for (const command of ["npx leasehold ", "npx leasehold init", "npx leasehold top"])
    assert.ok(screen.includes(command));
  assert.match(screen, /holds FILE:\/shop\/src\/auth\.ts \(MUTATES, for "/);
  for (const page of ["guards", "sdk", "mcp", "cells", "errors", "concepts"])
    assert.ok(text.includes(`(docs/${page}.md)`), page);
});
