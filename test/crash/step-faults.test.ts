/** S2 from the outside: what clients get when a bug makes the kernel throw in the middle of a step. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { throwAtChange } from "../../src/kernel/testing/planted-faults.ts";
import { createSqliteStore } from "../../src/store/sqlite.ts";
import { mutates, serve, until } from "../server/harness.ts";
import { openStream } from "../server/stream-client.ts";
import type { WireLease } from "../server/wire-types.ts";
import { temporaryFolder } from "../temporary-folder.ts";

test("S2: a step that throws is 503 over HTTP and on the stream, nothing of it lasts, and the service goes on", async (t) => {
  const folder = temporaryFolder("leasehold-step-");
  const lines: string[] = [];
  const note = (_details: object, message: string): void => void lines.push(message);
  const log = { info: note, warn: note, error: note };
  const client = await serve(t, { store: createSqliteStore(folder), log });
  await client.register("a");
  await client.register("b");
  const { body } = await client.post<{ leases: WireLease[] }>("/v1/acquire", {
    agent_id: "a",
    intents: mutates("FILE:/1", "FILE:/2", "FILE:/3"),
  });
  const stream = await openStream(t, client.address.url);
  const { engine } = client.service;
  const abort = { agent_id: "a", to: "ABORTED" };
  for (const [nth, send] of [
    async () => {
      const { status, body: refusal } = await client.post("/v1/agents/a/transition", { to: "ABORTED" });
      return { status, error: refusal.error };
    },
    async () => {
      stream.send({ id: 1, op: "transition_agent", input: abort });
      const { status, body: refusal } = await stream.answer(1);
      return { status, error: refusal?.error };
    },
  ].entries()) {
    engine.peek((state) => throwAtChange(state, 2 + nth));
    assert.deepEqual(await send(), { status: 503, error: "database_unavailable" });
    await until(async () => ((await client.get("/readyz")).status === 200 ? true : null), "the service goes on");
    const held = await client.get<{ leases: WireLease[] }>("/v1/leases");
    assert.deepEqual(
      held.body.leases.map(({ id, fence }) => [id, fence]).sort(),
      body.leases.map(({ id, fence }) => [id, fence]).sort(),
    );
  }
  // Without the fault it is the same command with the whole effect.
  assert.equal((await client.post("/v1/agents/a/transition", { to: "ABORTED" })).status, 200);
  await client.grant("b", "FILE:/2");
  assert.equal(lines.filter((line) => line.includes("deciding transition_agent threw")).length, 2);
});
