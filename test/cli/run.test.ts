import assert from "node:assert/strict";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { Lease } from "../../src/sdk/wire.ts";
import {
  assertOneLine,
  binary,
  type Folder,
  makeFolder,
  type Running,
  type Server,
  startServer,
  until,
} from "./harness.ts";

let server: Server;
let folder: Folder;

before(async () => {
  server = await startServer();
  folder = makeFolder();
});
after(async () => {
  await server.stop();
  folder.remove();
});

const held = async (name: string) => (await server.json<{ leases: Lease[] }>(["ls", name, "--leases"])).leases;
const sh = (script: string) => ["--", "sh", "-c", script];
const isUp = (running: Running, word: string) =>
  until(() => (running.output.stdout.includes(word) ? true : null), word);

/** Writes the time repeatedly, in a background process that ignores SIGTERM. */
const stubborn = (file: string) =>
  `trap '' TERM; (trap '' TERM; while :; do date +%s%3N >> ${file}; sleep 0.02; done) & echo "up $LEASEHOLD_LEASE_IDS"; wait; wait`;

function lastTick(file: string): number {
  return Number(readFileSync(file, "utf8").trim().split("\n").at(-1));
}

/** No process writes any more. */
function stopped(file: string): Promise<true> {
  let before = -1;
  return until(async () => {
    const now = readFileSync(file, "utf8").length;
    if (now === before) return true;
    before = now;
    await new Promise((resolve) => setTimeout(resolve, 600));
    return null;
  }, "the command has ended");
}

async function startStubborn(
  at: Server,
  name: string,
  ttl = "8s",
): Promise<{ running: Running; file: string; endOf: () => Promise<number> }> {
  const file = join(folder.path, `${name}.ticks`);
  const running = at.begin(["run", `X:/${name}`, "--ttl", ttl, ...sh(stubborn(file))]);
  await until(() => (/up \S+\n/.test(running.output.stdout) ? true : null), "it is up");
  await until(() => (existsSync(file) ? true : null), "it has begun");
  const [, id = ""] = /up (\S+)\n/.exec(running.output.stdout) ?? [];
  // As the server has it: there may have been heartbeats since the command began.
  const endOf = async (): Promise<number> => {
    const { expires_at: end } = (await (await fetch(`${at.url}/v1/leases/${id}`)).json()) as Lease;
    return Date.parse(end);
  };
  return { running, file, endOf };
}

describe("leasehold run", { concurrency: 4 }, () => {
  test("the command gets its leases in its environment and standard input; run exits with its code and releases", async () => {
    const script =
      'cat; echo "$LEASEHOLD_LEASE_IDS $LEASEHOLD_FENCE $LEASEHOLD_EXPIRES_AT $LEASEHOLD_AGENT_ID"; exit 42';
    const { code, stdout, stderr } = await server.line(["run", "X:/env/a", "-s", "X:/env/b", ...sh(script)], {
      input: "in\n",
    });
    assert.deepEqual([code, stderr], [42, ""]);
    assert.match(stdout, /^in\nlse_\w+,lse_[\w-]+ \d+ \d{4}-\d\d-\d\dT[\d:.]+Z agt_\w+\n$/);
    assert.deepEqual(await held("X:/env/**"), []);
  });

  test("arguments after -- reach the command unchanged, including a second -- and leasehold's own flags", async () => {
    const { stdout } = await server.line(["run", "X:/args", "--", "printf", "%s|", "--json", "--", "-n", "a b"]);
    assert.equal(stdout, "--json|--|-n|a b|");
  });

  test("a conflict exits with 107 at once with -n, with another code with -E, and one line names holder and purpose", async () => {
    await server.json(["acquire", "X:/taken", "--agent", "holder", "--purpose", "mine"]);
    const [refused, chosen, shared] = await Promise.all([
      server.line(["run", "-n", "X:/taken", ...sh("echo ran")]),
      server.line(["run", "-n", "-E", "5", "X:/taken", ...sh("echo ran")]),
      server.line(["run", "-n", "-E", "0", "-s", "X:/taken", ...sh("echo ran")]),
    ]);
    assert.deepEqual([refused.code, chosen.code, shared.code], [107, 5, 0]);
    assertOneLine(refused, "refused");
    assert.match(refused.stderr, /not granted: holder holds MUTATES X:\/taken, [\d.]+m?\d*s left, "mine"/);
    assert.ok([refused, chosen, shared].every(({ stdout }) => stdout === ""));
  });

  test("with -w it waits for its turn, and then runs", async () => {
    const { leases } = await server.json<{ leases: Lease[] }>(["acquire", "X:/soon", "--agent", "first"]);
    const waiting = server.begin(["run", "-w", "20s", "X:/soon", ...sh("echo ran")]);
    await until(async () => {
      const { agents } = await server.json<{ agents: { state: string }[] }>(["agents", "--state", "PAUSED"]);
      return agents.length > 0 ? true : null;
    }, "it stands by");
    await server.line(["release", leases[0]?.id ?? ""]);
    const { code, stdout, stderr } = await waiting.ended;
    assert.deepEqual([code, stdout], [0, "ran\n"]);
    assert.match(
      stderr,
      /^(leasehold: waits: first holds MUTATES X:\/soon, [^\n]+\n)?$/,
      "after two seconds it says so",
    );
  });

  test("interrupted while it waits, it leaves no request and exits with the signal's code", async () => {
    await server.json(["acquire", "X:/never", "--agent", "keeper"]);
    await server.json(["agents", "register", "elder"]);
    const elder = server.begin(["run", "-w", "60s", "--agent", "keeper-2", "X:/never", ...sh("echo ran")]);
    await until(
      async () => ((await server.line(["agents", "keeper-2"])).code === 0 ? true : null),
      "it has registered",
    );
    elder.child.kill("SIGTERM");
    assert.equal((await elder.ended).code, 143);
    assert.deepEqual((await server.json<{ waiters: unknown[] }>(["ls", "X:/never", "--waiters"])).waiters, []);
  });

  test("an unknown command exits with 127, one that cannot be run with 126, one ended by a signal with 128 plus its number", async () => {
    const plain = join(folder.path, "plain");
    writeFileSync(plain, "no program");
    chmodSync(plain, 0o644);
    const [missing, forbidden, killed] = await Promise.all([
      server.line(["run", "X:/none", "--", join(folder.path, "nothing")]),
      server.line(["run", "X:/none2", "--", plain]),
      server.line(["run", "X:/none3", ...sh("kill -9 $$")]),
    ]);
    assert.deepEqual([missing.code, forbidden.code, killed.code], [127, 126, 137]);
    assertOneLine(missing, "missing");
    assertOneLine(forbidden, "forbidden");
    for (const name of ["X:/none", "X:/none2", "X:/none3"]) assert.deepEqual(await held(name), []);
  });

  test("signals are forwarded to the command, and run exits as the command does", async () => {
    const running = server.begin([
      "run",
      "X:/signals",
      ...sh("trap 'echo stopping; exit 9' TERM; echo up; while :; do sleep 0.05; done"),
    ]);
    await isUp(running, "up");
    running.child.kill("SIGTERM");
    const { code, stdout } = await running.ended;
    assert.deepEqual([code, stdout], [9, "up\nstopping\n"]);
  });

  test("a run within a run acts as the same agent, without conflict", async () => {
    const inner = [process.execPath, binary, "run", "-n", "X:/nested/a", "--", "echo", "inner"];
    const { code, stdout, stderr } = await server.line(["run", "X:/nested/**", "--", ...inner]);
    assert.deepEqual([code, stdout, stderr], [0, "inner\n", ""]);
  });

  test("G10: a lease that is revoked ends the whole process group at once, long before the next heartbeat, with 108 and why", async () => {
    const { running, file } = await startStubborn(server, "revoked", "5m");
    await server.line(["revoke", "--prefix", "X:/revoked", "--reason", "stuck"]);
    const { code, stderr } = await running.ended;
    assert.equal(code, 108, stderr);
    assert.match(stderr, /^leasehold: [^\n]*was revoked \(stuck\)[^\n]*\n$/);
    await stopped(file);
  });

  test("A7: when the server stops answering, the command has ended before the lease does", async () => {
    const own = await startServer();
    try {
      const { running, file, endOf } = await startStubborn(own, "silent");
      own.process.child.kill("SIGSTOP");
      await stopped(file);
      own.process.child.kill("SIGCONT");
      const endsAt = await endOf();
      assert.ok(lastTick(file) < endsAt, `${lastTick(file) - endsAt} ms too late`);
      assert.equal((await running.ended).code, 108);
    } finally {
      await own.stop();
    }
  });

  test("when the supervisor is killed, the watchdog ends the command before the lease's end", async () => {
    const { running, file, endOf } = await startStubborn(server, "orphan");
    running.child.kill("SIGKILL");
    await stopped(file);
    const endsAt = await endOf();
    assert.ok(lastTick(file) < endsAt, `${lastTick(file) - endsAt} ms too late`);
  });

  test("when the supervisor is paused, the watchdog ends the command before the lease's end; resumed, the supervisor reports it", async () => {
    const { running, file, endOf } = await startStubborn(server, "paused");
    running.child.kill("SIGSTOP");
    await stopped(file);
    const endsAt = await endOf();
    assert.ok(lastTick(file) < endsAt, `${lastTick(file) - endsAt} ms too late`);
    running.child.kill("SIGCONT");
    assert.equal((await running.ended).code, 108);
  });

  test("background processes of the command's group do not outlive the lease", async () => {
    const file = join(folder.path, "left.ticks");
    const script = `(while :; do date +%s%3N >> ${file}; sleep 0.02; done) >/dev/null 2>&1 & while [ ! -s ${file} ]; do sleep 0.02; done`;
    assert.equal((await server.line(["run", "X:/left", ...sh(script)])).code, 0);
    await stopped(file);
    assert.deepEqual(await held("X:/left"), []);
  });

  test("L9: a command that fails is run again under the same lease, and its agent's restart is announced", async () => {
    const file = join(folder.path, "restarts");
    const script = `echo x >> ${file}; echo "$LEASEHOLD_FENCE"; test $(wc -l < ${file}) -ge 3`;
    const args = ["run", "--agent", "restarter", "--restart", "5", "X:/restart", ...sh(script)];
    const { code, stdout, stderr } = await server.line(args);
    assert.equal(code, 0, stderr);
    const fences = stdout.trim().split("\n");
    assert.deepEqual([fences.length, new Set(fences).size], [3, 1]);
    assert.match(stderr, /restart 2 of 5/);
    const page = await fetch(
      `${server.url}/v1/events?since=0&follow=false&agent_id=restarter&types=agent.transitioned`,
    );
    assert.match(await page.text(), /DIE_RESTART/);
    assert.deepEqual(await held("X:/restart"), []);
  });

  test("L9: restarts are bounded, and a signal ends the command for good", async () => {
    const bounded = await server.line(["run", "--restart", "1", "X:/bounded", ...sh("echo run; exit 3")]);
    assert.deepEqual([bounded.code, bounded.stdout], [3, "run\nrun\n"]);
    const running = server.begin(["run", "--restart", "9", "X:/signalled", ...sh("echo up; sleep 30")]);
    await isUp(running, "up");
    running.child.kill("SIGTERM");
    const { code, stdout } = await running.ended;
    assert.deepEqual([code, stdout], [143, "up\n"]);
  });

  test("W5: inside a command, DIE is not retried while the agent holds something; with --restart all begins again", async () => {
    const acquired = await server.json<{ leases: Lease[] }>(["acquire", "--agent", "elder", "X:/elder", "--ttl", "5m"]);
    const inner = `"${process.execPath}" "${binary}" run X:/elder -w 20s -- echo both`;
    const alone = await server.line(["run", "X:/outer", ...sh(inner)]);
    assert.equal(alone.code, 107);
    assert.match(alone.stderr, /elder holds MUTATES X:\/elder.*release, and try again in \d+ ms/s);
    const running = server.begin(["run", "--restart", "50", "X:/outer", ...sh(inner)]);
    await until(() => (running.output.stderr.includes("restart 1 of 50") ? true : null), "it is rolled back");
    await until(async () => ((await held("X:/outer")).length === 0 ? true : null), "it lets go before it begins again");
    await server.line(["release", ...acquired.leases.map(({ id }) => id)]);
    const { code, stdout } = await running.ended;
    assert.deepEqual([code, stdout], [0, "both\n"]);
  });

  test("L8: a command that acts as an existing agent verifies it first, so that it can work after an announced restart", async () => {
    await server.json(["acquire", "--agent", "returned", "X:/returned/a", "--ttl", "5m"]);
    await fetch(`${server.url}/v1/agents/returned/restart`, { method: "POST" });
    assert.equal((await server.line(["run", "--agent", "returned", "X:/returned/b", "--", "true"])).code, 0);
  });
});

describe("observation updates", () => {
  /** An agent that died for the resource, which its holder then wrote. */
  async function missed(agent: string, name: string): Promise<void> {
    const { leases } = await server.json<{ leases: Lease[] }>(["acquire", name, "--agent", `elder-of-${agent}`]);
    assert.notEqual((await server.line(["acquire", "-n", name, "--agent", agent])).code, 0);
    await server.json(["release", leases[0]?.id ?? "", "--report", "v2"]);
  }

  test("A4: the command finds in LEASEHOLD_CHANGES what others changed, and the file is gone afterwards", async () => {
    await missed("misser", "X:/changes");
    const script = 'cat "$LEASEHOLD_CHANGES"; echo "$LEASEHOLD_CHANGES"';
    const { stdout, stderr, code } = await server.line(["run", "X:/changes", "--agent", "misser", ...sh(script)]);
    assert.equal(code, 0, stderr);
    const [text = "", path = ""] = stdout.trim().split("\n");
    const { changes } = JSON.parse(text) as { changes: { resource: string; version: string }[] };
    assert.deepEqual(
      changes.map(({ resource, version }) => [resource, version]),
      [["X:/changes", "v2"]],
    );
    assert.match(stderr, /changed by others since .*; read it again:\n.* MUTATES X:\/changes \(now v2\)/);
    assert.equal(existsSync(path), false);
    const quiet = await server.line(["run", "X:/quiet", ...sh('echo "[$LEASEHOLD_CHANGES]"')]);
    assert.equal(quiet.stdout, "[]\n");
  });

  test("A4: acquire prints what others changed while its agent was refused", async () => {
    await missed("asker", "Y:/changes");
    const { stderr } = await server.line(["acquire", "Y:/changes", "--agent", "asker"]);
    assert.match(stderr, /changed by others since .*\n.* MUTATES Y:\/changes \(now v2\)/);
  });
});
