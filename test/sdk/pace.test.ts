import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { errorPauseMs } from "../../src/sdk/task-polls.ts";
import { clientFor, serve, until } from "./harness.ts";

test("L4: a heartbeat is due after a third of the TTL", async (t) => {
  const { address } = await serve(t);
  const client = clientFor(t, address.url);
  const delays = delaysOf(t);
  await client.withLease("FILE:/src/auth.ts", () => undefined, { ttlMs: 270_000, timeoutMs: 10_000 });
  const long = delays().filter((ms) => ms > 85_000 && ms < 260_000);
  assert.ok(long.length > 0 && long.every((ms) => ms <= 90_000), String(long));
});

test("T6: by default a worker pauses 5 s without work, and from 5 s doubling to 60 s after errors", async (t) => {
  const { ended } = shortened(t);
  const errors = 5;
  const answering: typeof fetch = () => {
    if (ended.length === 0) return Promise.resolve(new Response(null, { status: 204 }));
    return Promise.resolve(Response.json({ error: "database_unavailable", detail: "" }, { status: 503 }));
  };
  const client = clientFor(t, "http://127.0.0.1:9", { fetch: answering, transport: "http", retries: 0 });
  const worker = client.worker({ handler: () => undefined, drainMs: 0 });
  await until(() => (ended.length > errors ? true : null), "it has paused that often");
  await worker.drain();
  const [idle = 0, ...pauses] = ended.slice(0, errors + 1);
  assert.ok(idle > 4_000 && idle <= 5_000, String(idle));
  const expected = [5_000, 10_000, 20_000, 40_000, 50_000];
  const isRight = (ms: number, index: number) => ms >= (expected[index] ?? 0) && ms <= (expected[index] ?? 0) * 1.2;
  assert.ok(pauses.length === errors && pauses.every(isRight), String(pauses));
});

test("T6: chance spreads the pauses after errors, and takes none of them past the longest", () => {
  const pauses = Array.from({ length: 40 }, (_, failures) =>
    [0, 0.5, 1].map((chance) => Math.round(errorPauseMs(failures, 5_000, 60_000, chance))),
  );
  assert.deepEqual(pauses[0], [5_000, 5_500, 6_000]);
  assert.deepEqual(pauses.at(-1), [50_000, 55_000, 60_000]);
  assert.ok(pauses.flat().every((ms) => ms <= 60_000));
});

/** The delays of all timers that are set from now on. */
function delaysOf(t: TestContext): () => readonly number[] {
  const set = t.mock.method(globalThis, "setTimeout");
  return () => set.mock.calls.map(({ arguments: [, ms] }) => Number(ms ?? 0));
}

/** From now on timers of over 4 s end after 100 ms. Those that ended, and were not cleared before, are in `ended`. */
function shortened(t: TestContext): { readonly ended: readonly number[] } {
  const ended: number[] = [];
  const original = globalThis.setTimeout;
  const shorter = (run: () => void, ms = 0): NodeJS.Timeout => {
    if (ms < 4_000) return original(run, ms);
    return original(() => {
      ended.push(ms);
      run();
    }, 100);
  };
  t.mock.method(globalThis, "setTimeout", shorter as typeof setTimeout);
  return { ended };
}
