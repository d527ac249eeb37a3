/**
 * Spans of OpenTelemetry for requests, commits and tasks, where the process has an SDK (`node --import ./otel.mjs`). Without
 * one nothing is loaded, and a request costs one comparison with null.
 */
import type { Context, Span, Tracer } from "@opentelemetry/api";
import type { CommitNote } from "../../engine/engine-types.ts";
import type { KernelEvent } from "../../kernel/contract/events.ts";
import type { Task } from "../../kernel/contract/task-records.ts";

type Api = typeof import("@opentelemetry/api");

/** Where an SDK registers itself, for every copy of the API of this major version. */
const registered = Symbol.for("opentelemetry.js.api.1");

/** Null where no SDK is registered, or the API is not installed. */
export async function findTracing(version: string): Promise<Tracing | null> {
  const { [registered]: sdk } = globalThis as { readonly [registered]?: { readonly trace?: unknown } };
  if (sdk?.trace === undefined) return null;
  const api = await import("@opentelemetry/api").catch(() => null);
  return api === null ? null : new Tracing(api, version);
}

export class Tracing {
  private readonly api: Api;
  private readonly tracer: Tracer;

  constructor(api: Api, version: string) {
    this.api = api;
    this.tracer = api.trace.getTracer("leasehold", version);
  }

  /** Begins a request's span, below that of the HTTP server where an instrumentation has one. Returns how to end it. */
  request(operation: string, traceparent: unknown): (status: number) => void {
    const { SpanKind, SpanStatusCode, context, trace } = this.api;
    const active = context.active();
    const parent = trace.getSpan(active) === undefined ? this.contextOf(traceparent, active) : active;
    const kind = parent === active ? SpanKind.INTERNAL : SpanKind.SERVER;
    const span = this.tracer.startSpan(operation, { kind, attributes: { "leasehold.operation": operation } }, parent);
    return (status) => {
      span.setAttribute("http.response.status_code", status);
      if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
      span.end();
    };
  }

  /** A batch answers callers of many traces, so a commit is a trace of its own. */
  commit({ began, ms, rows, answered }: CommitNote): void {
    const startTime = performance.timeOrigin + began;
    const attributes = { "leasehold.rows": rows, "leasehold.answered": answered };
    this.tracer.startSpan("commit", { root: true, startTime, attributes }).end(startTime + ms);
  }

  /** From its creation to its end, below the span that created it. */
  note(event: KernelEvent): void {
    if (event.type === "task.completed" || event.type === "task.canceled") this.taskEnded(event.task, event.at);
  }

  private taskEnded(task: Task, at: number): void {
    const { SpanStatusCode, ROOT_CONTEXT } = this.api;
    const { id, status, attempts, createdAt, lastWorker, spec } = task;
    const attributes = {
      "leasehold.task.id": id,
      "leasehold.task.type": spec.taskType,
      "leasehold.task.status": status,
      "leasehold.task.attempts": attempts,
      ...(lastWorker !== null && { "leasehold.worker.id": lastWorker }),
    };
    const parent = this.contextOf(spec.traceparent, ROOT_CONTEXT);
    const span: Span = this.tracer.startSpan(`task ${spec.taskType}`, { startTime: createdAt, attributes }, parent);
    if (status === "failed") span.setStatus({ code: SpanStatusCode.ERROR });
    span.end(Math.max(at, createdAt));
  }

  private contextOf(traceparent: unknown, otherwise: Context): Context {
    if (typeof traceparent !== "string") return otherwise;
    const [, traceId = "", spanId = "", flags = ""] = traceparent.split("-");
    const spanContext = { traceId, spanId, traceFlags: Number.parseInt(flags, 16), isRemote: true };
    const { ROOT_CONTEXT, isSpanContextValid, trace } = this.api;
    return isSpanContextValid(spanContext) ? trace.setSpanContext(ROOT_CONTEXT, spanContext) : otherwise;
  }
}
