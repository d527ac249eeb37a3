/**
 * The tests with other programs that write git's hooks, with the real lefthook, fetched for this run: its package runs a
 * script when it is installed, so it is not among the project's own.
 *
 *   npm run test:hooks
 */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const version = "2.2.2";
const folder = mkdtempSync(join(tmpdir(), "leasehold-lefthook-"));
try {
  const name = `lefthook-${process.platform}-${process.arch}`;
  writeFileSync(join(folder, "package.json"), "{}");
  const install = ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", `${name}@${version}`];
  execFileSync("npm", install, { cwd: folder, stdio: "inherit" });
  const env = { ...process.env, LEASEHOLD_TEST_LEFTHOOK: join(folder, "node_modules", name, "bin/lefthook") };
  const { status } = spawnSync(process.execPath, ["--test", "test/guard/other-hooks.test.ts"], {
    env,
    stdio: "inherit",
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
