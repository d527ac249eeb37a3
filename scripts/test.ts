import { globSync } from "node:fs";
import { check } from "./check.ts";
import { run } from "./run.ts";

const testFiles = ["src/**/*.test.ts", "sim/**/*.test.ts", "test/**/*.test.ts"];
/** Two, because the tests that measure time and use real databases disturb each other on a small machine. */
const concurrency = 2;

process.exitCode = await test(process.argv.slice(2));

/** Paths choose the tests under them, and skip the checks; flags go on to node's own test runner. */
async function test(args: readonly string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith("-"));
  const prefixes = args.filter((arg) => !arg.startsWith("-")).map((path) => path.replace(/^\.\//, ""));

  if (prefixes.length === 0) {
    const checked = await check();
    if (checked !== 0) {
      console.error("test: no test was run, because the checks before them failed.");
      return checked;
    }
  }

  const files = globSync(testFiles)
    .filter((path) => prefixes.length === 0 || prefixes.some((prefix) => path.startsWith(prefix)))
    .sort();
  if (files.length === 0) {
    // node would take an empty list for "find them yourself", and run something else.
    console.error(`test: there is no test under ${prefixes.join(", ") || testFiles.join(", ")}.`);
    return 1;
  }
  return run(["--test", `--test-concurrency=${concurrency}`, ...flags, ...files]);
}
