/** What the programs of a cell can reach (G13): attacks by a holder who may run something. */
import assert from "node:assert/strict";
import { chmodSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makeCell, newLease, scratch, type TestCell } from "../testing/test-cell.ts";

const resource = "PROC:/confined";
const isLinux = process.platform === "linux";
const isRoot = process.getuid?.() === 0;
const sh = realpathSync("/bin/sh");
chmodSync(scratch, 0o755);

function confined(options: object): TestCell {
  return makeCell([{ resource, driver: "process", options: { grace_ms: 100, folder: "/", ...options } }]);
}

interface Ran {
  readonly error: string | undefined;
  readonly output: string;
  readonly code: number | undefined;
}

/** Runs one program under a lease of its own. */
async function ran(cell: TestCell, argv: readonly string[], env: Record<string, string> = {}): Promise<Ran> {
  const lease = newLease(resource);
  const { coordinate, token } = await cell.core.bind(lease);
  const response = await fetch(`${coordinate}/run`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}` },
    body: JSON.stringify({ argv, env }),
  });
  const lines = (await response.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { type?: string; data?: string; error?: string; code?: number });
  await cell.core.teardown(lease.id);
  const output = lines.map(({ data = "" }) => Buffer.from(data, "base64").toString()).join("");
  return { error: lines.find(({ error }) => error !== undefined)?.error, output, code: lines.at(-1)?.code };
}

test("G13: a holder sets only the variables that the configuration allows, and never PATH or one that loads code", {
  skip: !isLinux,
}, async () => {
  const job = join(scratch, "job.sh");
  writeFileSync(job, '#!/bin/bash\necho "real $COLOUR $PATH"\n', { mode: 0o755 });
  const evil = join(scratch, "evil.sh");
  writeFileSync(evil, "echo owned\n");
  const cell = confined({ allow: [realpathSync(job)], env_allow: ["COLOUR"] });
  const attacks = {
    BASH_ENV: evil,
    "BASH_FUNC_echo%%": "() { builtin echo owned; }",
    LD_PRELOAD: "/tmp/evil.so",
    ENV: evil,
    PATH: "/tmp",
    NODE_OPTIONS: "--require /tmp/evil.js",
    LEASEHOLD_TENANT: "other",
    OTHER: "x",
  };
  for (const [name, value] of Object.entries(attacks)) {
    const { error, output } = await ran(cell, [job], { [name]: value });
    assert.equal(error, "environment_not_allowed", `${name}: ${output}`);
  }
  const { output } = await ran(cell, [job], { COLOUR: "red" });
  assert.equal(output.trim(), `real red ${process.env["PATH"]}`);
  assert.equal(
    (await ran(confined({ allow: [realpathSync(job)] }), [job], { COLOUR: "red" })).error,
    "environment_not_allowed",
  );
});

test("G13: variables that make an allowed program run another cannot be configured for holders", async () => {
  for (const name of [
    "LD_PRELOAD",
    "BASH_ENV",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PATH",
    "LEASEHOLD_KEY",
    "GIT_SSH_COMMAND",
  ]) {
    const faults = (await confined({ allow: ["*"], env_allow: [name] }).core.start()).join();
    assert.match(faults, new RegExp(`env_allow has ${name};`));
  }
  const passed = (await confined({ allow: ["*"], env_pass: ["LEASEHOLD_KEY"] }).core.start()).join();
  assert.match(passed, /env_pass has LEASEHOLD_KEY;/);
});

test("G13: commands of exec get the variables that the configuration names, and no key", {
  skip: !isLinux,
}, async () => {
  const exec = (more: object) =>
    makeCell([{ resource, driver: "exec", options: { bind: ["/usr/bin/env"], teardown: ["/bin/true"], ...more } }]);
  process.env["LEASEHOLD_KEY"] = "lhk_secret";
  process.env["OWN_SETTING"] = "on";
  try {
    const print = ["/bin/sh", "-c", "env | tr '\\n' ' '"];
    const plain = await exec({ bind: print }).core.bind(newLease(resource));
    assert.match(plain.coordinate, /LEASEHOLD_FENCE=\d+/);
    assert.match(plain.coordinate, /PATH=/);
    assert.doesNotMatch(plain.coordinate, /lhk_secret|OWN_SETTING/);
    const more = await exec({ bind: print, env_pass: ["OWN_SETTING"] }).core.bind(newLease(resource));
    assert.match(more.coordinate, /OWN_SETTING=on/);
  } finally {
    delete process.env["LEASEHOLD_KEY"];
    delete process.env["OWN_SETTING"];
  }
});

test("G13: programs run as the configured user, who reads neither the cell's files nor its environment", {
  skip: !isLinux || !isRoot,
}, async () => {
  const secret = join(scratch, "key");
  writeFileSync(secret, "lhk_secret\n", { mode: 0o600 });
  const cell = confined({ allow: ["*"], user: "nobody" });
  const who = await ran(cell, [sh, "-c", "id -u; id -G"]);
  assert.match(who.output, /^65534\n65534\s*$/);
  const { output } = await ran(cell, [sh, "-c", `cat ${secret} /proc/$PPID/environ /proc/$PPID/mem; kill -0 $PPID`]);
  assert.doesNotMatch(output, /lhk_secret/);
  assert.equal(output.match(/Permission denied|not permitted|No such process/g)?.length, 4, output);
  assert.deepEqual(cell.lines, []);
  const exec = makeCell([
    { resource, driver: "exec", options: { bind: ["/usr/bin/id", "-u"], teardown: ["/bin/true"], user: "nobody" } },
  ]);
  assert.equal((await exec.core.bind(newLease(resource))).coordinate, "65534");
});

test("G13: a cell says so where its holders' programs have its own rights, or cannot have another's", {
  skip: !isLinux,
}, async () => {
  const own = confined({ allow: ["*"] });
  await own.core.start();
  assert.match(own.lines.join(), /PROC:\/confined: its programs run as the cell's own user/);
  const unknown = await confined({ allow: ["*"], user: "no-such-user" }).core.start();
  assert.match(unknown.join(), /cannot be used: no-such-user is not known on this machine/);
  const numbers = await confined({ allow: ["*"], user: "1000" }).core.start();
  assert.match(numbers.join(), /group is missing; a user by number needs it/);
});

test("G13: programs are limited in processor time, memory, number, and how long they run", {
  skip: !isLinux || !isRoot,
}, async () => {
  const busy = await ran(confined({ allow: ["*"], cpu_seconds_max: 1 }), [sh, "-c", "ulimit -t"]);
  assert.equal(busy.output.trim(), "1");
  const memory = await ran(confined({ allow: ["*"], memory_bytes_max: 104_857_600 }), [sh, "-c", "ulimit -v"]);
  assert.equal(memory.output.trim(), "102400");
  // As many as that user has already, and this one: none may be added.
  const crowd = confined({ allow: ["*"], processes_max: 1, user: "61234", group: "61234" });
  const forks = await ran(crowd, [sh, "-c", "(echo child); echo after"]);
  assert.doesNotMatch(forks.output, /child/);
  const alone = await confined({ allow: ["*"], processes_max: 5 }).core.start();
  assert.match(alone.join(), /processes_max would count the cell's own processes too/);
  const late = await ran(confined({ allow: ["*"], run_ms_max: 50 }), [sh, "-c", "sleep 1000"]);
  assert.equal(late.error, "run_timeout");
});

test("S4: a lease runs a limited number of programs at a time", { skip: !isLinux }, async () => {
  const cell = confined({ allow: ["*"], runs_max: 1 });
  const lease = newLease(resource);
  const { coordinate, token } = await cell.core.bind(lease);
  const run = (argv: readonly string[]): Promise<Response> =>
    fetch(`${coordinate}/run`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}` },
      body: JSON.stringify({ argv }),
    });
  const first = await run(["/bin/sleep", "1000"]);
  const second = await run(["/bin/sleep", "1000"]);
  assert.equal(second.status, 503);
  assert.match(await second.text(), /"error":"too_many_runs"/);
  await first.body?.cancel();
  await cell.core.teardown(lease.id);
});
