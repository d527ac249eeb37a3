import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { postgresUrl } from "../../src/store/testing/postgres-fixture.ts";

/** What a user does, from end to end. Each file runs as it is, with its servers on PostgreSQL. */
const chosen = {
  leases: ["test/server/acquiring.test.ts", "test/server/holding.test.ts", "test/server/requests.test.ts"],
  tasks: ["test/server/tasks.test.ts", "test/server/polls.test.ts"],
  receipts: ["test/server/receipts.test.ts", "test/server/custody.test.ts"],
  "cells and tokens": ["test/server/cells.test.ts", "test/server/tokens.test.ts"],
  "events and the stream": ["test/server/events.test.ts", "test/server/stream.test.ts"],
  artifacts: ["test/server/artifacts.test.ts"],
  "the page": ["test/page/page.test.ts", "test/page/actions.test.ts", "test/page/moment.test.ts"],
  MCP: ["test/mcp/tools.test.ts", "test/mcp/life.test.ts"],
};

for (const [what, files] of Object.entries(chosen)) {
  test(`${what}: the end-to-end tests hold on PostgreSQL too`, async () => {
    const { code, output } = await runTests(files);
    assert.equal(code, 0, output.slice(-8_000));
    const passed = Number(/pass (\d+)/.exec(output)?.[1] ?? 0);
    assert.ok(passed >= files.length, output.slice(-2_000));
  });
}

async function runTests(files: readonly string[]): Promise<{ readonly code: number | null; readonly output: string }> {
  const { NODE_TEST_CONTEXT: _context, ...environment } = process.env;
  const env = {
    ...environment,
    LEASEHOLD_TEST_STORE: "postgres",
    LEASEHOLD_TEST_POSTGRES: await postgresUrl(),
  };
  const child = spawn(process.execPath, ["--test", "--test-concurrency=2", ...files], { env });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (output += chunk));
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, output };
}
