/**
 * kill -9 under load, many times in a row, with a check that nothing acknowledged was lost.
 *
 *   npm run torture [-- --rounds 200 --seconds 1 --agents 32 --seed 1]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { format, median } from "../bench/children.ts";
import { type Progress, runRounds } from "./rounds.ts";
import { exitOnSignals } from "./server-process.ts";
import type { Findings } from "./trial.ts";
import { describeViolations } from "./violations.ts";

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "200" },
    seconds: { type: "string", default: "1" },
    agents: { type: "string", default: "32" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
  },
});
const [rounds, seconds] = [Number(values.rounds), Number(values.seconds)];
const dataFolder = mkdtempSync(join(tmpdir(), "leasehold-torture-"));
console.log(`${rounds} rounds of kill -9 under load, up to ${seconds} s each; seed ${values.seed}, data ${dataFolder}`);

exitOnSignals();
const began = performance.now();
let latest: Progress | null = null;
const ticker = setInterval(() => {
  if (latest !== null) console.log(progressLine(latest));
}, 2_000);
const progress = await runRounds({
  dataFolder,
  rounds,
  seconds,
  seed: Number(values.seed),
  agents: Number(values.agents),
  onRound: (now) => {
    latest = now;
  },
});
clearInterval(ticker);

console.log(table(progress));
if (progress.findings.violations.length > 0) {
  console.error(`${describeViolations(progress.findings.violations)}\nThe data is kept in ${dataFolder}.`);
  process.exitCode = 1;
} else rmSync(dataFolder, { recursive: true });

function acknowledged({ tally }: Findings): number {
  return tally.grants + tally.heartbeats + tally.renewals + tally.releases;
}

function progressLine({ rounds: done, findings }: Progress): string {
  const seconds = Math.round((performance.now() - began) / 1_000);
  const { verified, events, violations } = findings;
  return `  ${seconds} s: round ${done}, ${format(acknowledged(findings))} acknowledged, ${format(verified)} verified, ${format(events)} events, ${violations.length} broken`;
}

function table({ findings, restartsMs, ...now }: Progress): string {
  const { tally } = findings;
  const rows: readonly (readonly [string, string])[] = [
    ["rounds", `${now.rounds} in ${Math.round((performance.now() - began) / 1_000)} s`],
    ["kill -9", `${now.kills} under load, ${now.killsWhileStarting} more while starting`],
    ["acknowledged grants", format(tally.grants)],
    ["  heartbeats, renewals", `${format(tally.heartbeats)}, ${format(tally.renewals)}`],
    ["  releases", format(tally.releases)],
    ["  waits, refusals", `${format(tally.waits)}, ${format(tally.refusals)}`],
    ["commands without a reply", format(tally.unknown)],
    ["  extensions, releases: stored, not stored", `${format(findings.stored)}, ${format(findings.notStored)}`],
    ["  acquires settled by their request_id", format(findings.settled)],
    ["leases verified after a restart", `${format(findings.verified)}, ${format(findings.alive)} of them alive`],
    ["acknowledged requests sent again", format(findings.repeated)],
    ["events followed, each once and in order", `${format(findings.events)}, ${findings.reconnects} reconnects`],
    ["restart until ready", `median ${format(median(restartsMs))} ms, longest ${format(Math.max(...restartsMs))} ms`],
    ["violations", `${findings.violations.length} (bar 0)`],
  ];
  return rows.map(([name, value]) => `${name.padEnd(44)} ${value}`).join("\n");
}
