import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { type Client, failingStore, mutates, serve, until } from "./harness.ts";
import { type Family, lintMetrics, parseMetrics } from "./prometheus-text.ts";
import { missingIn } from "./promql-names.ts";
import { taskClientOf } from "./task-client.ts";

interface Panel {
  readonly id: number;
  readonly title: string;
  readonly type: string;
  readonly gridPos: { readonly h: number; readonly w: number; readonly x: number; readonly y: number };
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly definition?: string }[] };
}

const folder = "examples/monitoring";
const dashboard = JSON.parse(readFileSync(`${folder}/grafana-dashboard.json`, "utf8")) as Dashboard;
const alertLines = readFileSync(`${folder}/alerts.yaml`, "utf8").split("\n");
const alerts = alertLines.flatMap((line) => /^ +expr: (.+)$/.exec(line)?.[1] ?? []);

test("every metric, label and value that the dashboard and the alerts name is in a scrape", async (t) => {
  const failing = failingStore();
  const server = await serve(t, { store: failing.store });
  await makeTraffic(server);
  failing.failNextCommit("lost");
  const failed = await server.post("/v1/agents", { agent_id: "lost" });
  assert.equal(failed.status, 503, failed.text);
  failing.comeBack();
  const families = await until(async () => {
    const { status, text } = await server.get("/metrics");
    const found = status === 200 ? parseMetrics(text) : new Map<string, Family>();
    return found.get("leasehold_ready")?.samples[0]?.value === 1 ? found : null;
  }, "it serves again");
  assert.deepEqual(lintMetrics(families), []);

  const drawn = dashboard.panels.flatMap(({ targets = [] }) => targets);
  const variables = dashboard.templating.list.flatMap(({ definition }) => definition ?? []);
  assert.ok(drawn.length > 30 && variables.length === 2 && alerts.length > 10, "they were read");
  assert.equal(alerts.length, alertLines.filter((line) => line.includes("- alert: ")).length);
  const expressions = [...drawn.map(({ expr }) => expr), ...variables, ...alerts];
  assert.deepEqual(
    expressions.flatMap((expression) => missingIn(families, expression)),
    [],
  );
  for (const { expr, legendFormat } of drawn) {
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label = ""]) => label);
    const metrics = missingIn(families, `sum by (${shown.join(", ") || "job"}) (${expr})`);
    assert.deepEqual(metrics, [], `the legend of ${expr}`);
  }
});

test("a name that is not in the scrape is found", () => {
  const families = parseMetrics(
    '# HELP leasehold_a_total x\n# TYPE leasehold_a_total counter\nleasehold_a_total{b="c"} 1\n',
  );
  const missing = (expression: string) => missingIn(families, expression).join();
  assert.equal(missing('sum by (b, instance) (rate(leasehold_a_total{b="c",job=~"$job"}[5m]))'), "");
  assert.match(missing("leasehold_b_total"), /leasehold_b_total is not scraped/);
  assert.match(missing('leasehold_a_total{d="c"}'), /no label d/);
  assert.match(missing('leasehold_a_total{b="d"}'), /no b d/);
  assert.match(missing('leasehold_a_total{b=~"(c|d)"}'), /no b d/);
  assert.match(missing("sum by (d) (leasehold_a_total)"), /no metric has the label d/);
  assert.match(missing("vector(1)"), /no metric is named/);
});

test("no two panels of the dashboard overlap, and each has an id and a query of its own", () => {
  const { panels } = dashboard;
  assert.equal(new Set(panels.map(({ id }) => id)).size, panels.length);
  for (const [index, { type, title, targets = [], gridPos: a }] of panels.entries()) {
    assert.ok(type === "row" || targets.length > 0, title);
    assert.ok(a.x + a.w <= 24, title);
    for (const { title: other, gridPos: b } of panels.slice(index + 1)) {
      const isApart = a.x + a.w <= b.x || b.x + b.w <= a.x || a.y + a.h <= b.y || b.y + b.h <= a.y;
      assert.ok(isApart, `${title} overlaps ${other}`);
    }
  }
});

/** Each kind of thing that a label names happens once. */
async function makeTraffic(server: Client): Promise<void> {
  const { post, register, grant } = server;
  const { create, offered, accept, complete, reach, poll } = taskClientOf(server);
  await register("a");
  await register("b");
  const first = await grant("a", "FILE:/a");
  const { id: expiring } = await grant("a", "FILE:/b", { ttl_ms: 1_000 });
  const { id: revoked } = await grant("a", "FILE:/c");
  await post("/v1/acquire", { agent_id: "b", intents: mutates("FILE:/a") });
  await post("/v1/release", { agent_id: "a", lease_ids: [first.id] });
  await post("/v1/revoke", { lease_id: revoked, reason: "over" });
  await post("/v1/resources/fence", { resource: "GPU:/g", reason: "ECC errors" });
  await post("/v1/acquire", { agent_id: "nobody", intents: [] });

  await create();
  const offer = await offered("worker.a");
  await accept(offer);
  await complete(offer);
  const dead = await create({ max_offers: 1 });
  const declined = await offered("worker.a");
  await post(`/lease/${declined.lease_id}/release`);
  await reach(dead, "dead");
  await create();
  const given = await offered("worker.a");
  await accept(given);
  await post(`/lease/${given.lease_id}/release`);
  assert.ok((await poll("worker.b")) !== null, "it went back to the queue");
  await until(async () => {
    const { text } = await server.get("/metrics");
    return /leasehold_events_total\{type="lease.expired"\} [1-9]/.test(text) ? true : null;
  }, `${expiring} expires`);
}
