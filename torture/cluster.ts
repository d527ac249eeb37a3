/**
 * Fail-over under load: the leader is killed, paused, stopped, or cut off from the database in several ways, and the
 * database is restarted. Two server processes, one real PostgreSQL, a proxy between each of them and the database.
 *
 *   npm run torture:cluster [-- --rounds 100] [--leases 10000] [--lease-ms 2000]
 */
import { parseArgs } from "node:util";
import { clusterFaults, tryCluster } from "./cluster-trial.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "100" },
    leases: { type: "string", default: "10000" },
    "lease-ms": { type: "string", default: "2000" },
  },
});
const faults = Array.from(
  { length: Number(values.rounds) },
  (_, round) => clusterFaults[round % clusterFaults.length] ?? "kill",
);
const { violations, recoveryMs, acknowledged } = await tryCluster({
  ...{ faults, lasting: Number(values.leases), leaseMs: Number(values["lease-ms"]) },
  say: (line) => console.log(line),
});
const spread = (times: readonly number[]): string => {
  const sorted = times.toSorted((a, b) => a - b);
  const at = (share: number): number =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0);
  return `${at(0.5)} ms (p50), ${at(0.99)} ms (p99)`;
};
for (const fault of clusterFaults) {
  const times = recoveryMs.filter((_, round) => faults[round] === fault);
  if (times.length > 0) console.log(`${fault}: serving again after ${spread(times)}`);
}
console.log(
  `${faults.length} rounds, ${acknowledged} changes acknowledged; serving again after ${spread(recoveryMs)} of all`,
);
for (const violation of violations) console.error(violation);
process.exitCode = violations.length === 0 ? 0 : 1;
