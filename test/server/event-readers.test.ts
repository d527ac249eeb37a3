import assert from "node:assert/strict";
import { test } from "node:test";
import type { Answer } from "../../src/protocol/answers/answer.ts";
import { followEvents } from "../../src/server/events/follow-events.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { follow } from "./event-client.ts";
import { serve, until } from "./harness.ts";

const everything = { tenant: "default", types: null, resource: null, agentId: null, seesAudit: true, meter: null };

/** Events of grants and releases, in many commits. */
async function makeEvents({ register, grant, post }: Awaited<ReturnType<typeof serve>>, cycles: number): Promise<void> {
  await register("alice");
  for (let cycle = 0; cycle < cycles; cycle++) {
    await Promise.all(Array.from({ length: 20 }, (_, index) => grant("alice", `FILE:/${cycle}/${index}`)));
    await post("/v1/release", { agent_id: "alice" });
  }
}

test("S8: however many read old events, the loop has a turn after each portion of any of them", async (t) => {
  const server = await serve(t);
  await makeEvents(server, 60);
  const { service } = server;
  let turn = 0;
  let isOver = false;
  const tick = (): void => {
    turn++;
    if (!isOver) setImmediate(tick);
  };
  tick();
  const portions: number[] = [];
  const readers = Array.from({ length: 8 }, () => ({ events: 0 }));
  const all = readers.map(
    (reader) =>
      new Promise<void>((resolve) => {
        const stop = followEvents(
          service,
          { ...everything, since: 0 },
          () => void reader.events++,
          () => resolve(),
          {
            together: (give) => {
              const { events } = reader;
              give();
              if (reader.events > events) portions.push(turn);
            },
            caughtUp: (isSo) => {
              if (isSo) queueMicrotask(() => stop());
              if (isSo) resolve();
            },
          },
        );
      }),
  );
  await Promise.all(all);
  isOver = true;
  const counts = new Set(readers.map(({ events }) => events));
  assert.deepEqual(counts, new Set([service.engine.lastSeq]), "everybody got everything");
  assert.ok(portions.length >= 8 * 5, `${portions.length} portions`);
  assert.equal(new Set(portions).size, portions.length, "no two of them in one turn of the loop");
});

test("S8: a reader that falls behind what is kept is cut off and gets 410, instead of a gap", async (t) => {
  const server = await serve(t);
  await makeEvents(server, 40);
  const { service } = server;
  const { engine } = service;
  const seen: number[] = [];
  let proceed = (): void => undefined;
  const held = new Promise<void>((resolve) => {
    proceed = resolve;
  });
  let ended: Answer | null = null;
  followEvents(
    service,
    { ...everything, since: 0 },
    (seq) => void seen.push(seq),
    (answer) => {
      ended = answer;
    },
    { pace: () => held },
  );
  await until(() => (seen.length > 0 ? true : null), "the first portion");
  await engine.store.prune({ eventsBefore: engine.now() + 1, endedBefore: 0, endedKeep: 1_000 });
  proceed();
  const answer = await until(() => ended as Answer | null, "the end");
  assert.equal(answer.status, 410);
  assert.deepEqual(
    seen,
    seen.map((_, index) => index + 1),
    "what it got has no gap",
  );
});

test("S8: compressed events are followed like others, by type and by agent too", async (t) => {
  const data = temporaryFolder("leasehold-events-");
  const server = await serve(t, { store: "sqlite", data });
  await makeEvents(server, 60);
  await server.register("bob");
  await server.service.engine.store.compact();
  for (const [query, count] of [
    ["?since=0&types=lease.granted", 1_200],
    ["?since=0&agent_id=bob", 1],
  ] as const) {
    const following = await follow(server.address.url, { query });
    await until(() => (following.events.length >= count ? true : null), `${count} events`);
    assert.equal(following.events.length, count);
    following.stop();
  }
});
