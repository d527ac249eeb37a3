/**
 * The package as users get it, on every platform that it supports: packed, installed by npm into an empty project, and
 * run under Node 20, 22, 24 and 26, Deno and Bun, all of which are npm packages. They are downloaded (about 600 MB), so
 * this is not part of `npm test`.
 *
 *   npm run test:package [-- node@24 deno]     only these
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startServerWith } from "../test/package/installed.ts";
import { pack, run, writeProgram } from "../test/package/packing.ts";

interface Platform {
  /** Its npm package. */
  readonly spec: string;
  readonly program: readonly string[];
  /** The path of its program in node_modules. */
  readonly binary: string;
  /** Whether the command line is tried there; on an old Node it runs on the one that it brought. */
  readonly hasCommandLine: boolean;
}

const platforms: readonly Platform[] = [
  ...["20", "22", "24", "26"].map(node),
  { spec: "deno", binary: "deno/bin.cjs", program: ["run", "--allow-all", "program.mjs"], hasCommandLine: false },
  { spec: "bun", binary: "bun/bin/bun.exe", program: ["program.mjs"], hasCommandLine: false },
];

function node(major: string): Platform {
  return { spec: `node@${major}`, binary: "node/bin/node", program: ["program.mjs"], hasCommandLine: true };
}

process.exitCode = await testPackage(process.argv.slice(2));

async function testPackage(wanted: readonly string[]): Promise<number> {
  const place = mkdtempSync(join(tmpdir(), "leasehold-package-"));
  const project = join(place, "project");
  mkdirSync(project);
  let failures = 0;
  try {
    const { archive } = await pack(place);
    writeProgram(project);
    await must("npm", ["install", "--no-audit", "--no-fund", archive], project);
    const server = await startServerWith(process.execPath, project);
    try {
      for (const platform of platforms.filter(({ spec }) => wanted.length === 0 || wanted.includes(spec))) {
        try {
          await tryOn(platform, place, project, server.url);
          console.log(`ok    ${platform.spec}`);
        } catch (error) {
          failures++;
          console.log(`FAIL  ${platform.spec}: ${error instanceof Error ? error.message : error}`);
        }
      }
    } finally {
      await server.stop();
    }
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
  return failures === 0 ? 0 : 1;
}

async function tryOn(
  { spec, binary, program, hasCommandLine }: Platform,
  place: string,
  project: string,
  url: string,
): Promise<void> {
  const home = join(place, spec.replace("@", "-"));
  mkdirSync(home);
  await must("npm", ["install", "--no-audit", "--no-fund", "--prefix", home, spec], home);
  const path = join(home, "node_modules", binary);
  assert.ok(existsSync(path), `${spec} has no ${binary}`);
  const [command, first] = path.endsWith(".cjs") ? [process.execPath, [path]] : [path, []];
  const env = { LEASEHOLD_URL: url };
  const ran = await run(command, [...first, ...program], { cwd: project, env });
  assert.equal(ran.code, 0, `${ran.stdout}${ran.stderr}`);
  assert.match(ran.stdout, /all is well/);
  if (!hasCommandLine) return;
  const line = (...args: readonly string[]) =>
    run(path, ["node_modules/leasehold/bin/leasehold.cjs", ...args], { cwd: project, env });
  const { code, stdout, stderr } = await line("run", "X:/platform", "--", "sh", "-c", "echo $LEASEHOLD_FENCE; exit 3");
  assert.equal(code, 3, stderr);
  assert.match(stdout, /^\d+\n$/);
  const own = await startServerWith(path, project).catch((error: unknown) => assert.fail(String(error)));
  await own.stop();
}

async function must(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { code, stdout, stderr } = await run(command, args, { cwd });
  assert.equal(code, 0, `${command} ${args.join(" ")}: ${stdout}${stderr}`);
}
