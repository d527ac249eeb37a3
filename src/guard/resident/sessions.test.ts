import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { type TestContext, test } from "node:test";
import { pause, serve } from "../../../test/server/harness.ts";
import { temporaryFolder } from "../../../test/temporary-folder.ts";
import { connect } from "../control-plane.ts";
import type { HookCall } from "../hook-call.ts";
import { lease, noteHolding } from "../leasing.ts";
import { readPayload } from "../payload.ts";
import { writePrivate } from "../private-files.ts";
import { openSession } from "../session.ts";
import { readSettings } from "../settings.ts";
import { Sessions } from "./sessions.ts";

const ttlMs = 4_000;

function sessionAt(url: string, id: string, subagent: string | null = null): HookCall {
  const environment = { LEASEHOLD_URL: url, LEASEHOLD_STATE: state };
  const payload = readPayload(JSON.stringify({ session_id: id, cwd: "/" }), "start", "/");
  const settings = { ...readSettings(null, environment), ttlMs };
  const session = openSession("claude", id, subagent, environment);
  return { tool: "claude", payload, settings, session, environment, server: connect(settings), pid: process.pid };
}

const state = temporaryFolder("lh-");

/** Takes connections and never says anything. */
async function silentServer(t: TestContext): Promise<string> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const address = server.address();
  assert.ok(typeof address === "object" && address !== null);
  return `http://127.0.0.1:${address.port}`;
}

test("a session whose server does not answer holds up no other session's heartbeats", async (t) => {
  const { address, get } = await serve(t);
  const url = await silentServer(t);
  for (const subagent of [null, "one", "two"]) {
    const { session } = sessionAt(url, "stuck", subagent);
    writePrivate(`${session.agentFolder}/agent.json`, JSON.stringify({ agentId: session.agentId, token: "lha", url }));
    noteHolding(session);
  }
  const working = sessionAt(address.url, "working");
  const sessions = new Sessions();
  sessions.note(sessionAt(url, "stuck"), "start");
  sessions.note(working, "start");
  const held = await lease({ ...working }, [{ predicate: "MUTATES", resource: "FILE:/a" }], "to test", 0);
  assert.equal(held.kind, "granted");
  for (let waited = 0; waited < 2 * ttlMs; waited += 200) {
    sessions.tick();
    await pause(200);
  }
  const { body } = await get<{ leases: readonly { agent_id: string }[] }>("/v1/leases");
  assert.deepEqual(
    body.leases.map(({ agent_id: agent }) => agent),
    ["claude-working"],
  );
});
