import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { environmentOf, listProcesses } from "../../src/cell/processes.ts";
import { type Running, startServerWith } from "./installed.ts";
import { pack, run, unpackInto, writeProgram } from "./packing.ts";

const place = mkdtempSync(join(tmpdir(), "leasehold-package-"));
const project = join(place, "project");
let files: readonly string[] = [];
let server: Running;

before(async () => {
  mkdirSync(project);
  const packed = await pack(place);
  ({ files } = packed);
  await unpackInto(project, packed.archive);
  writeProgram(project);
  server = await startServerWith(process.execPath, project);
});
after(async () => {
  await server?.stop();
  rmSync(place, { recursive: true, force: true });
});

test("the package has what users need and nothing else", () => {
  const { bin, exports } = JSON.parse(readFileSync("package.json", "utf8")) as {
    bin: Record<string, string>;
    exports: Record<string, string | Record<string, string>>;
  };
  const entries = Object.values(exports).flatMap((entry) =>
    typeof entry === "string" ? [entry] : Object.values(entry),
  );
  for (const path of [...Object.values(bin), ...entries, "LICENSE", "README.md"]) {
    assert.ok(files.includes(path.replace(/^\.\//, "")), path);
  }
  const expected = [
    /^(bin|deploy|docs\/images|dashboard\/dist)\//,
    /^dist\/(.*\.(js|d\.ts)|guard\/hook\.cjs|man\/leasehold\.1)$/,
    /^docs\/[\w-]+\.md$/,
    /^(package\.json|LICENSE|README\.md|CHANGELOG\.md|SECURITY\.md)$/,
  ];
  const strange = files.filter((path) => !expected.some((pattern) => pattern.test(path)));
  assert.deepEqual(strange, []);
  for (const path of ["docs/cli.md", "docs/guards.md", "docs/mcp.md", "docs/cells.md", "docs/ledger.md"]) {
    assert.ok(files.includes(path), `3.25: the help names ${path}`);
  }
  assert.deepEqual(
    files.filter((path) => /\.test\.|sample-|store\/contract|\/testing\//.test(path)),
    [],
  );
});

test("no packaged file imports a TypeScript file", () => {
  const source = /(?:from|import\()\s*"[^"]+(?<!\.d)\.ts"/;
  const named = files.filter(
    (path) =>
      path.startsWith("dist/") && source.test(readFileSync(join(project, "node_modules/leasehold", path), "utf8")),
  );
  assert.deepEqual(named, []);
});

test("installed, the SDK works", async () => {
  const { code, stdout, stderr } = await run(process.execPath, ["program.mjs"], {
    cwd: project,
    env: { LEASEHOLD_URL: server.url },
  });
  assert.deepEqual([code, stdout, stderr], [0, "all is well\n", ""]);
});

test("4: @leasehold/sdk is the SDK alone: it has no dependencies, and the same program runs with it", async () => {
  const alone = join(place, "alone");
  const folder = join(alone, "node_modules/@leasehold/sdk");
  mkdirSync(folder, { recursive: true });
  const packed = await run("npm", ["pack", "--ignore-scripts", "--json", "--pack-destination", place], {
    cwd: "dist-sdk",
  });
  const [{ filename = "", files: own = [] } = {}] = JSON.parse(packed.stdout) as {
    filename: string;
    files: { path: string }[];
  }[];
  await run("tar", ["-xzf", join(place, filename), "--strip-components=1", "-C", folder]);
  const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<string, unknown>;
  const { version, publishConfig } = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, unknown>;
  assert.deepEqual(
    [manifest["name"], manifest["version"], manifest["dependencies"], manifest["publishConfig"]],
    ["@leasehold/sdk", version, undefined, publishConfig],
  );
  assert.deepEqual(
    own.filter(
      ({ path }) =>
        !/^(dist\/(sdk|keeper|names|token|trust)\/.*\.(js|d\.ts)|LICENSE|README\.md|package\.json)$/.test(path),
    ),
    [],
  );
  const program = readFileSync("test/package/user/program.mjs", "utf8").replaceAll("leasehold/sdk", "@leasehold/sdk");
  writeFileSync(join(alone, "program.mjs"), program);
  const ran = await run(process.execPath, ["program.mjs"], { cwd: alone, env: { LEASEHOLD_URL: server.url } });
  assert.deepEqual([ran.code, ran.stdout, ran.stderr], [0, "all is well\n", ""]);
});

test("1.2: the package brings the Node that runs the checkout, for each platform", () => {
  const read = (path: string) => JSON.parse(readFileSync(path, "utf8")) as { optionalDependencies: object };
  assert.deepEqual(read("package.json").optionalDependencies, read("runtime/package.json").optionalDependencies);
  const shim = readFileSync("bin/leasehold.cjs", "utf8");
  for (const name of Object.keys(read("package.json").optionalDependencies))
    assert.ok(shim.includes(`"${name}"`), name);
});

test("installed, its types pass a strict compiler without skipLibCheck", async () => {
  const { code, stdout } = await run(process.execPath, [
    join("node_modules/typescript/bin/tsc"),
    "-p",
    join(project, "tsconfig.json"),
  ]);
  assert.equal(code, 0, stdout);
});

test("installed, the command line works, its watchdog too", async () => {
  const line = (...args: readonly string[]) =>
    run(process.execPath, ["node_modules/leasehold/bin/leasehold.cjs", ...args], {
      cwd: project,
      env: { LEASEHOLD_URL: server.url },
    });
  const ran = await line("run", "X:/installed", "--", "sh", "-c", "echo $LEASEHOLD_FENCE; exit 3");
  assert.equal(ran.code, 3, ran.stderr);
  assert.match(ran.stdout, /^\d+\n$/);
  assert.equal((await line("ls", "--json")).code, 0);
});

test("installed, a cell binds a process, and its guard ends that when the cell is killed", async () => {
  const config = join(project, "cell.json");
  const options = { command: ["sleep", "1000"], grace_ms: 0 };
  writeFileSync(
    config,
    JSON.stringify({ cell: "pack", resources: [{ resource: "BOX:/p", driver: "process", options }] }),
  );
  const args = ["node_modules/leasehold/bin/leasehold.cjs", "cell", "--server", server.url, "--config", config];
  const cell = spawn(process.execPath, args, { cwd: project, stdio: ["ignore", "pipe", "inherit"] });
  await once(cell.stdout, "data");
  const asked = ["node_modules/leasehold/bin/leasehold.cjs", "acquire", "BOX:/p", "--wait", "20s", "--json"];
  const acquired = await run(process.execPath, asked, { cwd: project, env: { LEASEHOLD_URL: server.url } });
  assert.equal(acquired.code, 0, acquired.stderr);
  const sleepers = () =>
    listProcesses().filter(({ pid }) => environmentOf(pid).some((one) => one.includes("=pack|BOX:/p|")));
  assert.equal(sleepers().length, 1);
  cell.kill("SIGKILL");
  while (sleepers().length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
});
