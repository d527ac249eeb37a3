import assert from "node:assert/strict";
import { test } from "node:test";
import { mutates, serve } from "./harness.ts";
import type { WireOpenRequest } from "./wire-types.ts";

interface RequestPage {
  readonly requests: readonly WireOpenRequest[];
  readonly next_cursor: string | null;
}

test("waiting requests are listed in order of arrival with their obstacles, page by page", async (t) => {
  const server = await serve(t);
  for (const agent of ["first", "second", "third"]) await server.register(agent);
  await server.register("holder");
  const lease = await server.grant("holder", "FILE:/a", { purpose: "rename" });
  const wait = (agent: string) =>
    server.post("/v1/acquire", { agent_id: agent, intents: mutates("FILE:/a"), wait_timeout_ms: 60_000 });
  for (const agent of ["third", "second", "first"]) assert.equal((await wait(agent)).status, 202, agent);

  const { body } = await server.get<RequestPage>("/v1/requests");
  assert.deepEqual(
    body.requests.map(({ agent_id: agent, state, position }) => [agent, state, position]),
    [
      ["third", "WAITING", 1],
      ["second", "WAITING", 2],
      ["first", "WAITING", 3],
    ],
  );
  const [ahead, behind] = body.requests;
  assert.deepEqual(
    ahead?.blocked_by.map(({ lease_id: id, agent_id: agent, purpose }) => [id, agent, purpose]),
    [[lease.id, "holder", "rename"]],
  );
  assert.ok(behind?.blocked_by.some(({ request_id: id }) => id === ahead?.request_id));
  assert.ok((ahead?.times_out_in_ms ?? 0) > 0);

  const page = await server.get<RequestPage>("/v1/requests?limit=2");
  const rest = await server.get<RequestPage>(`/v1/requests?limit=2&cursor=${page.body.next_cursor}`);
  assert.deepEqual(
    [...page.body.requests, ...rest.body.requests].map(({ agent_id: agent }) => agent),
    ["third", "second", "first"],
  );
  assert.equal(rest.body.next_cursor, null);
  const one = await server.get<RequestPage>("/v1/requests?agent_id=second");
  assert.equal(one.body.requests.length, 1);
});

test("W8: listing requests collects no grant, and a decided request is no longer listed", async (t) => {
  const server = await serve(t);
  await server.register("old");
  await server.register("young");
  const lease = await server.grant("young", "FILE:/a");
  await server.post("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/a") });
  await server.post(`/v1/leases/${lease.id}/release`);
  assert.deepEqual((await server.get<RequestPage>("/v1/requests")).body.requests, []);
  const claimable = await server.service.engine.ask((state) => {
    const [held] = [...(state.tenants.get("default")?.leases.values() ?? [])];
    return held?.record.claimBy ?? null;
  });
  assert.notEqual(claimable, null, "the grant still waits to be collected");
});
