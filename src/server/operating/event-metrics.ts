/**
 * Of `/metrics`, what concerns tasks: how many there are of each status, how they move, how long they wait. And what
 * concerns cells: which are there, what is bound, how long that takes, and what was fenced.
 */
import type { KernelEvent, TaskEvent } from "../../kernel/contract/events.ts";
import type { Task } from "../../kernel/contract/task-records.ts";
import { allRecords, countBindings, countRecords } from "../../kernel/views.ts";
import { cellStates, taskStatuses } from "../../protocol/schema/vocabulary.ts";
import { scan } from "../queries/scan.ts";
import type { Service } from "../service.ts";
import { addOne, labelled, type Meters, type Scope } from "./meters.ts";

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
export function addTaskMetrics(service: Service, meters: Meters): (event: KernelEvent) => void {
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

const secondsBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** Returns a function to be called with every durable event. */
export function addCellMetrics({ engine, cells }: Service, meters: Meters): (event: KernelEvent) => void {
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
    bind: meters.histogram("leasehold_bind_seconds", "How long a cell takes to set a lease up.", secondsBuckets),
    teardown: meters.histogram(
      "leasehold_teardown_seconds",
      "How long a cell takes to tear a lease down.",
      secondsBuckets,
    ),
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
