/** Pages of what one tenant made as large as it may (S4, S8). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { limits } from "../../src/protocol/schema/limits.ts";
import { type Client, serve } from "./harness.ts";

/** A request of 256 names of some 900 characters is 230 KB. */
const long = `FILE:/a/${["", "", "", ""].map(() => "x".repeat(220)).join("/")}`;
const intents = Array.from({ length: 256 }, (_, n) => ({ predicate: "CONSUMES", resource: `${long}/${n}` }));
const count = 24;

async function waiters(server: Client): Promise<string[]> {
  const ids: string[] = [];
  // Older ones wait for a younger holder.
  for (let n = 0; n < count; n++) await server.register(`w${n}`);
  await server.register("holder");
  await server.grant("holder", "FILE:/a/**", { ttl_ms: 300_000 });
  for (let n = 0; n < count; n++) {
    const asked = { agent_id: `w${n}`, intents, wait_timeout_ms: 120_000 };
    const { body, status, text } = await server.post<{ request_id: string }>("/v1/acquire", asked);
    assert.equal(status, 202, text);
    ids.push(body.request_id);
  }
  return ids;
}

interface Page {
  readonly next_cursor: string | null;
}

/** All pages of a list, each of which is bounded in its bytes. */
async function pagesOf<T extends Page>(server: Client, path: string): Promise<T[]> {
  const pages: T[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const { body, text }: { body: T; text: string } = await server.get<T>(
      `${path}limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`,
    );
    assert.ok(text.length < 1.6 * limits.pageBytesMax, `${path}: ${text.length} bytes`);
    pages.push(body);
    cursor = body.next_cursor;
  }
  return pages;
}

interface Waits extends Page {
  readonly waits: readonly { readonly request_id: string }[];
}

test("S4, S8: a page ends at a megabyte, whatever its limit, and its cursor leads to the rest", async (t) => {
  const server = await serve(t);
  const ids = await waiters(server);
  const at = encodeURIComponent(new Date(server.service.engine.now()).toISOString());
  const requests = await pagesOf<Page & { requests: { request_id: string }[] }>(server, "/v1/requests?");
  assert.ok(requests.length >= 5);
  assert.deepEqual(
    requests.flatMap((page) => page.requests.map(({ request_id: id }) => id)),
    ids,
  );

  const waiting = await pagesOf<Waits>(server, `/v1/history?at=${at}&`);
  assert.deepEqual(waiting.flatMap((page) => page.waits.map(({ request_id: id }) => id)).toSorted(), ids.toSorted());

  for (const id of ids) await server.call("DELETE", `/v1/requests/${id}`);
  const ended = await pagesOf<Waits>(server, `/v1/history?at=${at}&`);
  assert.ok(ended.length >= 5);
  assert.deepEqual(ended.flatMap((page) => page.waits.map(({ request_id: id }) => id)).toSorted(), ids.toSorted());
});

test("S8: a portion of stored events is bounded in its bytes, and the next one goes on behind it", async (t) => {
  const server = await serve(t);
  await waiters(server);
  // One commit grants them all: over six thousand leases.
  await server.post("/v1/release", { agent_id: "holder" });
  const { store, lastSeq } = server.service.engine;
  let portions = 0;
  for (let seq = 0; seq < lastSeq; portions++) {
    const { texts, through } = await store.eventsAfter({ tenant: "default", seq, limit: 10_000 });
    const bytes = texts.reduce((sum, text) => sum + text.length, 0);
    assert.ok(bytes < 2 * limits.pageBytesMax, `${bytes} bytes`);
    assert.ok(through > seq);
    seq = through;
  }
  assert.ok(portions > 5, `${portions} portions`);
});
