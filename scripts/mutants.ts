/**
 * Plants small faults in a copy of the kernel, one at a time, and runs the kernel's tests on each, to show that the
 * tests find them. Fails if a mutant survives, or if its place in the code is no longer found.
 *
 * Usage: npm run mutants [-- part of a name]
 */
import { type ChildProcess, spawn } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Failure } from "./mutants/failures.ts";
import { type Mutant, mutants } from "./mutants/planted.ts";

const root = join(import.meta.dirname, "..");
const workers = 2;
/** All tests of the kernel take some ten seconds; what takes this long is in an endless loop. */
const timeoutMs = 60_000;

type Verdict =
  | { readonly type: "passed" }
  | { readonly type: "failed"; readonly file: string; readonly test: string }
  | { readonly type: "hung" | "crashed"; readonly file: string };

const passed: Verdict = { type: "passed" };

interface Result {
  readonly mutant: Mutant;
  readonly verdict: Verdict;
  readonly ms: number;
}

const children = new Set<ChildProcess>();
const copies: string[] = [];
process.on("exit", cleanUp);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => process.exit(1));

process.exitCode = await main(process.argv.slice(2).join(" "));

async function main(wanted: string): Promise<number> {
  const lost = mutants.filter((mutant) => occurrences(mutant) !== 1);
  for (const { name, file } of lost)
    console.error(`mutants: "${name}": its text does not stand exactly once in ${file}`);
  if (lost.length > 0) return 1;

  const chosen = mutants.filter(({ name }) => name.includes(wanted));
  const [first, ...others] = Array.from({ length: workers }, makeCopy);
  if (first === undefined) return 1;
  const sound = await runTests(first);
  if (sound.type !== "passed") {
    console.error(`mutants: the tests fail without any mutant: ${describe(sound)}`);
    return 1;
  }
  console.log(`${chosen.length} mutants; the tests pass without any.\n`);
  const queue = [...chosen];
  const results = (await Promise.all([first, ...others].map((copy) => work(copy, queue)))).flat();
  const survivors = results.filter(({ verdict }) => verdict.type === "passed");
  console.log(`\n${results.length - survivors.length} of ${results.length} mutants caught.`);
  for (const { mutant } of survivors) console.error(`SURVIVED: ${mutant.name} (${mutant.file})`);
  return survivors.length === 0 ? 0 : 1;
}

function occurrences({ file, find }: Mutant): number {
  return readFileSync(join(root, "src/kernel", file), "utf8").split(find).length - 1;
}

/** Copies all that the kernel's tests need into a folder. */
function makeCopy(): string {
  const copy = mkdtempSync(join(tmpdir(), "leasehold-mutants-"));
  copies.push(copy);
  for (const path of ["src", "sim", "test", "package.json"])
    cpSync(join(root, path), join(copy, path), { recursive: true });
  symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
  return copy;
}

async function work(copy: string, queue: Mutant[]): Promise<Result[]> {
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
    const verdict = await (mutant.tests === undefined
      ? runTests(copy, mutant.file)
      : runFiles(copy, "its tests", mutant.tests));
    writeFileSync(path, sound);
    const result = { mutant, verdict, ms: performance.now() - began };
    print(result);
    results.push(result);
  }
  return results;
}

/**
 * The rule tests before the property tests, because they are faster and their failures are easier to read; and those in the
 * folder of the fault before all others, because they find most.
 */
async function runTests(copy: string, faultIn?: string): Promise<Verdict> {
  const isSearch = (file: string) => file.endsWith(".property.test.ts");
  const files = globSync("src/kernel/**/*.test.ts", { cwd: copy }).sort();
  const rules = files.filter((file) => !isSearch(file));
  const folder = faultIn?.includes("/") === true ? `src/kernel/${dirname(faultIn)}/` : null;
  const [near, far] = [true, false].map((wanted) =>
    rules.filter((file) => wanted === (folder !== null && file.startsWith(folder))),
  );
  const steps = [
    { name: "the tests beside it", files: near ?? [] },
    { name: "the rule tests", files: far ?? [] },
    { name: "the property tests", files: files.filter(isSearch) },
  ];
  for (const step of steps) {
    const verdict = step.files.length === 0 ? passed : await runFiles(copy, step.name, step.files);
    if (verdict.type !== "passed") return verdict;
  }
  return passed;
}

/** In one process, which takes a third of the time of one for each file. The first failure ends it. */
function runFiles(copy: string, name: string, files: readonly string[]): Promise<Verdict> {
  const reporter = join(root, "scripts/mutants/failures.ts");
  const flags = [
    "--test",
    "--test-isolation=none",
    `--test-reporter=${reporter}`,
    "--test-reporter-destination=stdout",
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...flags, ...files], { cwd: copy, stdio: ["ignore", "pipe", "ignore"] });
    children.add(child);
    let output = "";
    let hung = false;
    const timer = setTimeout(() => {
      hung = true;
      child.kill("SIGKILL");
    }, timeoutMs);
    child.stdout.on("data", (chunk: Buffer) => {
      output += chunk.toString();
      if (firstFailure(output) !== null) child.kill("SIGKILL");
    });
    child.on("error", reject);
    child.on("close", (code) => {
      clearTimeout(timer);
      children.delete(child);
      if (code === 0) resolve({ type: "passed" });
      else resolve(firstFailure(output) ?? { type: hung ? "hung" : "crashed", file: name });
    });
  });
}

function firstFailure(output: string): Verdict | null {
  for (const line of output.split("\n").slice(0, -1)) {
    if (!line.startsWith("[")) continue;
    const [file, test] = JSON.parse(line) as Failure;
    return { type: "failed", file: basename(file), test };
  }
  return null;
}

function print({ mutant, verdict, ms }: Result): void {
  const seconds = `${(ms / 1_000).toFixed(1)} s`.padStart(7);
  console.log(`${verdict.type === "passed" ? "SURVIVED" : "caught  "} ${seconds}  ${mutant.name}`);
  if (verdict.type !== "passed") console.log(`                    by ${describe(verdict)}`);
}

function describe(verdict: Verdict): string {
  switch (verdict.type) {
    case "passed":
      return "nothing";
    case "hung":
      return `${verdict.file}, which did not end within ${timeoutMs / 1_000} s`;
    case "crashed":
      return `${verdict.file}, which did not run to its end`;
    case "failed":
      return `${verdict.file}: ${verdict.test}`;
  }
}

function cleanUp(): void {
  for (const child of children) child.kill("SIGKILL");
  for (const copy of copies) rmSync(copy, { recursive: true, force: true });
}
