/** What an operator watches of cells: who is there, what is bound, how long that takes, and what was fenced. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { KernelEvent } from "../../kernel/contract/events.ts";
import type { Cell } from "../../kernel/contract/records.ts";
import { cellStates } from "../../protocol/schema/vocabulary.ts";
import { leasesOn } from "../queries/cell-queries.ts";
import type { Service } from "../service.ts";

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
