/**
 * `/metrics`: what an operator watches, in the text format of Prometheus. Most of it is read when somebody looks; what
 * becomes of tasks and cells is counted with their events.
 */
import type { KernelEvent, TaskEvent } from "../../kernel/contract/events.ts";
import type { Task } from "../../kernel/contract/task-records.ts";
import { allRecords, countBindings, countRecords, keysIn, type ListedKind, tenantsIn } from "../../kernel/views.ts";
import { cellStates, taskStatuses } from "../../protocol/schema/vocabulary.ts";
import { scan } from "../queries/scan.ts";
import type { Service } from "../service.ts";
import type { Series } from "./histogram.ts";
import { addOne, labelled, Meters, type Scope } from "./meters.ts";

/** What only the server itself can count. */
export interface ServerCounts {
  readonly connections: () => number;
  readonly eventStreams: () => number;
  readonly streamConnections: () => number;
  /** Of leading: a server on its own leads all the time. */
  readonly term: { readonly epoch: number; readonly since: number };
}

export interface Metrics {
  /** Of a tenant, for its own readers; null: of the whole server, for operators. */
  text(scope: Scope): Promise<string>;
  readonly contentType: string;
  close(): void;
}

const secondsBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const sizeBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

const requestBuckets = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60];

/** How often the loop's delay is measured: by how late a timer is that should have fired by now. */
const loopTimerMs = 10;

const recordGauges: readonly (readonly [name: string, kind: ListedKind | "waiter", help: string])[] = [
  ["leasehold_leases", "lease", "Live leases."],
  ["leasehold_agents", "agent", "Agents that are known."],
  ["leasehold_requests", "request", "Requests that wait, bind or are remembered."],
  ["leasehold_waiters", "waiter", "Requests that wait."],
  ["leasehold_resources", "resource", "Declared resources."],
];

export function createMetrics(service: Service, server: ServerCounts, version: string): Metrics {
  const meters = new Meters();
  const { engine, counts } = service;

  const noteTask = addTaskMetrics(service, meters);
  const noteCell = addCellMetrics(service, meters);
  const types = meters.totals(
    "leasehold_events_total",
    "What happened: grants, waits, expiries and the rest, by type.",
    "type",
  );
  // Every event comes by here, so the tenant's counts are looked up only where the tenant changes.
  let current = { tenant: "", counts: types.ofTenant("") };
  const stopCounting = engine.subscribe((batch) => {
    for (const { event } of batch) {
      const { type, tenant } = event;
      if (tenant !== current.tenant) current = { tenant, counts: types.ofTenant(tenant) };
      current.counts.set(type, (current.counts.get(type) ?? 0) + 1);
      if (type.startsWith("lease.")) continue;
      noteTask(event);
      noteCell(event);
      service.tracing?.note(event);
    }
  });
  const verdicts = "Answers to an acquire, or to the question after its request.";
  meters.counters("server", { name: "leasehold_verdicts_total", help: verdicts, labelNames: ["verdict"] }, () =>
    labelled("verdict", Object.entries(counts.verdicts)),
  );
  const refusals = "Refusals, by code.";
  meters.counters("server", { name: "leasehold_refusals_total", help: refusals, labelNames: ["code"] }, () =>
    labelled("code", counts.refusals),
  );
  const requestSeconds = meters.histogram(
    "leasehold_request_duration_seconds",
    "From when a request was understood to its answer, the time that it was held included, by operation and outcome.",
    requestBuckets,
  );
  const answered = {
    ok: new Map<string, Series>(),
    refused: new Map<string, Series>(),
    failed: new Map<string, Series>(),
  };
  counts.onAnswered = (operation, status, ms) => {
    const outcome = status < 400 ? "ok" : status < 500 ? "refused" : "failed";
    let series = answered[outcome].get(operation);
    if (series === undefined) {
      series = requestSeconds.addSeries({ operation, outcome });
      answered[outcome].set(operation, series);
    }
    series.observe(ms / 1_000);
  };

  const seriesOf = (name: string, help: string, bounds: readonly number[]): Series =>
    meters.histogram(name, help, bounds).addSeries();
  const commitSeconds = seriesOf("leasehold_commit_seconds", "How long a batch takes to be durable.", secondsBuckets);
  const commitRows = seriesOf("leasehold_commit_rows", "Records that a batch writes or deletes.", sizeBuckets);
  const commitAnswers = seriesOf("leasehold_commit_answers", "Callers that a batch answers.", sizeBuckets);
  const lateness = seriesOf("leasehold_expiry_lateness_seconds", "How late what was due is settled.", secondsBuckets);
  engine.vitals.onNoted = (commits, latenessMs) => {
    for (const note of commits) {
      const { ms, rows, answered } = note;
      service.tracing?.commit(note);
      commitSeconds.observe(ms / 1_000);
      commitRows.observe(rows);
      commitAnswers.observe(answered);
    }
    for (const ms of latenessMs) lateness.observe(ms / 1_000);
  };

  for (const [name, kind, help] of recordGauges) {
    meters.gauge("tenant", name, help, (scope) => engine.peek((state) => countRecords(state, kind, scope)));
  }
  meters.gauge("server", "leasehold_tenants", "Tenants.", () => engine.peek(tenantsIn).size);
  meters.gauge("server", "leasehold_keys", "Keys.", () => engine.peek(keysIn).size);
  meters.gauge("server", "leasehold_last_event", "Sequence number of the last durable event.", () => engine.lastSeq);
  const { term } = server;
  meters.gauge("server", "leasehold_leader_epoch", "The epoch in which this server leads.", () => term.epoch);
  meters.gauge(
    "server",
    "leasehold_leading_since_seconds",
    "When this server began to lead, in seconds since 1970.",
    () => term.since / 1_000,
  );
  meters.gauge("tenant", "leasehold_ready", "1 while commands are served.", () => (engine.isServing ? 1 : 0));
  meters.gauge(
    "server",
    "leasehold_clock_offset_seconds",
    "How far the wall clock is ahead of the service's time, which leases go by (L7).",
    () => (Date.now() - engine.now()) / 1_000,
  );
  meters.gauge("server", "leasehold_connections", "Open connections.", server.connections);
  meters.gauge(
    "server",
    "leasehold_held_polls",
    "Answers that are held until something happens.",
    () => service.requests.size + service.polls.size,
  );
  meters.gauge("server", "leasehold_event_streams", "Open streams of server-sent events.", server.eventStreams);
  meters.gauge("server", "leasehold_stream_connections", "Open WebSockets.", server.streamConnections);

  const stopTiming = addLoopDelay(meters, () => {
    // Spans are wanted soon; figures only with a scrape.
    if (service.tracing !== null) engine.vitals.handOver();
  });
  addProcess(meters, version);
  return {
    text(scope) {
      engine.vitals.handOver();
      return meters.text(scope);
    },
    contentType: meters.contentType,
    close() {
      stopTiming();
      stopCounting();
      counts.onAnswered = null;
      engine.vitals.onNoted = null;
      service.cells.vitals.onAnswered = null;
    },
  };
}

/** A histogram, so that no scrape takes anything away from the next one. Calls back with each tick. Returns how to stop. */
function addLoopDelay(meters: Meters, onTick: () => void): () => void {
  const help = "How late the event loop is: by how much a timer of 10 ms fires too late.";
  const late = meters.histogram("leasehold_loop_delay_seconds", help, secondsBuckets).addSeries();
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    late.observe(Math.max(0, now - last - loopTimerMs) / 1_000);
    last = now;
    onTick();
  }, loopTimerMs);
  timer.unref();
  return () => clearInterval(timer);
}

function addProcess(meters: Meters, version: string): void {
  const memory = { name: "leasehold_memory_bytes", help: "Memory of the process, by kind.", labelNames: ["kind"] };
  meters.gauges("server", memory, () => {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    return labelled("kind", Object.entries({ rss, heapUsed, heapTotal, external }));
  });
  const cpu = { name: "process_cpu_seconds_total", help: "Processor time of the process.", labelNames: [] };
  meters.counters("server", cpu, () => {
    const { user, system } = process.cpuUsage();
    return [[{}, (user + system) / 1e6]];
  });
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime());
  meters.gauge("server", "process_start_time_seconds", "When the process began.", () => startedAt);
  const info = { name: "leasehold_info", help: "Always 1.", labelNames: ["version"] };
  meters.gauges("server", info, () => [[{ version }, 1]]);
}

const waitBuckets = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const liveStatuses = taskStatuses.filter((status) => !["succeeded", "failed", "canceled"].includes(status));
/** Counting a million tasks takes many turns, so a count is good for a while. */
const countedForMs = 5_000;

/** Why a task goes back to the queue. A revocation has its sender's own words, which must not become a label. */
const requeueReasons = [
  "lease_expired",
  "released",
  "offer_expired",
  "given_back",
  "failed",
  "escalated",
  "preempted",
  "wounded",
  "cell_withdrawn",
  "tenant_suspended",
  "resource_fenced",
] as const;
const deathReasons = ["never_accepted", "max_retries_exceeded"] as const;

/** Returns a function to be called with every durable event. */
function addTaskMetrics(service: Service, meters: Meters): (event: KernelEvent) => void {
  const { engine } = service;
  const offered = meters.total("leasehold_task_offers_total", "Offers of tasks to workers.");
  const completed = meters.tally("leasehold_task_completions_total", "Tasks that have ended, by status.", "status");
  const requeued = meters.tally(
    "leasehold_task_requeues_total",
    "Tasks that went back to the queue, by reason.",
    "reason",
  );
  const died = meters.tally("leasehold_dead_letters_total", "Tasks that were given up, by reason.", "reason");
  const stored = meters.tally("leasehold_receipts_total", "Receipts that were stored, by phase.", "phase");
  const waited = meters.histogramOfTenants(
    "leasehold_task_queue_wait_seconds",
    "From when a task could first be offered to its first offer.",
    waitBuckets,
  );
  addTaskCounts(service, meters);
  meters.gauge("tenant", "leasehold_workers", "Workers that are known.", (scope) =>
    engine.peek((state) => countRecords(state, "worker", scope)),
  );

  const noteTask = (event: TaskEvent): void => {
    const { task, reason, tenant } = event;
    switch (event.type) {
      case "task.offered":
        offered(tenant);
        if (task.attempts === 0 && task.offers === 0 && task.live.length === 1)
          waited(tenant, Math.max(0, event.at - Math.max(task.createdAt, task.notBefore ?? 0)) / 1_000);
        break;
      case "task.completed":
      case "task.canceled":
        completed(tenant, task.status);
        break;
      case "task.requeued":
        requeued(tenant, oneOf(requeueReasons, reason, "revoked"));
        break;
      case "task.escalated":
        if (task.status === "dead") died(tenant, oneOf(deathReasons, reason ?? task.endReason, "escalated"));
        break;
      case "task.created":
      case "task.accepted":
      case "task.redriven":
        break;
    }
  };
  return (event) => {
    if ("task" in event) noteTask(event);
    else if (event.type === "receipt.stored") stored(event.tenant, event.receipt.phase);
  };
}

function oneOf(known: readonly string[], reason: string | null, other: string): string {
  return reason !== null && known.includes(reason) ? reason : other;
}

interface Count {
  readonly at: number;
  readonly byStatus: ReadonlyMap<string, number>;
}

function addTaskCounts({ engine, log }: Service, meters: Meters): void {
  const counts = new Map<Scope, Count>();
  const help = "Tasks that are not over, by status; dead letters among them. Counted every few seconds at most.";
  meters.gauges("tenant", { name: "leasehold_tasks", help, labelNames: ["status"] }, async (scope) => {
    const { at } = counts.get(scope) ?? { at: Number.NEGATIVE_INFINITY };
    if (engine.isServing && performance.now() - at >= countedForMs) {
      await count(scope).catch((fault: unknown) => log.warn({ err: fault }, "the tasks could not be counted"));
    }
    return liveStatuses.map((status) => [{ status }, counts.get(scope)?.byStatus.get(status) ?? 0]);
  });

  async function count(scope: Scope): Promise<void> {
    const at = performance.now();
    let found = new Map<string, number>();
    await scan<Task>(
      engine,
      (state) => {
        found = new Map();
        return allRecords(state, "task", scope);
      },
      ({ status }) => addOne(found, status),
    );
    counts.set(scope, { at, byStatus: found });
  }
}

const cellBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** Returns a function to be called with every durable event. */
function addCellMetrics({ engine, cells }: Service, meters: Meters): (event: KernelEvent) => void {
  const described = { name: "leasehold_cells", help: "Cells that have enrolled, by state.", labelNames: ["state"] };
  meters.gauges("tenant", described, (scope) => {
    const counts = new Map<string, number>(cellStates.map((state) => [state, 0]));
    engine.peek((state) => {
      for (const cell of allRecords(state, "cell", scope)) addOne(counts, cell.state);
    });
    return labelled("state", counts);
  });
  meters.gauge("server", "leasehold_cell_connections", "Cells that are connected to this server.", () => cells.size);
  meters.gauge(
    "tenant",
    "leasehold_bindings",
    "Live leases on resources of cells, those that are set up or torn down included.",
    (scope) => engine.peek((state) => countBindings(state, scope)),
  );
  const seconds = {
    bind: meters
      .histogram("leasehold_bind_seconds", "How long a cell takes to set a lease up.", cellBuckets)
      .addSeries(),
    teardown: meters
      .histogram("leasehold_teardown_seconds", "How long a cell takes to tear a lease down.", cellBuckets)
      .addSeries(),
  };
  cells.vitals.onAnswered = (op, taken) => seconds[op].observe(taken);
  const fenced = meters.total("leasehold_fences_total", "Resources that were fenced.");
  meters.counters(
    "server",
    {
      name: "leasehold_cell_frames_total",
      help: "Frames between cells and this server, by direction and type.",
      labelNames: ["direction", "type"],
    },
    () =>
      Array.from(cells.vitals.frames, ([name, count]) => {
        const [direction = "", type = ""] = name.split(" ");
        return [{ direction, type }, count];
      }),
  );
  return (event) => {
    if (event.type === "resource.fenced") fenced(event.tenant);
  };
}
