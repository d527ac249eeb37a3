/**
 * Of `/metrics`, what concerns tasks: how many there are of each status, how they move, how long they wait. And what
 * concerns cells: which are there, what is bound, how long that takes, and what was fenced.
 */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { KernelEvent, TaskEvent } from "../../kernel/contract/events.ts";
import type { Cell } from "../../kernel/contract/records.ts";
import type { State } from "../../kernel/kernel.ts";
import type { TaskEntry } from "../../kernel/views.ts";
import { cellStates, taskStatuses } from "../../protocol/schema/vocabulary.ts";
import { leasesOn } from "../queries/cell-queries.ts";
import { scan } from "../queries/scan.ts";
import type { Service } from "../service.ts";

const waitBuckets = [0.001, 0.002, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 1_800, 3_600];
const liveStatuses = taskStatuses.filter((status) => !["succeeded", "failed", "canceled"].includes(status));
/** Counting a million tasks takes many turns, so a count is good for a while. */
const countedForMs = 5_000;

/** Returns what to tell of each event. */
export function addTaskMetrics(service: Service, register: Registry): (event: KernelEvent) => void {
  const registers = [register];
  const { engine } = service;
  const counted = (name: string, help: string, label: string) => {
    const totals = new Map<string, number>();
    new Counter({
      name,
      help,
      labelNames: [label],
      registers,
      collect() {
        this.reset();
        for (const [value, total] of totals) this.inc({ [label]: value }, total);
      },
    });
    return (value: string): void => {
      totals.set(value, (totals.get(value) ?? 0) + 1);
    };
  };
  let offers = 0;
  new Counter({
    name: "leasehold_task_offers_total",
    help: "Offers of tasks to workers.",
    registers,
    collect() {
      this.reset();
      this.inc(offers);
    },
  });
  const completed = counted("leasehold_task_completions_total", "Tasks that have ended, by status.", "status");
  const requeued = counted("leasehold_task_requeues_total", "Tasks that went back to the queue, by reason.", "reason");
  const died = counted("leasehold_dead_letters_total", "Tasks that were given up, by reason.", "reason");
  const stored = counted("leasehold_receipts_total", "Receipts that were stored, by phase.", "phase");
  const wait = new Histogram({
    name: "leasehold_task_queue_wait_seconds",
    help: "From when a task could first be offered to its first offer.",
    buckets: waitBuckets,
    registers,
  });
  addTaskCounts(service, registers);
  new Gauge({
    name: "leasehold_workers",
    help: "Workers that are known.",
    registers,
    collect() {
      const total = engine.peek(({ tenants }) =>
        [...tenants.values()].reduce((sum, { book }) => sum + book.workers.size, 0),
      );
      this.set(total);
    },
  });

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

function addTaskCounts({ engine, log }: Service, registers: Registry[]): void {
  let counts = new Map<string, number>();
  let countedAt = Number.NEGATIVE_INFINITY;
  new Gauge({
    name: "leasehold_tasks",
    help: "Tasks that are not over, by status; dead letters among them. Counted every few seconds at most.",
    labelNames: ["status"],
    registers,
    async collect() {
      if (engine.isServing && performance.now() - countedAt >= countedForMs) {
        countedAt = performance.now();
        await count().catch((fault: unknown) => log.warn({ err: fault }, "the tasks could not be counted"));
      }
      for (const status of liveStatuses) this.set({ status }, counts.get(status) ?? 0);
    },
  });

  async function count(): Promise<void> {
    let found = new Map<string, number>();
    const begin = (state: State) => {
      found = new Map();
      return allTasks(state);
    };
    await scan<TaskEntry>(engine, begin, ({ record, alive }) => {
      if (alive) found.set(record.status, (found.get(record.status) ?? 0) + 1);
    });
    counts = found;
  }
}

function* allTasks({ tenants }: State): Generator<TaskEntry> {
  for (const { tasks } of tenants.values()) yield* tasks.values();
}

const secondsBuckets = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10];

/** Returns a function to be called with every durable event. */
export function addCellMetrics({ engine, cells }: Service, register: Registry): (event: KernelEvent) => void {
  const registers = [register];
  new Gauge({
    name: "leasehold_cells",
    help: "Cells that have enrolled, by state.",
    labelNames: ["state"],
    registers,
    collect() {
      const counts = new Map<Cell["state"], number>(cellStates.map((state) => [state, 0]));
      engine.peek(({ tenants }) => {
        for (const { cells: known } of tenants.values()) {
          for (const { record } of known.values()) counts.set(record.state, (counts.get(record.state) ?? 0) + 1);
        }
      });
      for (const [state, count] of counts) this.set({ state }, count);
    },
  });
  new Gauge({
    name: "leasehold_cell_connections",
    help: "Cells that are connected to this server.",
    registers,
    collect() {
      this.set(cells.size);
    },
  });
  new Gauge({
    name: "leasehold_bindings",
    help: "Live leases on resources of cells, those that are set up or torn down included.",
    registers,
    collect() {
      let count = 0;
      engine.peek(({ tenants }) => {
        for (const { resources } of tenants.values()) {
          for (const entry of resources.values()) if (entry.record.cell !== null) count += leasesOn(entry);
        }
      });
      this.set(count);
    },
  });
  const seconds = {
    bind: new Histogram({
      name: "leasehold_bind_seconds",
      help: "How long a cell takes to set a lease up.",
      buckets: secondsBuckets,
      registers,
    }),
    teardown: new Histogram({
      name: "leasehold_teardown_seconds",
      help: "How long a cell takes to tear a lease down.",
      buckets: secondsBuckets,
      registers,
    }),
  };
  cells.vitals.onAnswered = (op, taken) => seconds[op].observe(taken);
  const fences = new Counter({ name: "leasehold_fences_total", help: "Resources that were fenced.", registers });
  new Counter({
    name: "leasehold_cell_frames_total",
    help: "Frames between cells and this server, by direction and type.",
    labelNames: ["direction", "type"],
    registers,
    collect() {
      this.reset();
      for (const [name, count] of cells.vitals.frames) {
        const [direction = "", type = ""] = name.split(" ");
        this.inc({ direction, type }, count);
      }
    },
  });
  return (event) => {
    if (event.type === "resource.fenced") fences.inc();
  };
}
