import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, existsSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { CellLease } from "../binding.ts";
import { markName, ProcessTree } from "../process-tree.ts";
import { readProcess } from "../processes.ts";
import {
  atEnd,
  eventually,
  failsWith,
  makeCell,
  narrowed,
  newLease,
  renewed,
  scratch,
  type TestCell,
  testCellName,
} from "../testing/test-cell.ts";

const resource = "PROC:/job";
const isLinux = process.platform === "linux";
const groups = "/sys/fs/cgroup/unified";

function script(name: string, text: string): string {
  const file = join(scratch, name);
  writeFileSync(file, `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  return file;
}

function makeProcessCell(options: object, settings: Record<string, unknown> = {}): TestCell {
  return makeCell([{ resource, driver: "process", options: { grace_ms: 100, env_allow: ["GREETING"], ...options } }], {
    settings,
  });
}

async function pidsIn(file: string, count: number): Promise<number[]> {
  const read = (): number[] =>
    existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean).map(Number) : [];
  await eventually(() => read().length >= count);
  return read();
}

const isAlive = (pid: number): boolean => readProcess(pid) !== null;

test("G6: the command lives while the lease does, and is gone when the teardown is confirmed", {
  skip: !isLinux,
}, async () => {
  const pids = join(scratch, "plain.pids");
  const cell = makeProcessCell({ command: [script("plain.sh", `echo $$ >> ${pids}; exec sleep 1000`)] });
  const lease = newLease(resource);
  await cell.core.bind(lease);
  const [pid = 0] = await pidsIn(pids, 1);
  assert(isAlive(pid));
  assert.equal((await cell.core.probe(resource)).clean, false);
  await cell.core.teardown(lease.id);
  assert(!isAlive(pid));
  assert.equal((await cell.core.probe(resource)).clean, true);
});

test("G6: children that ignore SIGTERM, fork twice, and leave session and group die too, at the lease's own end", {
  skip: !isLinux,
}, async () => {
  const pids = join(scratch, "stubborn.pids");
  const stubborn = script("stubborn.sh", `trap '' TERM; echo $$ >> ${pids}; while :; do sleep 1000; done`);
  const main = script(
    "main.sh",
    `trap '' TERM\n(setsid ${stubborn} &) \n(${stubborn} &)\nsetsid sh -c '(${stubborn} &)'\necho $$ >> ${pids}; sleep 1000`,
  );
  const cell = makeProcessCell({ command: [main] });
  const first = newLease(resource);
  await cell.core.bind(first);
  const found = await pidsIn(pids, 4);
  assert(found.every(isAlive));
  const lease = renewed(first, 1_000);
  await cell.core.renew(lease);
  await eventually(() => cell.events.length > 0);
  assert.deepEqual(cell.events, [{ type: "ended", lease, code: "lease_expired", failure: null }]);
  assert.deepEqual(found.filter(isAlive), []);
});

test("a child that forgets its environment is found by its session, its parent, or by having been seen", {
  skip: !isLinux,
}, async () => {
  const pids = join(scratch, "clean.pids");
  const clean = script("clean.sh", `trap '' TERM; echo $$ >> ${pids}; sleep 1000 & sleep 1000`);
  const main = script("main2.sh", `env -i setsid ${clean} & env -i ${clean} & sleep 2; exit 0`);
  const cell = makeProcessCell({ command: [main] });
  const lease = newLease(resource);
  await cell.core.bind(lease);
  const found = await pidsIn(pids, 2);
  await eventually(() => found.every((pid) => readProcess(pid)?.parent === 1 || !isAlive(pid)));
  await cell.core.teardown(lease.id);
  assert.deepEqual(found.filter(isAlive), []);
});

test("with a control group nobody escapes, however clean it makes itself", { skip: !canMakeGroups() }, async () => {
  const pids = join(scratch, "grouped.pids");
  const hidden = script("hidden.sh", `trap '' TERM; echo $$ >> ${pids}; sleep 1000`);
  const main = script("main3.sh", `(env -i setsid sh -c '(${hidden} &)' &); exit 0`);
  const cell = makeProcessCell({ command: [main], cgroup: groups });
  const lease = newLease(resource);
  await cell.core.bind(lease);
  const [pid = 0] = await pidsIn(pids, 1);
  assert(isAlive(pid));
  await cell.core.teardown(lease.id);
  assert(!isAlive(pid));
});

function canMakeGroups(): boolean {
  try {
    accessSync(groups, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

test("a command that cannot be started is a failed bind, and nothing is held", async () => {
  const cell = makeProcessCell({ command: [join(scratch, "nowhere")] });
  await failsWith("bind_failed", cell.core.bind(newLease(resource)));
  assert.equal(cell.core.bindings().length, 0);
  assert.equal(cell.core.inventory()[0]?.fenced, null);
});

test("what a killed cell has left running is ended before anything is bound again", { skip: !isLinux }, async () => {
  const left = spawn("sh", ["-c", "trap '' TERM; while :; do sleep 1000; done"], {
    detached: true,
    stdio: "ignore",
    env: { ...process.env, [markName]: `${testCellName}|${resource}|lease-old|1|` },
  });
  const gone = once(left, "exit");
  await eventually(() => new ProcessTree(`${testCellName}|${resource}|`).look().length > 0);
  const cell = makeProcessCell({ command: ["/bin/sleep", "1000"] });
  await cell.core.start();
  await gone;
  assert.equal((await cell.core.probe(resource)).clean, true);
});

interface Line {
  readonly type: string;
  readonly data?: string;
  readonly code?: number;
  readonly error?: string;
}

const sh = realpathSync("/bin/sh");

async function boundRun(
  cell: TestCell,
  ttlMs?: number,
): Promise<{ lease: CellLease; token: string; run: (argv: string[], token?: string) => Promise<Response> }> {
  const lease = newLease(resource, ttlMs);
  const { coordinate, token } = await cell.core.bind(lease);
  const run = (argv: string[], shown = token): Promise<Response> =>
    fetch(`${coordinate}/run`, {
      method: "POST",
      headers: { authorization: `Bearer ${shown}` },
      body: JSON.stringify({ argv, env: { GREETING: "hi" }, stdin: "from stdin" }),
    });
  return { lease, token, run };
}

async function linesOf(response: Response): Promise<Line[]> {
  return (await response.text())
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);
}

test("the holder's own command runs with its input, and its output and end are streamed", {
  skip: !isLinux,
}, async () => {
  const cell = makeProcessCell({ allow: ["*"] });
  const { run } = await boundRun(cell);
  const lines = await linesOf(await run([sh, "-c", 'cat; printf " $GREETING $LEASEHOLD_LEASE"; exit 3']));
  const output = lines.flatMap(({ type, data = "" }) =>
    type === "stdout" ? [Buffer.from(data, "base64").toString()] : [],
  );
  assert.match(output.join(""), /^from stdin hi lease-\d+$/);
  assert.equal(lines[0]?.type, "started");
  assert.deepEqual(lines.at(-1), { type: "exit", code: 3, signal: null });
});

test("G4: only allowed programs run, and a token can be narrowed to one", { skip: !isLinux }, async () => {
  const cell = makeProcessCell({ allow: [sh, realpathSync("/bin/true")] });
  const { run, token } = await boundRun(cell);
  const codeOf = async (response: Promise<Response>): Promise<string | undefined> =>
    (await linesOf(await response))[0]?.error;
  assert.equal(await codeOf(run(["/bin/cat"])), "program_not_allowed");
  assert.equal(await codeOf(run(["true"])), "invalid_request");
  assert.equal(await codeOf(run([])), "invalid_request");
  assert.equal(await codeOf(run(["/no/where"])), "not_found");
  assert.equal(await codeOf(run([sh], "lht1.AAAA")), "token_invalid");
  const onlyTrue = narrowed(token, { type: "program", program: realpathSync("/bin/true") });
  assert.equal(await codeOf(run([sh, "-c", "exit"], onlyTrue)), "caveat_failed");
  assert.equal(await codeOf(run(["/bin/true"], onlyTrue)), undefined);
});

test("G6: the holder's command dies with the lease, and the stream says why", { skip: !isLinux }, async () => {
  const cell = makeProcessCell({ allow: ["*"] });
  const { run, lease } = await boundRun(cell);
  const pids = join(scratch, "held.pids");
  rmSync(pids, { force: true });
  const response = await run([
    sh,
    "-c",
    `trap '' TERM; echo $$ >> ${pids}; sleep 1000 & while :; do echo tick; sleep 0.01; done`,
  ]);
  const [pid = 0] = await pidsIn(pids, 1);
  await cell.core.teardown(lease.id);
  assert(!isAlive(pid));
  const lines = await linesOf(response);
  assert.deepEqual(lines.at(-1), { type: "end", error: "lease_revoked" });
});

test("who goes away ends what he started", { skip: !isLinux }, async () => {
  const cell = makeProcessCell({ allow: ["*"] });
  const { run } = await boundRun(cell);
  const pids = join(scratch, "left.pids");
  const response = await run([sh, "-c", `echo $$ >> ${pids}; sleep 1000`]);
  const [pid = 0] = await pidsIn(pids, 1);
  await response.body?.cancel();
  await eventually(() => !isAlive(pid));
  await eventually(() => cell.core.bindings()[0]?.inFlight === 0);
});

atEnd(async () => {
  if (isLinux) await new ProcessTree(`${testCellName}|${resource}|`).end(0, 5_000);
});
