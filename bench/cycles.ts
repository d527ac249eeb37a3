/**
 * What one lock cycle (acquire and release) costs the server: one stream connection with 1, 16, 64 and 256 callers, by
 * cycles a second and by processor time of each of the server's threads, which depends less on how busy the machine is.
 * The load sends a frame a command (own), a frame a turn (turn), or is the SDK (sdk). With `--postgres` the data is there,
 * and what it takes is shown too.
 *
 *   npm run bench:cycles [-- --seconds 3] [-- --callers 1,16,64,256] [-- --frames own,turn,sdk] [-- --profile FOLDER]
 *     [-- --postgres]
 */
import { parseArgs } from "node:util";
import { format, removeFolder, runLoad, startLeasehold } from "./children.ts";
import { postgresText, startMeasuredPostgres } from "./postgres-times.ts";
import { threadName, threadTimes } from "./threads.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "3" },
    callers: { type: "string", default: "1,16,64,256" },
    frames: { type: "string", default: "own,turn,sdk" },
    profile: { type: "string" },
    postgres: { type: "boolean", default: false },
  },
});

/** As in peers/locks.ts. */
const sdkWarmUpSeconds = 0.7;
const nodeFlags = values.profile === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${values.profile}`];
const postgres = values.postgres ? await startMeasuredPostgres() : null;
const server = await startLeasehold(undefined, null, nodeFlags, postgres?.settings);
try {
  for (const frames of values.frames.split(",")) {
    for (const callers of values.callers.split(",")) {
      const before = threadTimes(server.child.pid);
      const postgresBefore = await postgres?.times();
      const isSdk = frames === "sdk";
      const [script, ...args]: [string, ...(string | number)[]] = isSdk
        ? ["peers/locks.ts", "leasehold-stream", server.port, callers, values.seconds]
        : ["load-cycles.ts", server.port, callers, values.seconds, frames];
      const { rate, cpuUs } = await runLoad<{ rate: number; cpuUs: number }>(script, ...args);
      // The load also runs before it counts.
      const cycles = rate * (Number(values.seconds) + (isSdk ? sdkWarmUpSeconds : 1));
      const spent = [...threadTimes(server.child.pid)].map(([id, time]) => [id, time - (before.get(id) ?? 0)] as const);
      const postgresAfter = await postgres?.times();
      const parts = new Map<string, number>();
      for (const [id, us] of spent) {
        const name = threadName(server.child.pid, id);
        parts.set(name, (parts.get(name) ?? 0) + us / cycles);
      }
      const text = [...parts].filter(([, us]) => us >= 0.5).map(([name, us]) => `${name} ${us.toFixed(1)}`);
      console.log(
        `frames ${frames}, ${callers.padStart(3)} callers: ${format(rate).padStart(6)} cycles/s · µs a cycle: load ${cpuUs.toFixed(1)}, ${text.join(", ")}`,
      );
      if (postgresBefore !== undefined && postgresAfter !== undefined)
        console.log(`  ${postgresText(postgresBefore, postgresAfter, cycles)}`);
    }
  }
} finally {
  await server.stop();
  removeFolder(server.dataFolder);
  await postgres?.stop();
}
