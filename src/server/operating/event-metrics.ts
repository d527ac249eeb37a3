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
import { addOne, labelled, type Meters } from "./meters.ts";

const waitBuckets = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const liveStatuses = taskStatuses.filter((status) => !["succeeded", "failed", "canceled"].includes(status));
/** Counting a million tasks takes many turns, so a count is good for a while. */
const countedForMs = 5_000;

/** Returns what to tell of each event. */
export function addTaskMetrics(service: Service, meters: Meters): (event: KernelEvent) => void {
  const { engine } = service;
  let offers = 0;
  meters.counters("leasehold_task_offers_total", "Offers of tasks to workers.", [], () => [[{}, offers]]);
  const completed = meters.tally("leasehold_task_completions_total", "Tasks that have ended, by status.", "status");
  const requeued = meters.tally(
    "leasehold_task_requeues_total",
    "Tasks that went back to the queue, by reason.",
    "reason",
  );
  const died = meters.tally("leasehold_dead_letters_total", "Tasks that were given up, by reason.", "reason");
  const stored = meters.tally("leasehold_receipts_total", "Receipts that were stored, by phase.", "phase");
  const wait = meters.histogram(
    "leasehold_task_queue_wait_seconds",
    "From when a task could first be offered to its first offer.",
    waitBuckets,
  );
  addTaskCounts(service, meters);
  meters.gauge("leasehold_workers", "Workers that are known.", () =>
    engine.peek((state) => countRecords(state, "worker")),
  );

  const noteTask = (event: TaskEvent): void => {
    const { task, reason } = event;
    switch (event.type) {
      case "task.offered":
        offers++;
        if (task.attempts === 0 && task.offers === 0 && task.live.length === 1)
          wait.observe(Math.max(0, event.at - Math.max(task.createdAt, task.notBefore ?? 0)) / 1_000);
        break;
      case "task.completed":
      case "task.canceled":
        completed(task.status);
        break;
      case "task.requeued":
        requeued(reason ?? "released");
        break;
      case "task.escalated":
        if (task.status === "dead") died(reason ?? task.endReason ?? "escalated");
        break;
      case "task.created":
      case "task.accepted":
      case "task.redriven":
        break;
    }
  };
  return (event) => {
    if ("task" in event) noteTask(event);
    else if (event.type === "receipt.stored") stored(event.receipt.phase);
  };
}

function addTaskCounts({ engine, log }: Service, meters: Meters): void {
  let counts = new Map<string, number>();
  let countedAt = Number.NEGATIVE_INFINITY;
  const help = "Tasks that are not over, by status; dead letters among them. Counted every few seconds at most.";
  meters.gauges("leasehold_tasks", help, ["status"], async () => {
    if (engine.isServing && performance.now() - countedAt >= countedForMs) {
      countedAt = performance.now();
      await count().catch((fault: unknown) => log.warn({ err: fault }, "the tasks could not be counted"));
    }
    return liveStatuses.map((status) => [{ status }, counts.get(status) ?? 0]);
  });

  async function count(): Promise<void> {
    let found = new Map<string, number>();
    await scan<Task>(
      engine,
      (state) => {
        found = new Map();
        return allRecords(state, "task");
      },
      ({ status }) => addOne(found, status),
    );
    counts = found;
  }
}

const secondsBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** Returns a function to be called with every durable event. */
export function addCellMetrics({ engine, cells }: Service, meters: Meters): (event: KernelEvent) => void {
  meters.gauges("leasehold_cells", "Cells that have enrolled, by state.", ["state"], () => {
    const counts = new Map<string, number>(cellStates.map((state) => [state, 0]));
    engine.peek((state) => {
      for (const cell of allRecords(state, "cell")) addOne(counts, cell.state);
    });
    return labelled("state", counts);
  });
  meters.gauge("leasehold_cell_connections", "Cells that are connected to this server.", () => cells.size);
  meters.gauge(
    "leasehold_bindings",
    "Live leases on resources of cells, those that are set up or torn down included.",
    () => engine.peek(countBindings),
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
  let fences = 0;
  meters.counters("leasehold_fences_total", "Resources that were fenced.", [], () => [[{}, fences]]);
  meters.counters(
    "leasehold_cell_frames_total",
    "Frames between cells and this server, by direction and type.",
    ["direction", "type"],
    () =>
      Array.from(cells.vitals.frames, ([name, count]) => {
        const [direction = "", type = ""] = name.split(" ");
        return [{ direction, type }, count];
      }),
  );
  return (event) => {
    if (event.type === "resource.fenced") fences++;
  };
}
