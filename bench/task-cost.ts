/**
 * What one task costs, through the SDK as a user's program calls it: bulk creation by the thousand, a worker with 64
 * places and an empty handler, and a lone task with an idle worker. By tasks a second and by processor time of each of
 * the server's threads and of the SDK's process, which depends less on how busy the machine is.
 *
 * The rounds share a server: the first shows what a fresh one takes, the last what a compiled one does.
 *
 *   npm run bench:task-cost [-- --tasks 10000] [-- --lone 200] [-- --rounds 4] [-- --only add] [-- --profile FOLDER]
 */
import { parseArgs } from "node:util";
import { createClient } from "../src/sdk/client.ts";
import { format, percentile, removeFolder, startLeasehold } from "./children.ts";
import { threadName, threadTimes } from "./threads.ts";

const { values } = parseArgs({
  options: {
    tasks: { type: "string", default: "10000" },
    lone: { type: "string", default: "200" },
    rounds: { type: "string", default: "4" },
    profile: { type: "string" },
    only: { type: "string", default: "" },
  },
});
const [tasks, lone, rounds] = [Number(values.tasks), Number(values.lone), Number(values.rounds)];
const perCall = 1_000;
const concurrency = 64;

const nodeFlags = values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`];
const server = await startLeasehold(undefined, null, nodeFlags);
const client = createClient({ url: `http://127.0.0.1:${server.port}`, transport: "stream" });
const task = (n: number) => ({ task_type: "bench.empty", principal_ai: "bench.peers", inputs: { n } });
try {
  for (let round = 0; round < rounds; round++) {
    let left = tasks;
    let onDone = (): void => undefined;
    await measured("bulk add", tasks, async () => {
      for (let from = 0; from < tasks; from += perCall) {
        await client.call("create_tasks", { tasks: Array.from({ length: perCall }, (_, index) => task(from + index)) });
      }
    });
    const allDone = new Promise<void>((resolve) => {
      onDone = resolve;
    });
    if (values.only === "add") continue;
    const worker = client.worker({ concurrency, handler: () => ({}), onEnd: () => --left === 0 && onDone() });
    await measured("worked", tasks, () => allDone);
    const times: number[] = [];
    await measured("lone", lone, async () => {
      for (let count = 0; count < lone; count++) {
        await new Promise((resolve) => setTimeout(resolve, 5)); // The worker is idle again.
        left = 1;
        const done = new Promise<void>((resolve) => {
          onDone = resolve;
        });
        const began = performance.now();
        await client.call("create_task", task(count));
        await done;
        times.push(performance.now() - began);
      }
    });
    times.sort((a, b) => a - b);
    console.log(`lone task: p50 ${percentile(times, 0.5).toFixed(2)} ms, p90 ${percentile(times, 0.9).toFixed(2)} ms`);
    await worker.drain();
  }
} finally {
  await client.close();
  await server.stop();
  removeFolder(server.dataFolder);
}

/** Runs it, and prints tasks a second and µs of processor time a task. */
async function measured(what: string, count: number, run: () => Promise<unknown>): Promise<void> {
  const before = threadTimes(server.child.pid);
  const own = process.cpuUsage();
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1_000;
  const { user, system } = process.cpuUsage(own);
  const parts = new Map<string, number>();
  for (const [id, time] of threadTimes(server.child.pid)) {
    const name = threadName(server.child.pid, id);
    parts.set(name, (parts.get(name) ?? 0) + (time - (before.get(id) ?? 0)) / count);
  }
  const all = [...parts.values()].reduce((sum, us) => sum + us, 0);
  const text = [...parts].filter(([, us]) => us >= 0.5).map(([name, us]) => `${name} ${us.toFixed(1)}`);
  console.log(
    `${what.padEnd(8)}: ${format(count / seconds).padStart(6)} tasks/s · µs a task: SDK ${((user + system) / count).toFixed(1)}, server ${all.toFixed(1)} (${text.join(", ")})`,
  );
}
