/**
 * A fleet of workers on a queue. Every task changes one of a few files, which makes tasks conflict; the queue only
 * offers a task whose file can be leased, so no worker meets a conflict. One worker is killed on the way.
 *
 *   node examples/fleet.ts [WORKERS] [TASKS]
 */
import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { createClient } from "../src/sdk/index.ts";

const [, , workers = "4", tasks = "40"] = process.argv;
const { LEASEHOLD_URL, LEASEHOLD_KEY, LEASEHOLD_KEY_FILE } = process.env;
const client = createClient({ url: LEASEHOLD_URL, key: LEASEHOLD_KEY, keyFile: LEASEHOLD_KEY_FILE });

const { results } = await client.call("create_tasks", {
  tasks: Array.from({ length: Number(tasks) }, (_, number) => ({
    task_type: "example.edit",
    principal_ai: "example.fleet",
    task_summary: `edit ${number}`,
    inputs: { number },
    intents: [{ predicate: "MUTATES" as const, resource: `FILE:/fleet/${number % 5}.txt` }],
    lease_duration_ms: 2_000,
    requeue_delay_ms: 100,
  })),
});
const ids = results.map(({ body }) => (body as { readonly task_id: string }).task_id);

const program = join(import.meta.dirname, "fleet-worker.ts");
const fleet = Array.from({ length: Number(workers) }, (_, number) =>
  spawn(process.execPath, [program, `example.worker-${number}`], { stdio: "inherit" }),
);
await pause(700);
console.log("one worker is killed");
fleet[0]?.kill("SIGKILL");

const isOpen = new Set(ids);
while (isOpen.size > 0) {
  for (const id of [...isOpen]) {
    const { status } = await client.call("get_task", { task_id: id });
    if (status === "succeeded") isOpen.delete(id);
    else if (status === "failed" || status === "dead") throw new Error(`task ${id} is ${status}`);
  }
  await pause(100);
}
for (const worker of fleet) worker.kill("SIGTERM");
console.log(`all ${ids.length} tasks are done, each once`);
await client.close();
process.exit(0);
