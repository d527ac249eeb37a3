import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { mutates, pause, serve, until } from "./harness.ts";

interface LeaseThen {
  readonly id: string;
  readonly resource: string;
  readonly agent_id: string;
  readonly ended_at: string | null;
  readonly end_reason: string | null;
}
interface WaitThen {
  readonly request_id: string;
  readonly agent_id: string;
  readonly resources: readonly string[];
  readonly submitted_at: string;
  readonly ended_as: string | null;
  readonly ended_at: string | null;
}
interface HistoryAt {
  readonly at: string;
  readonly complete: boolean;
  readonly leases: readonly LeaseThen[];
  readonly waits: readonly WaitThen[];
  readonly next_cursor: string | null;
}

async function serveHistory(t: TestContext) {
  const data = mkdtempSync(join(tmpdir(), "leasehold-history-"));
  const server = await serve(t, { store: "sqlite", data });
  t.after(() => rmSync(data, { recursive: true, force: true }));
  const { engine } = server.service;
  /** A moment that lies apart from what came before it and what comes after it. */
  const moment = async (): Promise<string> => {
    await pause(5);
    const at = new Date(engine.now()).toISOString();
    await pause(5);
    return at;
  };
  const page = (at: string, more = "") =>
    server.get<HistoryAt>(`/v1/history?at=${encodeURIComponent(at)}${more}`).then(({ status, body, text }) => {
      assert.equal(status, 200, text);
      return body;
    });
  const all = async (at: string, limit: number): Promise<readonly HistoryAt[]> => {
    const pages = [await page(at, `&limit=${limit}`)];
    for (let next = pages[0]?.next_cursor ?? null; next !== null; next = pages.at(-1)?.next_cursor ?? null)
      pages.push(await page(at, `&limit=${limit}&cursor=${next}`));
    return pages;
  };
  return { ...server, engine, moment, page, all };
}

const resourcesOf = ({ leases }: HistoryAt) => leases.map(({ resource }) => resource).sort();

test("what was held at a moment is listed, and not what was held only before or after it", async (t) => {
  const { register, grant, post, moment, page } = await serveHistory(t);
  await register("ann");
  const early = await grant("ann", "FILE:/early");
  const then = await grant("ann", "FILE:/then");
  await grant("ann", "FILE:/still", { ttl_ms: 200_000 });
  await post(`/v1/leases/${early.id}/release`);
  const at = await moment();
  await post(`/v1/leases/${then.id}/release`);
  await grant("ann", "FILE:/later", { ttl_ms: 200_000 });
  const passing = await grant("ann", "FILE:/passing");
  await post(`/v1/leases/${passing.id}/release`);
  const now = await moment();

  const seen = await page(at);
  assert.deepEqual(resourcesOf(seen), ["FILE:/still", "FILE:/then"]);
  assert.equal(seen.at, at);
  assert.equal(seen.complete, true);
  assert.equal(seen.next_cursor, null);
  const [still, ended] = seen.leases;
  assert.equal(still?.ended_at, null);
  assert.ok(ended?.ended_at !== null && (ended?.ended_at ?? "") > at);
  assert.deepEqual(resourcesOf(await page(now)), ["FILE:/later", "FILE:/still"]);
  assert.deepEqual(resourcesOf(await page(at, "&resource=FILE:/then")), ["FILE:/then"]);
  assert.deepEqual(resourcesOf(await page(at, "&agent_id=bob")), []);
});

test("who waited at a moment is listed with how the wait ended, in any way", async (t) => {
  const { register, grant, post, call, moment, page } = await serveHistory(t);
  for (const id of ["a", "b", "c", "d", "holder", "young", "never"]) await register(id);
  const held = await grant("holder", "FILE:/x", { ttl_ms: 200_000 });
  for (const name of ["c", "t", "o", "y"]) await grant("holder", `FILE:/${name}`, { ttl_ms: 200_000 });
  const wait = async (agent: string, resource: string, more = {}) => {
    const asked = { agent_id: agent, intents: mutates(resource), wait_timeout_ms: 60_000, ...more };
    const { status, text, body } = await post<{ request_id: string }>("/v1/acquire", asked);
    assert.equal(status, 202, text);
    return body.request_id;
  };
  const before = await moment();
  const granted = await wait("a", "FILE:/x");
  const canceled = await wait("b", "FILE:/c");
  const timedOut = await wait("c", "FILE:/t", { wait_timeout_ms: 3_000 });
  const died = await wait("young", "FILE:/y", { standby_ms: 3_000, wait_timeout_ms: 0 });
  const open = await wait("d", "FILE:/o");
  const at = await moment();
  await post(`/v1/leases/${held.id}/release`);
  await call("DELETE", `/v1/requests/${canceled}`);
  await post("/v1/acquire", { agent_id: "never", intents: mutates("FILE:/y"), wait_timeout_ms: 0 });
  const isOver = ({ request_id, ended_as }: { request_id: string; ended_as: string | null }) =>
    request_id === open || ended_as !== null;
  const seen = await until(async () => {
    const found = await page(at);
    return found.waits.every(isOver) ? found : null;
  }, "the end of all waits but one");
  const after = await moment();
  const ends = Object.fromEntries(seen.waits.map(({ request_id, ended_as }) => [request_id, ended_as]));
  assert.deepEqual(ends, {
    [open]: null,
    [granted]: "granted",
    [canceled]: "canceled",
    [timedOut]: "timed_out",
    [died]: "died",
  });
  for (const { submitted_at, ended_at, resources } of seen.waits) {
    assert.ok(submitted_at > before && submitted_at <= at, submitted_at);
    assert.ok(ended_at === null || ended_at > at);
    assert.equal(resources.length, 1);
  }
  assert.equal(seen.leases.length, 5);
  assert.deepEqual((await page(before)).waits, []);
  assert.deepEqual(
    (await page(after)).waits.map(({ request_id }) => request_id),
    [open],
  );
  assert.deepEqual(
    (await page(at, "&agent_id=young")).waits.map(({ request_id }) => request_id),
    [died],
  );
  assert.equal((await page(at, "&resource=FILE:/x")).waits.length, 1);
});

test("pages of any size have everything once, across its four parts", async (t) => {
  const { register, grant, post, moment, all } = await serveHistory(t);
  for (const id of ["a", "b", "c", "d", "holder"]) await register(id);
  const names = Array.from({ length: 6 }, (_, index) => `FILE:/${index}`);
  const leases = [];
  for (const name of names) leases.push(await grant("holder", name, { ttl_ms: 200_000 }));
  for (const [index, agent] of ["a", "b", "c", "d"].entries())
    await post("/v1/acquire", { agent_id: agent, intents: mutates(`FILE:/${index}`), wait_timeout_ms: 60_000 });
  const at = await moment();
  for (const { id } of [leases[0], leases[1], leases[5]].flatMap((one) => one ?? []))
    await post(`/v1/leases/${id}/release`);
  for (const limit of [1, 2, 3, 7, 100]) {
    const pages = await all(at, limit);
    assert.deepEqual(pages.flatMap(resourcesOf).sort(), names, `leases by ${limit}`);
    assert.deepEqual(
      pages.flatMap(({ waits }) => waits.map((one) => one.agent_id)).sort(),
      ["a", "b", "c", "d"],
      `waits by ${limit}`,
    );
    assert.ok(pages.every((one) => one.leases.length + one.waits.length <= limit));
  }
});

test("the beginning is found among very many events", async (t) => {
  const { register, grant, post, moment, page, engine } = await serveHistory(t);
  for (const id of ["old", "holder", "busy"]) await register(id);
  const churn = async (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      const intents = mutates(...Array.from({ length: 50 }, (_, index) => `FILE:/busy/${index}`));
      const { status } = await post("/v1/acquire", { agent_id: "busy", intents });
      assert.equal(status, 200);
      await post("/v1/release", { agent_id: "busy" });
    }
  };
  await churn(8);
  const held = await grant("holder", "FILE:/x", { ttl_ms: 200_000 });
  await post("/v1/acquire", { agent_id: "old", intents: mutates("FILE:/x"), wait_timeout_ms: 60_000 });
  const at = await moment();
  await post(`/v1/leases/${held.id}/release`);
  await churn(24);
  assert.ok(engine.lastSeq > 3_000, String(engine.lastSeq));
  const { leases, waits } = await page(at);
  assert.deepEqual(resourcesOf({ leases } as HistoryAt), ["FILE:/x"]);
  assert.deepEqual(
    waits.map(({ agent_id, ended_as }) => [agent_id, ended_as]),
    [["old", "granted"]],
  );
});

test("where leases or events since then are pruned, it says that it is incomplete", async (t) => {
  const { register, grant, post, moment, page, engine } = await serveHistory(t);
  await register("ann");
  const lease = await grant("ann", "FILE:/gone");
  const at = await moment();
  await post(`/v1/leases/${lease.id}/release`);
  const between = await moment();
  await grant("ann", "FILE:/kept", { ttl_ms: 200_000 });
  const after = await moment();
  assert.equal((await page(at)).complete, true);
  await engine.store.prune({ eventsBefore: 0, endedBefore: Date.parse(between), endedKeep: 1_000 });
  const pruned = await page(at);
  assert.deepEqual([pruned.complete, resourcesOf(pruned)], [false, []]);
  assert.equal((await page(between)).complete, true, "all leases that ended since are there, and all events");
  await engine.store.prune({ eventsBefore: Date.parse(between), endedBefore: 0, endedKeep: 1_000 });
  assert.equal((await page(between)).complete, false, "events before it are gone, so some since may be");
  const kept = await page(after);
  assert.deepEqual([kept.complete, resourcesOf(kept)], [true, ["FILE:/kept"]]);
});

test("a moment that is none, lies ahead, or comes with another's cursor is refused", async (t) => {
  const { register, grant, get, moment, page } = await serveHistory(t);
  await register("ann");
  for (const name of ["FILE:/a", "FILE:/b"]) await grant("ann", name);
  const at = await moment();
  const later = await moment();
  const { next_cursor: cursor } = await page(at, "&limit=1");
  const forged = Buffer.from(`history@${Date.parse(at)}\nevents -1:x`).toString("base64url");
  assert.equal((await page(at, `&cursor=${forged}`)).next_cursor, null);
  const ahead = new Date(Date.parse(at) + 3_600_000).toISOString();
  for (const [query, field] of [
    ["", "at"],
    ["?at=yesterday", "at"],
    ["?at=2026-01-05T10:00:00", "at"],
    [`?at=${ahead}`, "at"],
    [`?at=${later}&cursor=${cursor}`, "cursor"],
    [`?at=${at}&resource=nothing`, "resource"],
  ] as const) {
    const { status, body, text } = await get(`/v1/history${query}`);
    assert.equal(status, 400, `${query}: ${text}`);
    assert.equal(body.field, field, query);
  }
});
