/** Threads of clients: agents that run until the server dies or they are stopped, and then deliver their journals. */
import { once } from "node:events";
import { parentPort, Worker, workerData } from "node:worker_threads";
import { createRandom } from "../sim/random.ts";
import { runAgent } from "./agent-script.ts";
import { connectHttp, connectStream } from "./connections.ts";
import type { ClientsOptions, Entry, FromClients, HeldLease, ToClients } from "./journal.ts";

export type HeldByAgent = Readonly<Record<string, readonly HeldLease[]>>;

export interface Clients {
  /** Begins a round; the agents continue with the leases they hold. */
  go(port: number, held: HeldByAgent): void;
  /** Lets the agents finish their present command. They also end when their connections break. */
  stop(): void;
  /** The journals of the round, when the last agent has ended. */
  journals(): Promise<readonly Entry[]>;
  close(): Promise<void>;
}

export function startClients(options: ClientsOptions): Clients {
  const worker = new Worker(new URL(import.meta.url), { workerData: options, execArgv: [] });
  const send = (message: ToClients): void => worker.postMessage(message);
  let ended: Promise<readonly Entry[]> = Promise.resolve([]);
  return {
    go(port, held) {
      ended = once(worker, "message").then(([handedOver]) => (handedOver as FromClients).entries);
      send({ type: "go", port, held });
    },
    stop: () => send({ type: "stop" }),
    journals: () => ended,
    close: async () => {
      await worker.terminate();
    },
  };
}

/** In the thread. Half of the agents speak HTTP, half share one stream. */
function serve({ agentIds, seed }: ClientsOptions): void {
  const random = createRandom(seed);
  let number = 0;
  let isOver = false;

  async function round(port: number, held: HeldByAgent): Promise<void> {
    const journal: Entry[] = [];
    const http = connectHttp(port);
    const stream = await connectStream(port).catch(() => null);
    const runs = agentIds.map((agentId, index) =>
      runAgent({
        agentId,
        connection: stream === null || index % 2 === 0 ? http : stream,
        random,
        journal,
        held: new Map((held[agentId] ?? []).map((lease) => [lease.id, lease])),
        nextNumber: () => ++number,
        isOver: () => isOver,
      }),
    );
    await Promise.all(runs);
    http.close();
    stream?.close();
    const handedOver: FromClients = { entries: journal };
    parentPort?.postMessage(handedOver);
  }

  parentPort?.on("message", (message: ToClients) => {
    isOver = message.type === "stop";
    if (message.type === "go") void round(message.port, message.held);
  });
}

if (workerData !== null && typeof workerData === "object" && "agentIds" in workerData) {
  serve(workerData as ClientsOptions);
}
