import assert from "node:assert/strict";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { Refused } from "../../src/server/answering/faults.ts";
import { cursorFor, PageBuilder, readCursor } from "../../src/server/queries/paging.ts";
import { type Listing, listPage, type QueryResult } from "../../src/server/queries/scan.ts";
import { failingStore, serve, until } from "./harness.ts";

test("all pages together are the whole list in order, whatever the order of the items", () => {
  fc.assert(
    fc.property(
      fc.uniqueArray(fc.string({ maxLength: 6 }), { maxLength: 300 }),
      fc.integer({ min: 1, max: 40 }),
      fc.integer({ min: 1, max: 40 }),
      (keys, limit, bytesMax) => {
        const collected: string[] = [];
        let after: string | null = null;
        do {
          const page: PageBuilder<string> = new PageBuilder<string>(limit, after);
          for (const key of keys) page.offer(key, key);
          const { items, lastKey } = page.build((key) => key.length, bytesMax);
          assert.ok(items.length <= limit);
          assert.ok(items.length <= 1 || items.join("").length <= bytesMax);
          collected.push(...items);
          after = lastKey;
        } while (after !== null);
        assert.deepEqual(
          collected,
          keys.toSorted((a, b) => (a < b ? -1 : 1)),
        );
      },
    ),
  );
});

test("a page of very many items is right, although most are dropped on the way", () => {
  const page = new PageBuilder<number>(10, "k00000005");
  for (let turn = 0; turn < 50_000; turn++) {
    const number = (turn * 7_919) % 50_000;
    page.offer(`k${String(number).padStart(8, "0")}`, number);
  }
  const { items, lastKey } = page.build(() => 0, 1);
  assert.deepEqual(items, [6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  assert.equal(lastKey, "k00000015");
});

test("a cursor is valid for its own list only", () => {
  assert.equal(readCursor("leases", null), null);
  assert.equal(readCursor("leases", cursorFor("leases", "lse_1")), "lse_1");
  assert.equal(readCursor("resources", cursorFor("resources", "FILE:/ä/ö")), "FILE:/ä/ö");
  for (const cursor of [cursorFor("agents", "x"), "", "nonsense", "====", "\u0000", "bGVhc2Vz"]) {
    assert.throws(() => readCursor("leases", cursor), Refused, cursor);
  }
});

test("M7: the pages after the first do not look through the list again, and each item comes once, in order", async (t) => {
  const { service } = await serve(t);
  const items = new Map(
    Array.from({ length: 5_000 }, (_, index) => [`k${(index * 7_919) % 5_000}`.padStart(6, "0"), index]),
  );
  const seen: string[] = [];
  let examined = 0;
  const listing: Listing<string> = {
    name: "things",
    reader: null,
    *items() {
      for (const key of items.keys()) {
        examined++;
        yield key;
      }
    },
    keyOf: (key) => key,
    find: (_state, key) => (items.has(key) ? key : undefined),
    reply: (page, nextCursor) => {
      seen.push(...page);
      return { type: "usage", tenantId: String(nextCursor), usage: [] };
    },
  };
  const gone = [...items.keys()].toSorted().slice(2_000, 2_010);
  const all = [...items.keys()].toSorted().filter((key) => !gone.includes(key));
  let cursor: string | null = null;
  for (let pages = 0; pages === 0 || cursor !== null; pages++) {
    const { reply }: QueryResult = await listPage(service.engine, { limit: 100, cursor }, listing);
    assert.ok(reply.type === "usage");
    cursor = reply.tenantId === "null" ? null : reply.tenantId;
    if (pages === 10) for (const key of gone) items.delete(key);
  }
  assert.deepEqual(seen, all);
  assert.equal(examined, 5_000, "once for fifty pages");
});

test("M7: a cursor that nobody remembers is looked up by going through the list", async (t) => {
  const server = await serve(t);
  for (const id of ["a", "b", "c", "d"]) await server.register(id);
  const { body } = await server.get<{ agents: readonly { agent_id: string }[] }>(
    `/v1/agents?limit=2&cursor=${cursorFor("agents", "a")}`,
  );
  assert.deepEqual(
    body.agents.map(({ agent_id: id }) => id),
    ["b", "c"],
  );
});

test("S2: remembered pages do not keep the memory that a failed commit has dropped", async (t) => {
  const failing = failingStore();
  const server = await serve(t, { store: failing.store });
  for (const id of ["a", "b", "c"]) await server.register(id);
  const { body } = await server.get<{ next_cursor: string | null }>("/v1/agents?limit=2");
  assert.ok(body.next_cursor !== null);
  const dropped = server.service.engine.peek((state) => new WeakRef(state));
  failing.failNextCommit("lost");
  assert.equal((await server.post("/v1/agents", { agent_id: "d" })).status, 503);
  failing.comeBack();
  await until(() => (server.service.engine.isServing ? true : null), "it serves again");
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  await until(() => {
    collect();
    return dropped.deref() === undefined ? true : null;
  }, "what was dropped is gone");
});
