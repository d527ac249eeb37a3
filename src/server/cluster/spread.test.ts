import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { shardOfTenant } from "./shards.ts";
import { isToGive, mayTake } from "./spread.ts";

/** Servers that look at the shards in turn, as they are led at that moment; null: nobody leads it. */
function settle(led: (string | null)[], servers: readonly string[]): { moves: number; vacantMax: number } {
  let [moves, vacantMax, turns] = [0, 0, 0];
  const standing = () => new Map(servers.map((name) => [name, led.filter((one) => one === name).length]));
  for (let quiet = 0; quiet <= servers.length; quiet++) {
    assert.ok(turns++ < 1_000, "it comes to an end");
    for (const server of servers) {
      const vacant = led.indexOf(null);
      if (vacant !== -1 && mayTake(standing(), server, led.length, 0)) {
        led[vacant] = server;
        quiet = 0;
      } else if (vacant === -1 && isToGive(standing(), server)) {
        led[led.lastIndexOf(server)] = null;
        moves++;
        quiet = 0;
      }
      vacantMax = Math.max(vacantMax, led.filter((one) => one === null).length);
    }
  }
  return { moves, vacantMax };
}

const names = ["a", "b", "c", "d"];

test("whatever each server leads, in the end all servers lead about as many shards, and they move one at a time", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 4 }), fc.array(fc.nat(), { minLength: 1, maxLength: 32 }), (count, picks) => {
      const servers = names.slice(0, count);
      const led: (string | null)[] = picks.map((pick) => servers[pick % count] ?? null);
      const before = [...led];
      const { moves, vacantMax } = settle(led, servers);
      const counts = servers.map((name) => led.filter((one) => one === name).length);
      assert.ok(Math.max(...counts) - Math.min(...counts) <= 1, counts.join());
      assert.ok(vacantMax <= 1);
      // No more than have to.
      const excess = servers.map(
        (name) => before.filter((one) => one === name).length - Math.floor(led.length / count),
      );
      assert.ok(moves <= excess.filter((more) => more > 0).reduce((sum, more) => sum + more, 0));
    }),
  );
});

test("a shard that stays vacant is taken by anybody, however many it leads", () => {
  const standing = new Map([
    ["a", 4],
    ["b", 0],
  ]);
  assert.equal(mayTake(standing, "a", 5, 0), false);
  assert.equal(mayTake(standing, "b", 5, 0), true);
  assert.equal(mayTake(standing, "a", 5, 5_000), true);
});

test("of servers that lead the most, one gives a shard away", () => {
  const standing = new Map([
    ["b", 3],
    ["a", 3],
    ["c", 1],
  ]);
  assert.deepEqual(
    ["a", "b", "c"].filter((server) => isToGive(standing, server)),
    ["a"],
  );
});

test("a server that leads less than its share goes after those that lead the least", () => {
  const standing = new Map([
    ["a", 1],
    ["b", 0],
  ]);
  assert.equal(mayTake(standing, "a", 16, 0), false);
  assert.equal(mayTake(standing, "a", 16, 400), true);
});

test("tenants are spread over shards as evenly as by chance, and always to the same one", () => {
  fc.assert(
    fc.property(fc.constantFrom(2, 3, 4, 16, 64), fc.string({ minLength: 1, maxLength: 8 }), (shards, prefix) => {
      const each = 100;
      const counts = new Array<number>(shards).fill(0);
      for (let n = 0; n < shards * each; n++) {
        const shard = shardOfTenant(`${prefix}-${n}`, shards);
        assert.equal(shard, shardOfTenant(`${prefix}-${n}`, shards));
        counts[shard] = (counts[shard] ?? 0) + 1;
      }
      // Six standard deviations of chance: no run of this test meets them.
      for (const count of counts) assert.ok(Math.abs(count - each) < 60, counts.join());
    }),
    { numRuns: 30 },
  );
  assert.deepEqual([shardOfTenant("default", 16), shardOfTenant("acme", 16), shardOfTenant("acme", 1)], [1, 13, 0]);
});
