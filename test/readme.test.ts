import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { promisify } from "node:util";
import { serve } from "./server/harness.ts";

const text = readFileSync("README.md", "utf8");

/** `curl -s URL -H … -d 'JSON'`, as the page has them; a comment may follow. */
function curlsIn(page: string): readonly { readonly path: string; readonly body: string }[] {
  const blocks = [...page.matchAll(/```sh\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
  return blocks.flatMap((block) =>
    [...block.matchAll(/curl -s http:\/\/127\.0\.0\.1:7117(\S+)[\s\S]*?-d '((?:[^']|'\$LEASE')*)'/g)].map(
      ([, path = "", body = ""]) => ({ path, body }),
    ),
  );
}

interface Answer {
  readonly lease_id?: string;
  readonly verdict?: string;
  readonly leases?: readonly { readonly id: string }[];
}

test("newuser 1.5: the requests of the README are answered as it says, the second agent's refusal included", async (t) => {
  const { post } = await serve(t);
  const curls = curlsIn(text);
  assert.equal(curls.length, 10, "every request with a body is found");
  let leaseId = "";
  const answers: (readonly [string, number])[] = [];
  for (const { path, body } of curls) {
    const input = JSON.parse(body.replace(/lse_…|'\$LEASE'/, leaseId)) as object;
    const { status, body: answer } = await post<Answer>(path, input);
    leaseId = answer.lease_id ?? answer.leases?.[0]?.id ?? leaseId;
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

test("newuser 1.6: the README says what DIE's time means, and that who holds nothing can stand by, which is so", async (t) => {
  assert.match(text, /ask again after `retry_after_ms` at the earliest\. When Alice will\s+be done nobody knows/);
  assert.match(readFileSync("docs/errors.md", "utf8"), /does not say when the holder will be done/);
  const { post } = await serve(t);
  const ask = (agent: string, more: object) =>
    post<{ verdict: string }>("/v1/acquire", {
      ...{ agent_id: agent, intents: [{ predicate: "MUTATES", resource: "FILE:/shop/src/**" }], ...more },
    });
  for (const agent of ["agt_alice", "agt_bob"]) await post("/v1/agents", { agent_id: agent });
  assert.equal((await ask("agt_alice", {})).body.verdict, "GRANTED");
  const waiting = ask("agt_bob", { standby_ms: 30_000, hold_ms: 30_000 });
  await post("/v1/release", { agent_id: "agt_alice" });
  assert.equal((await waiting).body.verdict, "GRANTED");
});

test("newuser 1.7: a heartbeat as the README writes it says that a lease was lost", async (t) => {
  const { post } = await serve(t);
  const body = curlsIn(text).find(({ path }) => path === "/v1/heartbeat")?.body ?? "";
  await post("/v1/agents", { agent_id: "agt_alice" });
  const { body: granted } = await post<Answer>("/v1/acquire", {
    ...{
      agent_id: "agt_alice",
      ttl_ms: 1_000,
      intents: [{ predicate: "MUTATES", resource: "FILE:/shop/src/auth.ts" }],
    },
  });
  const id = granted.leases?.[0]?.id ?? "";
  await pause(1_500);
  const { body: beat } = await post<{ leases: readonly object[]; lost: readonly { id: string }[] }>(
    "/v1/heartbeat",
    JSON.parse(body.replace("lse_…", id)) as object,
  );
  assert.deepEqual([beat.leases, beat.lost.map((one) => one.id)], [[], [id]]);
});

test("newuser 1.8: pasted into a shell, the README's task goes from its creation to its receipt", async (t) => {
  const { address, get } = await serve(t);
  const block = text.split("### Work for others")[1]?.match(/```sh\n([\s\S]*?)```/)?.[1] ?? "";
  const here = block.replaceAll("http://127.0.0.1:7117", address.url);
  await promisify(execFile)("/bin/sh", ["-euc", here]);
  const { body } = await get<{ tasks: readonly { status: string }[] }>("/v1/tasks");
  assert.deepEqual(
    body.tasks.map(({ status }) => status),
    ["succeeded"],
  );
});

test("newuser 1.1: the README's first screen has the three commands, and the refusal that a second agent reads", () => {
  const screen = text.split("\n").slice(0, 30).join("\n");
  for (const command of ["npx leasehold ", "npx leasehold init", "npx leasehold top"])
    assert.ok(screen.includes(command));
  assert.match(screen, /holds FILE:\/shop\/src\/auth\.ts \(MUTATES, for "/);
  for (const page of ["guards", "sdk", "mcp", "cells", "errors", "concepts"])
    assert.ok(text.includes(`(docs/${page}.md)`), page);
});
