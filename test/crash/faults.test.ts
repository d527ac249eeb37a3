/** S2 from the outside: what clients get, and can rely on, while the store fails under the server. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createRandom } from "../../sim/random.ts";
import { createMemoryDisk, createMemoryStore, type MemoryDisk } from "../../src/store/memory.ts";
import type { Store } from "../../src/store/store.ts";
import { follow, type SeenEvent } from "../server/event-client.ts";
import { type Body, type Client, type HttpAnswer, mutates, serve, until } from "../server/harness.ts";
import type { WireGranted, WireLease } from "../server/wire-types.ts";

async function serveOn(t: TestContext, disk: MemoryDisk, store: Store = createMemoryStore(disk)) {
  const lines: string[] = [];
  const retriesInMs: number[] = [];
  const note = (details: object, message: string): void => {
    if ("retryInMs" in details) retriesInMs.push(Number(details.retryInMs));
    lines.push(`${message} ${"err" in details && details.err instanceof Error ? details.err.message : ""}`);
  };
  const client = await serve(t, { store, log: { info: note, warn: note, error: note } });
  await client.register("a");
  return { client, lines, retriesInMs };
}

const untilReady = (client: Client): Promise<true> =>
  until(async () => ((await client.get("/readyz")).status === 200 ? true : null), "the service goes on");

function assertUnavailable({ status, body, headers }: HttpAnswer): void {
  assert.equal(status, 503);
  assert.equal(body.error, "database_unavailable");
  assert.match(body.detail ?? "", /request_id/);
  assert.equal(headers.get("retry-after"), "1");
}

test("S2: all requests in flight get 503, readers and the next batch too, and the log has one line", async (t) => {
  const disk = createMemoryDisk();
  const { client, lines } = await serveOn(t, disk);
  const kept = await client.grant("a", "FILE:/kept");
  let letGo = (): void => undefined;
  const gate = new Promise<void>((resolve) => {
    letGo = resolve;
  });
  let underWay = 0;
  disk.beforeCommit = () => {
    underWay++;
    return gate;
  };
  const first = client.post("/v1/acquire", { agent_id: "a", intents: mutates("FILE:/first") });
  await until(() => (underWay === 1 ? true : null), "a commit is under way");
  const others = [
    client.post("/v1/acquire", { agent_id: "a", intents: mutates("FILE:/next") }),
    client.post(`/v1/leases/${kept.id}/heartbeat`),
    client.post(`/v1/leases/${kept.id}/release`),
    client.get(`/v1/leases/${kept.id}`),
    client.get("/v1/leases"),
  ];
  await until(() => (client.service.engine.waitingCount === others.length ? true : null), "all of them are under way");
  disk.failNextCommit = "lost";
  letGo();
  for (const answered of await Promise.all([first, ...others])) assertUnavailable(answered);
  disk.beforeCommit = null;
  await untilReady(client);
  const { body } = await client.get<{ leases: WireLease[] }>("/v1/leases");
  const shown = body.leases.map(({ id, fence, expires_at }) => ({ id, fence, expires_at }));
  assert.deepEqual(shown, [{ id: kept.id, fence: kept.fence, expires_at: kept.expires_at }]);
  const failures = lines.filter((line) => line.includes("a commit failed"));
  assert.equal(failures.length, 1);
  assert.match(failures[0] ?? "", /the commit failed, as the test asked/);
});

test("S2: a store that cannot be opened is retried with back-off and a log line each time; then service resumes", async (t) => {
  const disk = createMemoryDisk();
  const store = createMemoryStore(disk);
  const opens: number[] = [];
  let isAway = false;
  const open = store.open.bind(store);
  store.open = async () => {
    opens.push(performance.now());
    if (isAway) throw new Error("no disk");
    return await open();
  };
  const { client, lines, retriesInMs } = await serveOn(t, disk, store);
  isAway = true;
  disk.failNextCommit = "lost";
  assertUnavailable(await client.post("/v1/acquire", { agent_id: "a", intents: mutates("FILE:/x") }));
  assert.equal((await client.get("/readyz")).status, 503);
  assert.equal((await client.get("/healthz")).status, 200);
  assertUnavailable(await client.get("/v1/leases"));
  await until(() => (retriesInMs.length >= 3 ? true : null), "it was tried three times");
  isAway = false;
  await untilReady(client);
  await client.grant("a", "FILE:/x");
  // The first was the start, the second comes soon after the fault.
  const waits = opens.slice(2).map((at, index) => at - (opens[index + 1] ?? 0));
  assert.equal(waits.length, retriesInMs.length);
  for (const [index, ms] of retriesInMs.entries()) {
    assert.ok(ms > (retriesInMs[index - 1] ?? 0), `was to wait ${retriesInMs.join(", ")} ms`);
    // A busy machine may wait longer; a timer may fire up to a millisecond early.
    assert.ok((waits[index] ?? 0) > ms - 2, `waited ${waits.join(", ")} ms`);
  }
  assert.equal(lines.filter((line) => line.includes("cannot be opened yet")).length, retriesInMs.length);
  assert.equal(lines.filter((line) => line.includes("the store is open again")).length, 1);
});

const resourceOf = ({ data }: SeenEvent): string => (data as { readonly lease?: WireLease }).lease?.resource ?? "";

for (const fate of ["lost", "stored"] as const) {
  test(`S2: events of a commit that failed and was ${fate} are delivered in order or not at all`, async (t) => {
    const disk = createMemoryDisk();
    const { client } = await serveOn(t, disk);
    const following = await follow(client.address.url, { query: "?since=0" });
    const untilTold = (resource: string): Promise<true> =>
      until(() => (following.events.some((event) => resourceOf(event) === resource) ? true : null), resource);
    await client.grant("a", "FILE:/before");
    await untilTold("FILE:/before");
    disk.failNextCommit = fate;
    assertUnavailable(await client.post("/v1/acquire", { agent_id: "a", intents: mutates("FILE:/x") }));
    await untilReady(client);
    // Without any other event, followers get what was stored after all.
    if (fate === "stored") await untilTold("FILE:/x");
    await client.grant("a", "FILE:/after");
    await untilTold("FILE:/after");
    const ids = following.events.map(({ id }) => id);
    assert.deepEqual(
      ids,
      ids.map((_, index) => index + 1),
    );
    assert.equal(following.events.filter((event) => resourceOf(event) === "FILE:/x").length, fate === "stored" ? 1 : 0);
    following.stop();
  });
}

test("S2, W8: a held wait whose grant was in a commit that failed and was stored is answered soon after", async (t) => {
  const disk = createMemoryDisk();
  const { client } = await serveOn(t, disk);
  await client.register("b");
  const lease = await client.grant("b", "FILE:/x");
  const asked = { agent_id: "a", intents: mutates("FILE:/x"), hold_ms: 55_000 };
  const held = client.post<WireGranted>("/v1/acquire", asked);
  await until(() => (client.service.requests.size === 1 ? true : null), "the answer is held");
  disk.failNextCommit = "stored";
  assertUnavailable(await client.post(`/v1/leases/${lease.id}/release`));
  await untilReady(client);
  let answered: HttpAnswer<WireGranted> | null = null;
  void held.then((answer) => (answered = answer));
  // Sooner than the end of its hold, at which it would get the present state.
  const { status } = await until<HttpAnswer<WireGranted>>(() => answered, "the answer");
  assert.equal(status, 200);
});

test("S2, W10: however often commits fail, a repeated request_id is granted once and stays granted", async (t) => {
  const disk = createMemoryDisk();
  const { client } = await serveOn(t, disk);
  const random = createRandom(7);
  const held = new Map<string, WireLease>();
  let failed = 0;
  const insist = async <T>(path: string, body: object): Promise<HttpAnswer<T>> => {
    for (;;) {
      if (random.chance(0.1)) disk.failNextCommit = random.pick(["lost", "stored"]);
      const answered = await client.post<T>(path, body);
      if (answered.status !== 503) return answered;
      assertUnavailable(answered as HttpAnswer<Body>);
      failed++;
      await untilReady(client);
    }
  };
  for (let number = 0; number < 120; number++) {
    const asked = { agent_id: "a", intents: mutates(`FILE:/${number}`), request_id: `r${number}` };
    const { status, body, text } = await insist<WireGranted>("/v1/acquire", asked);
    assert.equal(status, 200, text);
    for (const lease of body.leases) held.set(lease.id, lease);
    const [oldest] = held.keys();
    if (oldest === undefined || random.chance(0.5)) continue;
    assert.equal((await insist(`/v1/leases/${oldest}/release`, {})).status, 200);
    held.delete(oldest);
  }
  disk.failNextCommit = null;
  const { body } = await client.get<{ leases: WireLease[] }>("/v1/leases?limit=1000");
  assert.deepEqual(new Map(body.leases.map(({ id, fence }) => [id, fence])), fencesOf(held));
  assert.ok(failed > 5, `${failed} commits failed`);
});

function fencesOf(leases: ReadonlyMap<string, WireLease>): Map<string, number> {
  return new Map([...leases.values()].map(({ id, fence }) => [id, fence]));
}
