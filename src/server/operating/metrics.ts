/** `/metrics`: what an operator watches, in the text format of Prometheus. Most of it is read when somebody looks. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { countRecords, keysIn, type ListedKind, tenantsIn } from "../../kernel/views.ts";
import type { Service } from "../service.ts";
import { addCellMetrics, addTaskMetrics } from "./event-metrics.ts";
import { labelled, Meters } from "./meters.ts";

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
  const noteType = meters.tally(
    "leasehold_events_total",
    "What happened: grants, waits, expiries and the rest, by type.",
    "type",
  );
  const stopCounting = engine.subscribe((batch) => {
    for (const { event } of batch) {
      noteType(event.type);
      if (event.type.startsWith("lease.")) continue;
      noteTask(event);
      noteCell(event);
    }
  });
  meters.counters(
    "leasehold_verdicts_total",
    "Answers to an acquire, or to the question after its request.",
    ["verdict"],
    () => labelled("verdict", Object.entries(counts.verdicts)),
  );
  meters.counters("leasehold_refusals_total", "Refusals, by code.", ["code"], () => labelled("code", counts.refusals));

  const commitSeconds = meters.histogram(
    "leasehold_commit_seconds",
    "How long a batch takes to be durable.",
    secondsBuckets,
  );
  const commitRows = meters.histogram("leasehold_commit_rows", "Records that a batch writes or deletes.", sizeBuckets);
  const commitAnswers = meters.histogram("leasehold_commit_answers", "Callers that a batch answers.", sizeBuckets);
  const lateness = meters.histogram(
    "leasehold_expiry_lateness_seconds",
    "How late what was due is settled.",
    secondsBuckets,
  );
  engine.vitals.onNoted = (commits, latenessMs) => {
    for (const { ms, rows, answered } of commits) {
      commitSeconds.observe(ms / 1_000);
      commitRows.observe(rows);
      commitAnswers.observe(answered);
    }
    for (const ms of latenessMs) lateness.observe(ms / 1_000);
  };

  for (const [name, kind, help] of recordGauges) {
    meters.gauge(name, help, () => engine.peek((state) => countRecords(state, kind)));
  }
  meters.gauge("leasehold_tenants", "Tenants.", () => engine.peek(tenantsIn).size);
  meters.gauge("leasehold_keys", "Keys.", () => engine.peek(keysIn).size);
  meters.gauge("leasehold_last_event", "Sequence number of the last durable event.", () => engine.lastSeq);
  meters.gauge("leasehold_ready", "1 while commands are served.", () => (engine.isServing ? 1 : 0));
  meters.gauge(
    "leasehold_clock_offset_seconds",
    "How far the wall clock is ahead of the service's time, which leases go by (L7).",
    () => (Date.now() - engine.now()) / 1_000,
  );
  meters.gauge("leasehold_connections", "Open connections.", server.connections);
  meters.gauge(
    "leasehold_held_polls",
    "Answers that are held until something happens.",
    () => service.requests.size + service.polls.size,
  );
  meters.gauge("leasehold_event_streams", "Open streams of server-sent events.", server.eventStreams);
  meters.gauge("leasehold_stream_connections", "Open WebSockets.", server.streamConnections);

  const delay = monitorEventLoopDelay({ resolution: loopLookMs });
  delay.enable();
  addLoopDelay(meters, delay);
  addProcess(meters, version);
  return {
    text() {
      engine.vitals.handOver();
      return meters.registry.metrics();
    },
    contentType: meters.registry.contentType,
    close() {
      delay.disable();
      stopCounting();
      engine.vitals.onNoted = null;
      service.cells.vitals.onAnswered = null;
    },
  };
}

/** Since the last scrape: a peak of last week says nothing about today. */
function addLoopDelay(meters: Meters, delay: ReturnType<typeof monitorEventLoopDelay>): void {
  const help = "How long the event loop was held up, since the last scrape.";
  meters.gauges("leasehold_loop_delay_seconds", help, ["quantile"], () => {
    const seconds = [50, 99, 100].map((quantile) => {
      const late = Math.max(0, delay.percentile(quantile) / 1e9 - loopLookMs / 1e3);
      return [{ quantile: String(quantile / 100) }, late] as const;
    });
    delay.reset();
    return seconds;
  });
}

function addProcess(meters: Meters, version: string): void {
  meters.gauges("leasehold_memory_bytes", "Memory of the process, by kind.", ["kind"], () => {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    return labelled("kind", Object.entries({ rss, heapUsed, heapTotal, external }));
  });
  meters.counters("process_cpu_seconds_total", "Processor time of the process.", [], () => {
    const { user, system } = process.cpuUsage();
    return [[{}, (user + system) / 1e6]];
  });
  const startedAt = Math.round(Date.now() / 1_000 - process.uptime());
  meters.gauge("process_start_time_seconds", "When the process began.", () => startedAt);
  meters.gauges("leasehold_info", "Always 1.", ["version"], () => [[{ version }, 1]]);
}
