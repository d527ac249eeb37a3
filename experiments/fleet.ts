/**
 * A fleet of scripted coding agents in one repository, using the hooks of a coding agent: how many edits are lost
 * without guards, that none are lost with them, and what guards cost; and Klock's published setting beside its
 * published figures.
 *
 *   npm run experiment:fleet [-- --edits 200 --seed 7 --out docs/images/fleet.svg --all --short --way "guards and MCP"]
 *   npm run experiment:fleet -- --worktrees [--rounds 10]
 *
 * `--way` runs that one alone and draws nothing. `--worktrees`: thirteen agents in thirteen worktrees of one repository.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { parseArgs } from "node:util";
import { chartSvg, type GrowingRow, rowOf } from "./fleet/chart.ts";
import { planEdits, type Scale } from "./fleet/edits.ts";
import { type FleetResult, runFleet, type Way } from "./fleet/fleet.ts";
import { type GrowingResult, type GrowingScale, type GrowingWay, runGrowing } from "./fleet/growing.ts";
import { randomFrom } from "./fleet/random.ts";
import { showWorktrees } from "./fleet/worktrees.ts";

const { values } = parseArgs({
  options: {
    edits: { type: "string", default: "200" },
    seed: { type: "string", default: "7" },
    out: { type: "string", default: "docs/images/fleet.svg" },
    short: { type: "boolean", default: false },
    all: { type: "boolean", default: false },
    way: { type: "string" },
    worktrees: { type: "boolean", default: false },
    rounds: { type: "string", default: "1" },
  },
});
if (values.worktrees) process.exit((await showWorktrees(Number(values.rounds))) ? 0 : 1);
const speedBar = 0.8;
const seed = Number(values.seed);
const thinkMs: readonly [number, number] = values.short ? [400, 1_200] : [3_000, 9_000];
const scale: Scale = {
  agents: 8,
  files: 12,
  edits: values.short ? 40 : Number(values.edits),
  thinkMs,
  crashes: values.short ? 2 : 6,
};
const growingScale: GrowingScale = {
  agents: 5,
  tasksEach: values.short ? 2 : 5,
  steps: 3,
  sharedFiles: 6,
  contention: 0.7,
  thinkMs: values.short ? [200, 600] : [500, 1_500],
};
/** As published; aborts and time were not. */
const published: readonly GrowingRow[] = [
  { label: "Klock, published", success: 1, retries: 1.7 },
  { label: "optimistic, published", success: 0.848, retries: 3.1 },
  { label: "no coordination, published", success: 0.164, retries: null },
];

const edits = planEdits(scale, randomFrom(seed));
const limitMs = Math.round((20 * edits.reduce((sum, one) => sum + one.thinkMs, 0)) / scale.agents);
console.log(
  `${scale.agents} agents, ${edits.length} edits on ${scale.files} files, ${thinkMs.join(" to ")} ms of thinking each, seed ${seed}\n`,
);

const fleet: FleetResult[] = [];
/**
 * An agent that does not claim first learns of a conflict only when it writes, and repeats its work: safe but slower.
 */
const ways = [
  "no guards",
  ...(values.all ? ["guards" as const] : []),
  "guards, claiming first",
  "guards and MCP",
].filter((way): way is Way => values.way === undefined || way === values.way);
if (ways.length === 0) throw new Error(`"${values.way}" is not a way`);
for (const way of ways) {
  const result = await runFleet(way, scale, edits, limitMs);
  fleet.push(result);
  const { lost, stuck, denials, rereads, crashes, unanswered, ms, idealMs } = result;
  console.log(
    `${way}: ${lost} edits lost, ${stuck} agents stuck, ${denials} denials, ${rereads} read again, ${crashes} crashes, ${unanswered} calls that timed out, ${seconds(ms)} (ideal ${seconds(idealMs)}, ${(idealMs / ms).toFixed(2)} of its speed)`,
  );
  if (way !== "no guards") console.log(`  ${spentWords(result)}`);
}
if (values.way !== undefined) process.exit(fleet.every(({ lost, stuck }) => lost === 0 && stuck === 0) ? 0 : 1);

const growing: GrowingResult[] = [];
for (const way of ["no coordination", "optimistic", "guards"] satisfies GrowingWay[])
  growing.push(await runGrowing(way, growingScale, seed, limitMs));
console.log(
  `\n${growingScale.agents} agents, ${100 * growingScale.contention} % contention, scopes that grow to ${growingScale.steps} files`,
);
console.log("| way | success | aborts | retries a task | time |\n| --- | --- | --- | --- | --- |");
for (const result of growing) {
  const { label, success, retries } = rowOf(result);
  console.log(
    `| ${label} | ${percent(success)} | ${result.aborted} | ${retries?.toFixed(1) ?? "–"} | ${seconds(result.ms)} |`,
  );
}
for (const { label, success, retries } of published)
  console.log(`| ${label} | ${percent(success)} | – | ${retries?.toFixed(1) ?? "–"} | – |`);

mkdirSync(dirname(values.out), { recursive: true });
writeFileSync(values.out, chartSvg(fleet, growing, published));
console.log(`\nchart: ${values.out}`);

const guards = fleet.filter(({ way }) => way !== "no guards");
const best = Math.max(...guards.map(({ idealMs, ms }) => idealMs / ms));
const isSafe = guards.every(({ lost, stuck }) => lost === 0 && stuck === 0);
const isGood = isSafe && (values.short || best >= speedBar) && growing.at(-1)?.succeeded === growing.at(-1)?.tasks;
console.log(
  isGood
    ? "all bars met"
    : `bar missed: nothing lost, nobody stuck, at least ${speedBar} of the ideal speed, every growing task`,
);
if (!isGood) process.exitCode = 1;

/** Where the agents' time went; the rest is what those that had finished waited for the last one. */
function spentWords({ spent, ms }: FleetResult): string {
  const whole = scale.agents * ms;
  const { hookCount, ...kinds } = spent;
  const parts = { ...kinds, finished: whole - Object.values(kinds).reduce((sum, one) => sum + one, 0) };
  const words = Object.entries(parts).map(([name, part]) => `${name} ${percent(part / whole)}`);
  return `of the agents' time: ${words.join(", ")}; ${hookCount} hooks of ${(spent.hooks / hookCount).toFixed(0)} ms on average`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

function percent(share: number): string {
  return `${(100 * share).toFixed(1)} %`;
}
