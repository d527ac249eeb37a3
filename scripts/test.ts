import { globSync, mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { check } from "./check.ts";
import { run } from "./run.ts";

const testFiles = ["src/**/*.test.ts", "sim/**/*.test.ts", "test/**/*.test.ts"];
/**
 * Files that run at once. One after the other they take about 730 s, of which 420 s are CPU time: most of them wait for
 * processes to start and leases to expire, so four keep two cores busy. No test asserts that something is fast: each
 * waits for what it needs, with limits of several seconds.
 */
const concurrency = 4;

/** A third of the processor time of the tests was spent on reading TypeScript, in each of several thousand processes. */
process.env["NODE_COMPILE_CACHE"] ??= join(import.meta.dirname, "../node_modules/.cache/leasehold");
process.exitCode = await test(process.argv.slice(2));

/** Paths select the tests under them and skip the checks. Flags are passed to node's test runner. */
async function test(args: readonly string[]): Promise<number> {
  const flags = args.filter((arg) => arg.startsWith("-"));
  const prefixes = args.filter((arg) => !arg.startsWith("-")).map((path) => path.replace(/^\.\//, ""));

  if (prefixes.length === 0) {
    const checked = await check();
    if (checked !== 0) {
      console.error("test: the checks failed, so no test was run.");
      return checked;
    }
  }

  const files = globSync(testFiles)
    .filter((path) => prefixes.length === 0 || prefixes.some((prefix) => path.startsWith(prefix)))
    .sort();
  if (files.length === 0) {
    // Without files node would search for tests itself, with other patterns.
    console.error(`test: no test files under ${prefixes.join(", ") || testFiles.join(", ")}`);
    return 1;
  }
  const postgres = files.some((path) => /postgres/.test(path + readFileSync(path, "utf8")))
    ? await startPostgres()
    : null;
  try {
    return await run(["--test", `--test-concurrency=${concurrency}`, ...flags, ...files]);
  } finally {
    await postgres?.remove();
  }
}

/**
 * One for all files, in a process of its own anyway; each test makes a schema of its own. LEASEHOLD_TEST_POSTGRES may
 * name one that runs: another version, or a pooler.
 */
async function startPostgres(): Promise<{ remove(): Promise<void> }> {
  if (process.env["LEASEHOLD_TEST_POSTGRES"]) return { remove: () => Promise.resolve() };
  const { PostgresServer } = await import("../src/store/embedded-postgres.ts");
  const server = await PostgresServer.start({ folder: mkdtempSync(join(tmpdir(), "leasehold-postgres-")) });
  process.env["LEASEHOLD_TEST_POSTGRES"] = server.url;
  return server;
}
