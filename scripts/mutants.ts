/**
 * Plants small faults in a copy of the sources, one at a time, and runs tests on each, to show that the tests find them.
 * Fails if a fault survives, if its place in the code is no longer found, or if its tests do not pass without it.
 *
 * Usage: npm run mutants [-- part of a name] [--shard 1/4] [--remember]
 *
 * The file that found a fault is remembered in scripts/mutants/caught-by.json and runs first; the others follow only if it
 * finds nothing. `--remember` writes that file again.
 */
import { cpSync, existsSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { caughtByPath, readCaughtBy, writeCaughtBy } from "./mutants/caught-by.ts";
import { buildPageOf, isOfPage } from "./mutants/page-build.ts";
import { type Mutant, mutants } from "./mutants/planted.ts";
import { stopRuns, type Verdict, verdictOf } from "./mutants/test-run.ts";

const root = join(import.meta.dirname, "..");
const workers = 2;
const kernelTests = "src/kernel/**/*.test.ts";

interface Result {
  readonly mutant: Mutant;
  readonly verdict: Verdict;
  readonly ms: number;
}

const copies: string[] = [];
process.on("exit", () => {
  stopRuns();
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
});
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { shard: { type: "string" }, remember: { type: "boolean" } },
});
process.exitCode = await main(positionals.join(" "), values.shard ?? "1/1", values.remember ?? false);

async function main(wanted: string, shard: string, remember: boolean): Promise<number> {
  const lost = mutants.filter((mutant) => occurrences(mutant) !== 1);
  for (const { name, file } of lost)
    console.error(`mutants: "${name}": its text does not stand exactly once in ${file}`);
  if (lost.length > 0) return 1;
  const [part = 0, parts = 0] = shard.split("/").map(Number);
  if (!Number.isInteger(part) || !Number.isInteger(parts) || part < 1 || part > parts) {
    console.error(`mutants: --shard takes two numbers, as in 1/4, and not "${shard}"`);
    return 1;
  }
  const chosen = mutants.filter(({ name }) => name.includes(wanted)).filter((_, at) => at % parts === part - 1);
  if (chosen.length === 0) {
    console.error(`mutants: no fault's name contains "${wanted}"`);
    return 1;
  }

  const known = readCaughtBy();
  const first = makeCopy();
  const unsound = await findUnsound(first, chosen);
  for (const [files, verdict] of unsound)
    console.error(`mutants: without any fault, ${files.join(", ")}: ${describe(verdict)}`);
  if (unsound.length > 0) return 1;
  console.log(`${chosen.length} of ${mutants.length} faults; the tests pass without any.\n`);

  const queue = [...chosen];
  const all = [first, ...Array.from({ length: workers - 1 }, makeCopy)];
  const results = (await Promise.all(all.map((copy) => work(copy, queue, known)))).flat();
  const survivors = results.filter(({ verdict }) => verdict.type === "passed");
  const broken = results.filter(({ verdict }) => verdict.type === "not_run");
  console.log(`\n${results.length - survivors.length - broken.length} of ${results.length} faults caught.`);
  for (const { mutant } of survivors) console.error(`SURVIVED: ${mutant.name} (${mutant.file})`);
  for (const { mutant, verdict } of broken) console.error(`NOT RUN: ${mutant.name}: ${describe(verdict)}`);
  if (remember) remembered(results, known);
  return survivors.length + broken.length === 0 ? 0 : 1;
}

function occurrences({ file, find }: Mutant): number {
  return readFileSync(join(root, "src/kernel", file), "utf8").split(find).length - 1;
}

/** Copies all that tests need into a folder, so that no process started by a test runs the sources without the fault. */
function makeCopy(): string {
  const copy = mkdtempSync(join(tmpdir(), "leasehold-mutants-"));
  copies.push(copy);
  const isSource = (path: string) => !/\/(?:node_modules|\.git)$/.test(path) && path !== join(root, "dist");
  cpSync(root, copy, { recursive: true, filter: isSource });
  for (const packages of ["node_modules", "dashboard/node_modules"])
    if (existsSync(join(root, packages))) symlinkSync(join(root, packages), join(copy, packages));
  return copy;
}

/**
 * The tests that do not pass as they are, or of which none ran: what they say about a fault means nothing. Those that a
 * fault names run file by file, because one of them may be missing, or empty, beside another that passes.
 */
async function findUnsound(
  copy: string,
  chosen: readonly Mutant[],
): Promise<(readonly [files: readonly string[], Verdict])[]> {
  const named = [...new Set(chosen.flatMap(({ tests }) => tests ?? []))].map((file) => [file]);
  const ofKernel = chosen.some(({ tests }) => tests === undefined) ? kernelSteps(copy) : [];
  const unsound: (readonly [readonly string[], Verdict])[] = [];
  for (const files of [...ofKernel, ...named]) {
    const missing = files.filter((file) => !existsSync(join(copy, file)));
    const verdict: Verdict = missing.length > 0 ? { type: "not_run" } : await verdictOf(copy, files);
    if (verdict.type !== "passed") unsound.push([missing.length > 0 ? missing : files, verdict]);
  }
  return unsound;
}

async function work(copy: string, queue: Mutant[], known: ReadonlyMap<string, string>): Promise<Result[]> {
  const results: Result[] = [];
  for (let mutant = queue.shift(); mutant !== undefined; mutant = queue.shift()) {
    const path = join(copy, "src/kernel", mutant.file);
    const sound = readFileSync(path, "utf8");
    // A function, because dollar signs in a string would be interpreted.
    const { find, replace } = mutant;
    writeFileSync(
      path,
      sound.replace(find, () => replace),
    );
    const began = performance.now();
    const isBuilt = !isOfPage(mutant) || (await buildPageOf(copy));
    const verdict = isBuilt ? await judge(copy, mutant, known.get(mutant.name)) : ({ type: "not_run" } as const);
    writeFileSync(path, sound);
    if (isOfPage(mutant)) await buildPageOf(copy);
    const result = { mutant, verdict, ms: performance.now() - began };
    print(result);
    results.push(result);
  }
  return results;
}

/** The tests of each step in one process, which takes a third of the time of one for each file; the first failure ends it. */
async function judge(copy: string, { file, tests }: Mutant, knownFile: string | undefined): Promise<Verdict> {
  const steps = tests === undefined ? kernelSteps(copy, file) : [tests];
  const isKnown = knownFile !== undefined && steps.some((files) => files.includes(knownFile));
  let verdict: Verdict = { type: "not_run" };
  for (const files of isKnown ? [[knownFile], ...steps] : steps) {
    verdict = await verdictOf(copy, files);
    if (verdict.type !== "passed") return verdict;
  }
  return verdict;
}

/**
 * The rule tests before the property tests, because they are faster and their failures are easier to read; and those in the
 * folder of the fault before all others, because they find most.
 */
function kernelSteps(copy: string, faultIn?: string): readonly (readonly string[])[] {
  const isSearch = (file: string) => file.endsWith(".property.test.ts");
  const files = globSync(kernelTests, { cwd: copy }).sort();
  const rules = files.filter((file) => !isSearch(file));
  const folder = faultIn?.includes("/") === true ? `src/kernel/${dirname(faultIn)}/` : null;
  const isNear = (file: string) => folder !== null && file.startsWith(folder);
  const steps = [rules.filter(isNear), rules.filter((file) => !isNear(file)), files.filter(isSearch)];
  return steps.filter((step) => step.length > 0);
}

function print({ mutant, verdict, ms }: Result): void {
  const seconds = `${(ms / 1_000).toFixed(1)} s`.padStart(7);
  const isCaught = verdict.type !== "passed" && verdict.type !== "not_run";
  console.log(`${isCaught ? "caught  " : verdict.type.toUpperCase()} ${seconds}  ${mutant.name}`);
  if (verdict.type !== "passed") console.log(`                    by ${describe(verdict)}`);
}

function describe(verdict: Verdict): string {
  switch (verdict.type) {
    case "passed":
      return "nothing";
    case "not_run":
      return "no such file, no page could be built, or no test ran";
    case "hung":
      return "tests that did not end";
    case "crashed":
      return `tests that did not run to their end: ${verdict.error}`;
    case "failed":
      return `${verdict.file}: ${verdict.test}`;
  }
}

function remembered(results: readonly Result[], known: ReadonlyMap<string, string>): void {
  const caughtBy = new Map(known);
  for (const { mutant, verdict } of results)
    if (verdict.type === "failed") caughtBy.set(mutant.name, verdict.file);
    else caughtBy.delete(mutant.name);
  writeCaughtBy(mutants.flatMap(({ name }) => (caughtBy.has(name) ? [[name, caughtBy.get(name) ?? ""]] : [])));
  console.log(`${caughtByPath} is written.`);
}
