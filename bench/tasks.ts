/**
 * Tasks, with server and load on one machine and every step durable before it is answered: creation in batches,
 * completion in batches and one by one by 16 workers on the stream, a lone task with an idle worker, and polls with a
 * short and with a long queue.
 *
 *   npm run bench:tasks [-- --quick]
 */
import {
  format,
  measureEcho,
  median,
  memoryOf,
  type Running,
  removeFolder,
  runLoad,
  startLeasehold,
} from "./children.ts";

const isQuick = process.argv.includes("--quick");
const tasksCount = 20_000;
const rounds = isQuick ? 1 : 3;
const queued = { few: 1_000, many: isQuick ? 100_000 : 1_000_000 };
const bars = { created: 50_000, batched: 15_000, single: 6_000, loneMs: 3, pollShare: 0.8, gib: 1.5 };

interface Rate {
  readonly rate: number;
}

async function onServer<T>(measure: (server: Running) => Promise<T>): Promise<T> {
  const server = await startLeasehold();
  try {
    return await measure(server);
  } finally {
    await server.stop();
    removeFolder(server.dataFolder);
  }
}

async function repeated(measure: () => Promise<number>): Promise<number> {
  const values: number[] = [];
  for (let round = 0; round < rounds; round++) values.push(await measure());
  return median(values);
}

function tell(what: string, value: string, bar: string, isMet: boolean): void {
  console.log(`${what}: ${value} (bar ${bar}${isMet ? "" : "; MISSED"})`);
}

async function tellEcho(): Promise<void> {
  console.log(
    `(bare echo server on this machine at the moment: ${format(await measureEcho(isQuick ? 1 : 3))} requests/s)`,
  );
}

await tellEcho();
const batches = await onServer(async ({ port }) => {
  const created: number[] = [];
  const batched: number[] = [];
  for (let round = 0; round < rounds; round++) {
    created.push((await runLoad<Rate>("load-tasks.ts", "create", port, tasksCount, 1_000)).rate);
    batched.push((await runLoad<Rate>("load-tasks.ts", "work", port, tasksCount, 100, 1)).rate);
  }
  return { created: median(created), batched: median(batched) };
});
tell(
  `${format(tasksCount)} tasks created in batches of 1,000`,
  `${format(batches.created)}/s`,
  format(bars.created),
  batches.created >= bars.created,
);
tell(
  "leased, accepted and completed in batches of 100 by 16 workers",
  `${format(batches.batched)} tasks/s`,
  format(bars.batched),
  batches.batched >= bars.batched,
);

const single = await onServer(({ port }) =>
  repeated(async () => {
    await runLoad<Rate>("load-tasks.ts", "create", port, tasksCount, 1_000);
    return (await runLoad<Rate>("load-tasks.ts", "work", port, tasksCount, 1, 8)).rate;
  }),
);
tell(
  "one by one by 16 workers, 8 at a time each",
  `${format(single)} tasks/s`,
  format(bars.single),
  single >= bars.single,
);

await tellEcho();
const lone = await onServer(({ port }) =>
  runLoad<{ p50: number; p99: number }>("load-tasks.ts", "lone", port, isQuick ? 200 : 1_000),
);
tell(
  "a lone task from creation to completion with an idle worker",
  `p50 ${lone.p50.toFixed(2)} ms, p99 ${lone.p99.toFixed(2)} ms`,
  `${bars.loneMs} ms`,
  lone.p50 < bars.loneMs,
);

/** Alternates between two servers: on a shared machine, measurements minutes apart are not comparable. */
await onServer(async (few) => {
  await onServer(async (many) => {
    await runLoad<Rate>("load-tasks.ts", "create", few.port, queued.few, 1_000);
    await runLoad<Rate>("load-tasks.ts", "create", many.port, queued.many, 1_000);
    const rates = { few: [] as number[], many: [] as number[] };
    for (let round = 0; round < (isQuick ? 1 : 5); round++) {
      for (const [name, { port }] of [
        ["few", few],
        ["many", many],
      ] as const) {
        rates[name].push((await runLoad<Rate>("load-tasks.ts", "poll", port, isQuick ? 2 : 3)).rate);
      }
    }
    const share = median(rates.many) / median(rates.few);
    const gib = memoryOf(many.child.pid).rss / 2 ** 30;
    tell(
      `polls (and giving back) with ${format(queued.many)} tasks queued, and with ${format(queued.few)}`,
      `${format(median(rates.many))}/s and ${format(median(rates.few))}/s: ${share.toFixed(2)}; ${gib.toFixed(2)} GiB`,
      `${bars.pollShare}; ${bars.gib} GiB`,
      share >= bars.pollShare && gib < bars.gib,
    );
  });
});
