/**
 * One system's tasks as a user's program runs them: bulk creation by the thousand, a worker with 64 places and an empty
 * handler, and a lone task with an idle worker, from its creation until its completion is acknowledged. Prints one line
 * of JSON.
 *
 *   node bench/peers/tasks.ts SYSTEM ADDRESS COUNT LONE WARM_UP
 */
import { createClient } from "../../src/sdk/client.ts";
import { percentile } from "../children.ts";
import { loadPeer } from "./clients.ts";

interface Figures {
  readonly added: number;
  readonly worked: number;
  readonly loneMs: number;
}

/** What each system does. `work` starts one worker, and returns what stops it. */
interface System {
  add(numbers: readonly number[]): Promise<unknown>;
  work(onDone: (task: number) => void): Promise<() => Promise<unknown>>;
  close(): Promise<unknown>;
}

const concurrency = 64;
const batch = 1_000;
/** graphile-worker's batching preset, as its own benchmark uses it. */
const graphilePreset = {
  concurrentJobs: 24,
  localQueue: { size: 500 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
  pollInterval: 2_000,
  maxPoolSize: 25,
};

const systems: Readonly<Record<string, (address: string) => Promise<System>>> = { bullmq, graphile, dbos, leasehold };

const [name = "", address = "", countText = "10000", loneText = "200", warmUpText = "0"] = process.argv.slice(2);
const open = systems[name];
if (open === undefined) throw new Error(`unknown system "${name}": ${Object.keys(systems).join(", ")}`);
console.log(
  JSON.stringify(await measure(await open(address), Number(countText), Number(loneText), Number(warmUpText))),
);
process.exit(0);

/**
 * Once without counting, for every system: a service that has run for a while is compiled and has its connections, at both
 * ends. Then the same again, counted.
 */
async function measure(system: System, count: number, lone: number, warmUp: number): Promise<Figures> {
  if (warmUp > 0) await pass(system, 0, warmUp, lone);
  const figures = await pass(system, warmUp + lone, count, lone);
  await system.close();
  return figures;
}

/** Tasks have numbers from `first` on; each number is used once. */
async function pass(system: System, first: number, count: number, lone: number): Promise<Figures> {
  const waiting = new Map<number, () => void>();
  let left = count;
  let whenAllDone = (): void => undefined;
  const allDone = new Promise<void>((resolve) => {
    whenAllDone = resolve;
  });
  const onDone = (task: number): void => {
    waiting.get(task)?.();
    if (task < first + count && --left === 0) whenAllDone();
  };
  const began = performance.now();
  for (let from = 0; from < count; from += batch) {
    await system.add(Array.from({ length: Math.min(batch, count - from) }, (_, index) => first + from + index));
  }
  const added = performance.now();
  const stop = await system.work(onDone);
  await allDone;
  const worked = performance.now();
  const times: number[] = [];
  for (let task = first + count; task < first + count + lone; task++) {
    await new Promise((resolve) => setTimeout(resolve, 5)); // The worker is idle again.
    const done = new Promise<void>((resolve) => waiting.set(task, resolve));
    const sent = performance.now();
    await system.add([task]);
    await done;
    times.push(performance.now() - sent);
  }
  await stop();
  times.sort((a, b) => a - b);
  return {
    added: count / ((added - began) / 1_000),
    worked: count / ((worked - added) / 1_000),
    loneMs: percentile(times, 0.5),
  };
}

async function leasehold(port: string): Promise<System> {
  const client = createClient({ url: `http://127.0.0.1:${port}`, transport: "stream" });
  const numbers = new Map<string, number>();
  return {
    add: async (tasks) => {
      const inputs = tasks.map((n) => ({ task_type: "bench.empty", principal_ai: "bench.peers", inputs: { n } }));
      if (inputs.length === 1 && inputs[0] !== undefined) return await client.call("create_task", inputs[0]);
      return await client.call("create_tasks", { tasks: inputs });
    },
    work: async (onDone) => {
      const worker = client.worker({
        concurrency,
        handler: (task) => {
          numbers.set(task.task_id, Number((task.inputs as { readonly n: number }).n));
          return {};
        },
        onEnd: (taskId) => {
          onDone(numbers.get(taskId) ?? -1);
          numbers.delete(taskId);
        },
      });
      return () => worker.drain();
    },
    close: () => client.close(),
  };
}

async function bullmq(port: string): Promise<System> {
  interface Job {
    readonly data: { readonly n: number };
  }
  interface Queue {
    add(name: string, data: object, options: object): Promise<unknown>;
    addBulk(jobs: readonly object[]): Promise<unknown>;
    close(): Promise<void>;
  }
  interface Worker {
    on(event: "completed", listener: (job: Job) => void): void;
    waitUntilReady(): Promise<unknown>;
    close(): Promise<void>;
  }
  const { Queue, Worker } = await loadPeer<{
    Queue: new (name: string, options: object) => Queue;
    Worker: new (name: string, handler: () => Promise<void>, options: object) => Worker;
  }>("bullmq");
  const connection = { host: "127.0.0.1", port: Number(port), maxRetriesPerRequest: null };
  const topic = `bench-${process.pid}`;
  const queue = new Queue(topic, { connection });
  const opts = { removeOnComplete: true };
  return {
    add: (tasks) =>
      tasks.length === 1
        ? queue.add("empty", { n: tasks[0] }, opts)
        : queue.addBulk(tasks.map((n) => ({ name: "empty", data: { n }, opts }))),
    work: async (onDone) => {
      const worker = new Worker(topic, () => Promise.resolve(), { connection, concurrency });
      worker.on("completed", ({ data }) => onDone(data.n));
      await worker.waitUntilReady();
      return () => worker.close();
    },
    close: () => queue.close(),
  };
}

async function graphile(url: string): Promise<System> {
  interface Job {
    readonly payload: { readonly n: number };
  }
  interface Events {
    on(event: "job:complete", listener: (info: { readonly job: Job }) => void): void;
  }
  interface Runner {
    readonly events: Events;
    stop(): Promise<void>;
  }
  interface Utils {
    addJob(task: string, payload: object): Promise<unknown>;
    addJobs(jobs: readonly object[]): Promise<unknown>;
    migrate(): Promise<void>;
    release(): Promise<void>;
  }
  const { makeWorkerUtils, run, Logger } = await loadPeer<{
    makeWorkerUtils(options: object): Promise<Utils>;
    run(options: object): Promise<Runner>;
    Logger: new (factory: () => () => void) => object;
  }>("graphile-worker");
  const logger = new Logger(() => () => undefined);
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  return {
    add: (tasks) =>
      tasks.length === 1
        ? utils.addJob("empty", { n: tasks[0] })
        : utils.addJobs(tasks.map((n) => ({ identifier: "empty", payload: { n } }))),
    work: async (onDone) => {
      const worker = { ...graphilePreset, connectionString: url };
      const runner = await run({
        preset: { worker },
        logger,
        noHandleSignals: true,
        taskList: { empty: () => Promise.resolve() },
      });
      runner.events.on("job:complete", ({ job }) => onDone(job.payload.n));
      return () => runner.stop();
    },
    close: () => utils.release(),
  };
}

/** A workflow of DBOS, enqueued: its only bulk form is many calls at once. */
async function dbos(url: string): Promise<System> {
  interface Handle {
    getResult(): Promise<unknown>;
  }
  type Workflow = (n: number) => Promise<void>;
  interface Dbos {
    setConfig(config: object): void;
    launch(): Promise<void>;
    shutdown(): Promise<void>;
    registerWorkflow(body: Workflow, options: object): Workflow;
    startWorkflow(workflow: Workflow, options: object): (n: number) => Promise<Handle>;
    registerQueue?(name: string, options: object): Promise<unknown>;
  }
  const { DBOS, WorkflowQueue } = await loadPeer<{
    DBOS: Dbos;
    WorkflowQueue?: new (name: string, options: object) => unknown;
  }>("@dbos-inc/dbos-sdk");
  let tell = (_task: number): void => undefined;
  const early: number[] = [];
  tell = (task) => void early.push(task);
  const empty = DBOS.registerWorkflow(async (n) => tell(n), { name: "empty" });
  DBOS.setConfig({ name: "bench", systemDatabaseUrl: url, runAdminServer: false, logLevel: "error" });
  if (WorkflowQueue !== undefined) new WorkflowQueue("empty", { workerConcurrency: concurrency });
  await DBOS.launch();
  if (WorkflowQueue === undefined) await DBOS.registerQueue?.("empty", { workerConcurrency: concurrency });
  return {
    add: (tasks) => Promise.all(tasks.map((n) => DBOS.startWorkflow(empty, { queueName: "empty" })(n))),
    work: async (onDone) => {
      tell = onDone;
      for (const task of early) onDone(task);
      return () => Promise.resolve();
    },
    close: () => DBOS.shutdown(),
  };
}
