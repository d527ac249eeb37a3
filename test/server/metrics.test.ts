import assert from "node:assert/strict";
import { test } from "node:test";
import { serve, until } from "./harness.ts";
import { lintMetrics, parseMetrics } from "./prometheus-text.ts";
import { taskClientOf } from "./task-client.ts";

test("the metrics are clean by the rules of promtool, for operators and for a tenant's reader", async (t) => {
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  await server.register("a");
  await server.grant("a", "FILE:/a");
  await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await complete(offer);
  const { body } = await server.post<{ readonly key: string }>("/v1/keys", { role: "operator" });
  const reader = await server.post<{ readonly key: string }>("/v1/keys", { role: "reader" }, { key: body.key });
  for (const key of [body.key, reader.body.key]) {
    const { text } = await server.get("/metrics", { key });
    const families = parseMetrics(text);
    assert.ok(families.size > 10);
    assert.deepEqual(lintMetrics(families), []);
  }
});

test("the checker finds what promtool finds", () => {
  const faultsOf = (...lines: readonly string[]) => lintMetrics(parseMetrics(`${lines.join("\n")}\n`));
  const cases: readonly (readonly [fault: RegExp, ...lines: readonly string[]])[] = [
    [/quantile/, "# HELP a_seconds x", "# TYPE a_seconds gauge", 'a_seconds{quantile="0.5"} 1'],
    [/no help/, "# TYPE a gauge", "a 1"],
    [/without _total/, "# HELP a x", "# TYPE a counter", "a 1"],
    [/not a counter/, "# HELP a_total x", "# TYPE a_total gauge", "a_total 1"],
    [/base unit/, "# HELP a_milliseconds x", "# TYPE a_milliseconds gauge", "a_milliseconds 1"],
    [/abbreviates/, "# HELP a_ms x", "# TYPE a_ms gauge", "a_ms 1"],
    [/camel case/, "# HELP aB x", "# TYPE aB gauge", "aB 1"],
    [
      /add up/,
      "# HELP h x",
      "# TYPE h histogram",
      'h_bucket{le="1"} 2',
      'h_bucket{le="+Inf"} 1',
      "h_sum 1",
      "h_count 1",
    ],
  ];
  for (const [fault, ...lines] of cases) assert.match(faultsOf(...lines).join(), fault);
  for (const bad of ['a{b="c"d="e"} 1', "a 1 2 3", 'a{b="\\x"} 1', "a one"])
    assert.throws(() => parseMetrics(`# TYPE a gauge\n${bad}\n`), bad);
});

test("a scrape takes nothing away from the next one: a blocked loop stays visible", async (t) => {
  const { get } = await serve(t);
  const blockMs = 250;
  const slow = async (): Promise<number> => {
    const buckets = parseMetrics((await get("/metrics")).text).get("leasehold_loop_delay_seconds")?.samples ?? [];
    const countTo = (bound: string): number => buckets.find(({ labels }) => labels.get("le") === bound)?.value ?? 0;
    return countTo("+Inf") - countTo("0.2");
  };
  const before = await slow();
  const end = performance.now() + blockMs;
  while (performance.now() < end);
  await until(async () => ((await slow()) > before ? true : null), "the block was measured");
  assert.ok((await slow()) > before, "seen again by the second reader");
});

test("S5: a tenant's reader sees its own figures alone, and an operator the sum", async (t) => {
  const server = await serve(t);
  const { get, post, register, grant } = server;
  await post("/v1/tenants", { tenant_id: "acme" });
  await register("one");
  await grant("one", "FILE:/a");
  await register("two", { tenant: "acme" });
  await register("three", { tenant: "acme" });
  const { body: operator } = await post<{ readonly key: string }>("/v1/keys", { role: "operator" });
  const keyOf = async (tenant_id: string): Promise<string> =>
    (await post<{ readonly key: string }>("/v1/keys", { role: "reader", tenant_id }, { key: operator.key })).body.key;
  const figures = async (options: { readonly key: string; readonly tenant?: string }) => {
    const families = parseMetrics((await get("/metrics", options)).text);
    const [agents] = families.get("leasehold_agents")?.samples ?? [];
    const granted = families
      .get("leasehold_events_total")
      ?.samples.find(({ labels }) => labels.get("type") === "lease.granted");
    return [agents?.value, granted?.value ?? 0, families.has("leasehold_tenants"), families.has("leasehold_keys")];
  };
  assert.deepEqual(await figures({ key: operator.key }), [3, 1, true, true]);
  assert.deepEqual(await figures({ key: await keyOf("acme") }), [2, 0, false, false]);
  assert.deepEqual(await figures({ key: await keyOf("default") }), [1, 1, false, false]);
  assert.deepEqual(await figures({ key: operator.key, tenant: "acme" }), [2, 0, false, false]);
});

test("S5: the words of a revocation never become a label", async (t) => {
  const server = await serve(t);
  const { create, offered, accept } = taskClientOf(server);
  await create();
  const offer = await offered("worker.a");
  await accept(offer);
  const reason = "incident 4711, customer Foo";
  const { status } = await server.post("/v1/revoke", { lease_id: offer.lease_id, reason });
  assert.equal(status, 200);
  const text = await until(async () => {
    const { text: shown } = await server.get("/metrics");
    return shown.includes("leasehold_task_requeues_total{") ? shown : null;
  }, "it is counted");
  assert.ok(!text.includes("4711"));
  assert.ok(text.includes('leasehold_task_requeues_total{reason="revoked"} 1\n'));
});
