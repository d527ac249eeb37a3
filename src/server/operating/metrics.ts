/** `/metrics`: what an operator watches, in the text format of Prometheus. Most of it is read when somebody looks. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { Counter, Gauge, Histogram, Registry } from "prom-client";
import { type TenantEntry, total } from "../../kernel/views.ts";
import type { Service } from "../service.ts";
import { addCellMetrics, addTaskMetrics } from "./event-metrics.ts";

/** What only the server itself can count. */
export interface ServerCounts {
  readonly connections: () => number;
  readonly eventStreams: () => number;
  readonly streamConnections: () => number;
}

export interface Metrics {
  text(): Promise<string>;
  readonly contentType: string;
  close(): void;
}

const secondsBuckets = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5];
const sizeBuckets = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000];

/** How often the loop's delay is looked at; what is measured is the time between two looks, so this is taken off. */
const loopLookMs = 10;

export function createMetrics(service: Service, server: ServerCounts, version: string): Metrics {
  const register = new Registry();
  const registers = [register];
  const { engine, counts } = service;

  const counter = (
    name: string,
    help: string,
    label: string,
    read: () => Iterable<readonly [string, number]>,
  ): void => {
    new Counter({
      name,
      help,
      labelNames: [label],
      registers,
      collect() {
        this.reset();
        for (const [value, total] of read()) this.inc({ [label]: value }, total);
      },
    });
  };
  const gauge = (name: string, help: string, read: () => number): void => {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(read());
      },
    });
  };
  const histogram = (name: string, help: string, buckets: number[]) =>
    new Histogram({ name, help, buckets, registers });

  const events = new Map<string, number>();
  const noteTask = addTaskMetrics(service, register);
  const noteCell = addCellMetrics(service, register);
  const stopCounting = engine.subscribe((batch) => {
    for (const { event } of batch) {
      events.set(event.type, (events.get(event.type) ?? 0) + 1);
      if (event.type.startsWith("lease.")) continue;
      noteTask(event);
      noteCell(event);
    }
  });
  const verdicts = () => Object.entries(counts.verdicts).map(([verdict, total]) => [verdict, total] as const);
  counter(
    "leasehold_verdicts_total",
    "Answers to an acquire, or to the question after its request.",
    "verdict",
    verdicts,
  );
  counter("leasehold_refusals_total", "Refusals, by code.", "code", () => counts.refusals);
  counter(
    "leasehold_events_total",
    "What happened: grants, waits, expiries and the rest, by type.",
    "type",
    () => events,
  );

  const commitSeconds = histogram("leasehold_commit_seconds", "How long a batch takes to be durable.", secondsBuckets);
  const commitRows = histogram("leasehold_commit_rows", "Records that a batch writes or deletes.", sizeBuckets);
  const commitAnswers = histogram("leasehold_commit_answers", "Callers that a batch answers.", sizeBuckets);
  const lateness = histogram("leasehold_expiry_lateness_seconds", "How late what was due is settled.", secondsBuckets);
  engine.vitals.onNoted = (commits, latenessMs) => {
    for (const { ms, rows, answered } of commits) {
      commitSeconds.observe(ms / 1_000);
      commitRows.observe(rows);
      commitAnswers.observe(answered);
    }
    for (const ms of latenessMs) lateness.observe(ms / 1_000);
  };

  const sum = (count: (tenant: TenantEntry) => number) => () => engine.peek((state) => total(state, count));
  gauge(
    "leasehold_leases",
    "Live leases.",
    sum(({ leases }) => leases.size),
  );
  gauge(
    "leasehold_agents",
    "Agents that are known.",
    sum(({ agents }) => agents.size),
  );
  gauge(
    "leasehold_requests",
    "Requests that wait, bind or are remembered.",
    sum(({ requests }) => requests.size),
  );
  gauge(
    "leasehold_waiters",
    "Requests that wait.",
    sum(({ waitingCount }) => waitingCount),
  );
  gauge(
    "leasehold_resources",
    "Declared resources.",
    sum(({ resources }) => resources.size),
  );
  gauge("leasehold_tenants", "Tenants.", () => engine.peek(({ tenants }) => tenants.size));
  gauge("leasehold_keys", "Keys.", () => engine.peek(({ keys }) => keys.size));
  gauge("leasehold_last_event", "Sequence number of the last durable event.", () => engine.lastSeq);
  gauge("leasehold_ready", "1 while commands are served.", () => (engine.isServing ? 1 : 0));
  gauge("leasehold_connections", "Open connections.", server.connections);
  gauge(
    "leasehold_held_polls",
    "Answers that are held until something happens.",
    () => service.requests.size + service.polls.size,
  );
  gauge("leasehold_event_streams", "Open streams of server-sent events.", server.eventStreams);
  gauge("leasehold_stream_connections", "Open WebSockets.", server.streamConnections);

  const delay = monitorEventLoopDelay({ resolution: loopLookMs });
  delay.enable();
  addLoopDelay(registers, delay);
  addProcess(registers, version);
  return {
    text() {
      engine.vitals.handOver();
      return register.metrics();
    },
    contentType: register.contentType,
    close() {
      delay.disable();
      stopCounting();
      engine.vitals.onNoted = null;
      service.cells.vitals.onAnswered = null;
    },
  };
}

/** Since the last scrape: a peak of last week says nothing about today. */
function addLoopDelay(registers: Registry[], delay: ReturnType<typeof monitorEventLoopDelay>): void {
  new Gauge({
    name: "leasehold_loop_delay_seconds",
    help: "How long the event loop was held up, since the last scrape.",
    labelNames: ["quantile"],
    registers,
    collect() {
      for (const quantile of [50, 99, 100]) {
        this.set(
          { quantile: String(quantile / 100) },
          Math.max(0, delay.percentile(quantile) / 1e9 - loopLookMs / 1e3),
        );
      }
      delay.reset();
    },
  });
}

function addProcess(registers: Registry[], version: string): void {
  new Gauge({
    name: "leasehold_memory_bytes",
    help: "Memory of the process, by kind.",
    labelNames: ["kind"],
    registers,
    collect() {
      const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
      for (const [kind, bytes] of Object.entries({ rss, heapUsed, heapTotal, external })) this.set({ kind }, bytes);
    },
  });
  new Counter({
    name: "process_cpu_seconds_total",
    help: "Processor time of the process.",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new Gauge({ name: "process_start_time_seconds", help: "When the process began.", registers }).set(
    Math.round(Date.now() / 1_000 - process.uptime()),
  );
  new Gauge({ name: "leasehold_info", help: "Always 1.", labelNames: ["version"], registers }).set({ version }, 1);
}
