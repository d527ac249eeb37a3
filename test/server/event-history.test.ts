import assert from "node:assert/strict";
import { test } from "node:test";
import { serve } from "./harness.ts";

test("with follow=false the stored events are sent and the response ends", async (t) => {
  const server = await serve(t);
  await server.register("alice");
  for (let count = 0; count < 20; count++) await server.grant("alice", `FILE:/history/${count}`);
  await server.register("bob");
  const read = async (query: string) => {
    const response = await fetch(`${server.address.url}/v1/events?follow=false${query}`);
    assert.equal(response.status, 200);
    return [...(await response.text()).matchAll(/^data: (.+)$/gm)].map(
      ([, data = ""]) => (JSON.parse(data) as { type: string }).type,
    );
  };
  assert.equal((await read("&since=0&types=lease.granted")).length, 20);
  assert.deepEqual(await read("&since=0&agent_id=bob"), ["agent.registered"]);
  assert.deepEqual(await read(""), [], "without a beginning there is nothing that was");
  assert.equal((await fetch(`${server.address.url}/v1/events?follow=perhaps`)).status, 400);
});
