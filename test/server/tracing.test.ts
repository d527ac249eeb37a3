import assert from "node:assert/strict";
import { test } from "node:test";
import { trace } from "@opentelemetry/api";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { serve, until } from "./harness.ts";
import { taskClientOf } from "./task-client.ts";

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const headers = { traceparent: `00-${traceId}-${spanId}-01` };

test("without an SDK there are no spans, and nothing to ask for them", async (t) => {
  const { service, register } = await serve(t);
  await register("a");
  assert.equal(service.tracing, null);
});

test("with an SDK requests, commits and tasks are spans, those of a task below the request that created it", async (t) => {
  const exporter = new InMemorySpanExporter();
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  assert.ok(trace.setGlobalTracerProvider(provider));
  t.after(() => {
    trace.disable();
    return provider.shutdown();
  });
  const server = await serve(t);
  const { create, offered, accept, complete } = taskClientOf(server);
  const taskId = await create({}, { headers });
  const offer = await offered("worker.a");
  await accept(offer);
  await complete(offer);
  await server.get("/v1/tasks/T-none");

  const named = (name: string) =>
    until(() => exporter.getFinishedSpans().find((span) => span.name === name) ?? null, `a span ${name}`);
  const creation = await named("create_task");
  const task = await named("task code.generate");
  for (const span of [creation, task]) {
    assert.deepEqual([span.parentSpanContext?.traceId, span.parentSpanContext?.spanId], [traceId, spanId]);
    assert.equal(span.spanContext().traceId, traceId);
  }
  assert.equal(creation.attributes["http.response.status_code"], 201);
  assert.equal(task.attributes["leasehold.task.id"], taskId);
  assert.equal(task.attributes["leasehold.task.status"], "succeeded");
  assert.equal((await named("get_task")).attributes["http.response.status_code"], 404);
  const commit = await named("commit");
  assert.equal(commit.parentSpanContext, undefined);
  assert.ok(Number(commit.attributes["leasehold.rows"]) > 0);
});
