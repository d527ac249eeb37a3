/** What the simulated service, its workers and its principals share. */
import type { ReceiptInput } from "../../src/kernel/contract/task-commands.ts";
import type { Receipt } from "../../src/kernel/contract/task-records.ts";
import { type Counters, count } from "../counters.ts";
import { createRandom, type Random } from "../random.ts";
import { FlakyService } from "./flaky-service.ts";
import type { Weather } from "./network.ts";
import { VirtualTime } from "./virtual-time.ts";

export interface ServiceWorld extends Weather {
  readonly random: Random;
  readonly time: VirtualTime;
  readonly service: FlakyService;
  readonly counters: Counters;
  /** Every acknowledged receipt, with what was sent. */
  readonly acknowledged: { readonly sent: ReceiptInput; readonly receipt: Receipt }[];
  /** By idempotency key: the task ids that its creator got. */
  readonly created: Map<string, Set<string>>;
  isCalm: boolean;
  isOver: boolean;
  /** A fault for the service, applied once some requests are in flight. */
  crash: (() => Promise<void>) | null;
  fault: unknown;
  readonly onFault: (fault: unknown) => void;
}

export function createServiceWorld(seed: number, counters: Counters): ServiceWorld {
  const time = new VirtualTime();
  const world: ServiceWorld = {
    random: createRandom(seed),
    time,
    service: new FlakyService(time, createRandom(seed + 1), counters),
    counters,
    acknowledged: [],
    created: new Map(),
    isCalm: false,
    isOver: false,
    crash: null,
    fault: null,
    onFault: (fault) => {
      if (fault instanceof Error && fault.name === "Died") return count(counters, "workers: died");
      world.fault ??= fault;
    },
  };
  return world;
}
