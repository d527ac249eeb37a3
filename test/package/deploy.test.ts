import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { commandsUnder } from "../../src/cli/commands.ts";
import { exitCodes } from "../../src/cli/exit-codes.ts";
import { environmentName, names } from "../../src/server/config/config.ts";

const read = (name: string) => readFileSync(`deploy/${name}`, "utf8");
const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;

function verifyUnit(unit: string): { readonly status: number | null; readonly output: string } {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-unit-"));
  try {
    writeFileSync(join(folder, "leasehold.service"), unit);
    const { status, stdout, stderr } = spawnSync("systemd-analyze", ["verify", join(folder, "leasehold.service")]);
    return { status, output: `${stdout}${stderr}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("systemd accepts the unit, and refuses one with a wrong line", { skip: !hasSystemd && "no systemd here" }, () => {
  const unit = read("leasehold.service");
  const { status, output } = verifyUnit(unit);
  assert.deepEqual([status, output], [0, ""]);
  assert.match(verifyUnit(unit.replace("DynamicUser=yes", "DynamicUsers=yes")).output, /DynamicUsers/);
});

test("the unit does not start again what cannot start, and gives a stop enough time", () => {
  const unit = read("leasehold.service");
  assert.match(unit, new RegExp(`^RestartPreventExitStatus=${exitCodes.usage} ${exitCodes.dataTooNew}$`, "m"));
  assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) > 10);
  assert.match(unit, /^DynamicUser=yes$/m);
  assert.match(unit, /^ProtectSystem=strict$/m);
});

test("the container runs without root, and names settings and commands that exist", async () => {
  const file = read("Containerfile");
  const last = file.slice(file.lastIndexOf("\nFROM "));
  assert.match(last, /^USER node$/m);
  assert.ok(last.indexOf("USER node") < last.indexOf("ENTRYPOINT"), "before anything of ours runs");
  const known = names.map(environmentName);
  const named = [...file.matchAll(/LEASEHOLD_\w+/g)].map(([name]) => name);
  assert.deepEqual(
    named.filter((name) => !known.includes(name)),
    [],
  );
  assert.match(file, /npm install --global --omit=optional/, "the image has Node already");
  assert.equal((await commandsUnder("serve")).length, 1);
});

test("the compose file reads only its root, drops all rights, and gives flags that exist", async () => {
  const file = read("compose.yaml");
  for (const line of [/^ {4}read_only: true$/m, /cap_drop: \["ALL"\]/, /no-new-privileges:true/, /data:\/data/]) {
    assert.match(file, line);
  }
  const [serve] = await commandsUnder("serve");
  const flags = [...(/command: (\[.*\])/.exec(file)?.[1] ?? "").matchAll(/"--([\w-]+)"/g)].map(([, flag = ""]) => flag);
  assert.deepEqual(
    flags.filter((flag) => serve?.flags?.[flag] === undefined),
    [],
  );
  assert.ok(flags.length > 0);
});
