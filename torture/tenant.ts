/**
 * One hostile tenant with quotas does all of it at once: payloads, digests, progress receipts, subscriptions, sockets
 * that are not read, slow requests, broad patterns. The tenant beside it must not notice, and memory must stay bounded
 * (S4); after kill -9 and a restart too.
 *
 *   npm run torture:tenant [-- --seconds 60 --memory-mib 512 --tolerance 20 --only "payloads,digests" --pin --profile FOLDER]
 *
 * With --pin server and honest clients have one core and the attacker another, so that what is compared is the server's
 * doing and not the attacker's own use of the processor. With --profile the server writes a .cpuprofile of what it did until
 * the end of the attack.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { format } from "../bench/children.ts";
import { exitOnSignals } from "./server-process.ts";
import { honestKinds, type Timing } from "./tenant-honest.ts";
import type { Tally } from "./tenant-requests.ts";
import { type TenantResult, tenantTrial } from "./tenant-trial.ts";

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    "memory-mib": { type: "string", default: "512" },
    tolerance: { type: "string", default: "20" },
    only: { type: "string", default: "" },
    pin: { type: "boolean", default: false },
    profile: { type: "string", default: "" },
  },
});
const memoryMib = Number(values["memory-mib"]);
const tolerance = 1 + Number(values.tolerance) / 100;
const mebibyte = 2 ** 20;
const serveMsMax = 5_000;

exitOnSignals();
const dataFolder = mkdtempSync(join(tmpdir(), "leasehold-tenant-"));
const result = await tenantTrial(dataFolder, {
  seconds: Number(values.seconds),
  only: values.only,
  pinned: values.pin,
  profileFolder: values.profile,
});
rmSync(dataFolder, { recursive: true, force: true });
printHonest(result);
printAttacks(result.attacks);
const missed = missedBars(result);
for (const bar of missed) console.error(`MISSED: ${bar}`);
process.exitCode = missed.length === 0 ? 0 : 1;

function printHonest({ alone, beside, after, startMs, restartMs }: TenantResult): void {
  const phases = [alone, beside, after];
  const row = (name: string, cells: readonly string[]): void =>
    console.log(`  ${name.padEnd(34)}${cells.map((cell) => cell.padStart(16)).join("")}`);
  const times = ({ p50, p99 }: Timing): string => `${p50.toFixed(1)} / ${p99.toFixed(1)}`;
  row("the honest tenant, ms p50 / p99", ["alone", "beside", "after restart"]);
  for (const kind of honestKinds)
    row(
      kind,
      phases.map(({ byKind }) => times(byKind[kind])),
    );
  row(
    "all",
    phases.map(({ all }) => times(all)),
  );
  row(
    "calls",
    phases.map(({ all }) => format(all.calls)),
  );
  row(
    "not served",
    phases.map(({ failures }) => String(failures.length)),
  );
  row(
    `memory, peak, MiB (bound ${memoryMib})`,
    phases.map(({ rssPeak }) => format(rssPeak / mebibyte)),
  );
  row(
    "loop delay, at most, ms",
    phases.map(({ loopDelayMs }) => String(loopDelayMs)),
  );
  row(
    "the server's processor, ms a second",
    phases.map(({ cpuMs }) => format(cpuMs)),
  );
  row("time until it serves, ms", [format(startMs), "", format(restartMs)]);
}

function printAttacks(attacks: Readonly<Record<string, Tally>>): void {
  console.log(
    `\n  ${"attack".padEnd(24)}${"sent".padStart(10)}${"accepted".padStart(10)}${"MiB".padStart(8)}  refused`,
  );
  for (const [name, { sent, accepted, acceptedBytes, refused }] of Object.entries(attacks)) {
    const codes = Object.entries(refused).map(([code, count]) => `${code} ${format(count)}`);
    const figures = [format(sent).padStart(10), format(accepted).padStart(10), mibOf(acceptedBytes).padStart(8)];
    console.log(`  ${name.padEnd(24)}${figures.join("")}  ${codes.join(", ")}`);
  }
}

function mibOf(bytes: number): string {
  return (bytes / mebibyte).toFixed(1);
}

function missedBars({ alone, beside, after, attacks, restartMs }: TenantResult): string[] {
  const missed: string[] = [];
  const bound = memoryMib * mebibyte;
  for (const [name, phase] of Object.entries({ beside, after })) {
    if (phase.all.p99 > alone.all.p99 * tolerance)
      missed.push(`p99 ${name}: ${phase.all.p99.toFixed(1)} ms, alone ${alone.all.p99.toFixed(1)} ms`);
    if (phase.rssPeak > bound) missed.push(`memory ${name}: ${mibOf(phase.rssPeak)} MiB, bound ${memoryMib} MiB`);
  }
  for (const { failures } of [alone, beside, after]) {
    for (const failure of failures) missed.push(`an honest call was not served: ${failure}`);
  }
  for (const [name, { refused }] of Object.entries(attacks)) {
    if (refused["untyped"] !== undefined) missed.push(`${name}: ${refused["untyped"]} answers without a code`);
  }
  if (restartMs > serveMsMax) missed.push(`${format(restartMs)} ms until it serves, bar ${format(serveMsMax)} ms`);
  return missed;
}
