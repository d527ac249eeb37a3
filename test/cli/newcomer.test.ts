/** What hindered people who met the command line for the first time. Each test is named after what they stumbled over. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { after, before, describe, test } from "node:test";
import { leaseColumns } from "../../src/cli/lease-words.ts";
import { readableLine } from "../../src/cli/log.ts";
import { createPaint } from "../../src/cli/paint.ts";
import { tableText } from "../../src/cli/table.ts";
import { type Waiter, waiterColumns } from "../../src/cli/waiters.ts";
import type { Lease, Wait } from "../../src/sdk/wire.ts";
import { assertOneLine, binary, type Folder, makeFolder, type Server, start, startServer, until } from "./harness.ts";

const sh = (script: string) => ["--", "sh", "-c", script];
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

function repository(name: string, project?: object): string {
  const path = join(folder.path, name);
  mkdirSync(join(path, ".git"), { recursive: true });
  writeFileSync(join(path, ".git/config"), "[core]\n");
  if (project !== undefined) writeFileSync(join(path, ".leasehold.json"), JSON.stringify(project));
  return path;
}

describe("the first ten minutes", () => {
  test("1.2: on an old Node the command runs itself on the Node that came with it", async () => {
    const old = join(folder.path, "old-node.cjs");
    writeFileSync(
      old,
      'Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.1.0" } });',
    );
    const line = (...args: string[]) => execFileSync(process.execPath, ["--require", old, binary, ...args]).toString();
    assert.match(line("version"), new RegExp(`^leasehold \\S+ \\(Node ${process.versions.node},`));
    assert.throws(() => line("ls", "--url", "http://127.0.0.1:9"), { status: 6 }, "its exit code is passed on");
  });

  test("1.9: npm start takes the same commands as leasehold, with the same exit codes", async () => {
    const npm = (...args: string[]) => start(args, { program: resolve("src/main.ts") }).ended;
    assert.match((await npm("version")).stdout, /^leasehold /);
    assert.equal((await npm("ls", "--url", "http://127.0.0.1:9")).code, 6);
    assert.equal((await npm("frobnicate")).code, 2);
  });

  test("leasehold alone starts a server in ~/.leasehold, and says in four lines what to do next", async (t) => {
    const home = join(folder.path, "home");
    mkdirSync(home);
    const env = { HOME: home, LEASEHOLD_URL: "http://127.0.0.1:0" };
    const first = start([], { env });
    t.after(() => first.child.kill("SIGKILL"));
    await until(() => (first.output.stdout.split("\n").length > 4 ? true : null), "four lines", 300_000);
    assert.match(
      first.output.stdout,
      /^Leasehold \S+ is listening on http:\/\/127\.0\.0\.1:\d+ \(data in .*\n(.+\n){3}$/,
    );
    assert.match(first.output.stdout, /leasehold init/);
    assert.ok(existsSync(join(home, ".leasehold/data/leasehold.sqlite")));
    assert.equal(readFileSync(join(home, ".leasehold/.gitignore"), "utf8"), "*\n");
    const [, url = ""] = /listening on (\S+)/.exec(first.output.stdout) ?? [];
    const second = await start([], { env: { HOME: home, LEASEHOLD_URL: url } }).ended;
    assert.equal(second.code, 0);
    assert.match(second.stdout, /answers at .*\n0 leases, 0 waiting/);
    first.child.kill("SIGTERM");
    assert.equal((await first.ended).code, 0);
  });

  test("a data folder in a git work tree is refused, unless git ignores it", async () => {
    const path = join(folder.path, "tree");
    mkdirSync(path);
    execFileSync("git", ["init", "--quiet", path]);
    for (const args of [
      ["serve", "--port", "0"],
      ["keys", "create", "--role", "operator"],
    ]) {
      const refused = await start([...args, "--data", "data"], { cwd: path }).ended;
      assert.equal(refused.code, 2);
      assertOneLine(refused, "in a work tree");
    }
    assert.ok(!existsSync(join(path, "data")));
    writeFileSync(join(path, ".gitignore"), "/data/\n");
    assert.equal(
      (await start(["keys", "create", "--role", "operator", "--data", "data"], { cwd: path }).ended).code,
      0,
    );
  });
});

describe("the operator's day", () => {
  test("3.1: requests that stand by are shown with what they wait for", async (t) => {
    await server.json(["acquire", "LOCK:/w", "--agent", "first", "--ttl", "60s"]);
    const second = server.begin(["run", "LOCK:/w", "-w", "60s", ...sh("true")]);
    t.after(() => second.child.kill("SIGKILL"));
    const shown = await until(async () => {
      const { stdout } = await server.line(["ls", "LOCK:/w", "--waiters"]);
      return stdout === "" ? null : stdout;
    }, "a waiter");
    assert.match(shown, /^MUTATES LOCK:\/w\tagt_\w+\tstands by\t[\d.]+s\tfirst holds MUTATES LOCK:\/w/);
    assert.doesNotMatch(shown, /undefined/);
    second.child.kill("SIGTERM");
    await second.ended;
  });

  test("3.2: a lease that is released is the waiting run's in the same step, and not after a back-off", async () => {
    const gate = join(folder.path, "gate-of-3.2");
    const first = server.begin(["run", "LOCK:/next", ...sh(`while [ ! -e ${gate} ]; do sleep 0.05; done`)]);
    await until(
      async () => ((await server.line(["ls", "LOCK:/next"])).stdout.includes("agt_") ? true : null),
      "a holder",
    );
    const second = server.begin(["run", "LOCK:/next", "--", "true"]);
    await until(() => (second.output.stderr.includes("waits:") ? true : null), "a waiter");
    writeFileSync(gate, "");
    assert.deepEqual([(await first.ended).code, (await second.ended).code], [0, 0]);
    const { stdout } = await server.line(["events", "--json", "--resource", "LOCK:/next"]);
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { type: string; at: string });
    const at = (type: string) => events.filter((one) => one.type === type).map((one) => one.at);
    assert.equal(at("lease.granted").length, 2);
    assert.equal(at("lease.granted")[1], at("lease.released")[0]);
    assert.deepEqual(at("request.died"), []);
  });

  test("3.3: run waits until it has its leases, however short a single wait is", async () => {
    const own = await startServer();
    try {
      await own.json(["tenants", "set", "default", "--wait-default", "100ms", "--wait-max", "100ms"]);
      const { leases } = await own.json<{ leases: Lease[] }>(["acquire", "LOCK:/ever", "--agent", "one"]);
      const waiting = own.begin(["run", "LOCK:/ever", ...sh("echo ran")]);
      await until(async () => ((await own.line(["ls", "--waiters"])).stdout === "" ? null : true), "it waits");
      await own.json(["release", leases[0]?.id ?? ""]);
      const { code, stdout } = await waiting.ended;
      assert.deepEqual([code, stdout], [0, "ran\n"]);
    } finally {
      await own.stop();
    }
  });

  test("3.4: the last operator's key is not deleted, and what to do is said", async () => {
    const data = join(folder.path, "keys");
    const line = (...args: string[]) => start(["keys", ...args, "--data", data]).ended;
    assert.equal((await line("create", "--role", "operator", "--label", "boss")).code, 0);
    const [, id = ""] = /^(key_\w+)\toperator\tdefault\tboss\tnever\n$/.exec((await line("list")).stdout) ?? [];
    assert.match(id, /^key_/, "3.15: in a pipe with tabs");
    const refused = await line("delete", id);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /last operator's key[^\n]+Create another operator's key first/);
  });

  test("3.5: keys list on a folder without data says so and creates nothing", async () => {
    const data = join(folder.path, "nothing-here");
    for (const args of [["list"], ["delete", "key_1"], ["rotate", "key_1"]]) {
      const ended = await start(["keys", ...args, "--data", data]).ended;
      assert.equal(ended.code, 2);
      assertOneLine(ended, "no data");
    }
    assert.ok(!existsSync(data));
  });

  test("3.6: commands that work on data refuse the address of a server", async () => {
    for (const line of ["ledger verify", "ledger export", "restore x.sqlite", "keys list --data ."]) {
      const ended = await server.line([...line.split(" "), "--url", server.url]);
      assert.equal(ended.code, 2, line);
      assertOneLine(ended, line);
    }
  });

  test("3.7: a list shows the resource first and whole, on 80 columns too, and ids only with -l", () => {
    const lease = {
      id: "lse_01jcs8qm5t6w8y0a2b4c6d8e",
      resource: "FILE:/shop/src/login/session.ts",
      predicate: "MUTATES",
      agent_id: "claude-4f0c2d9e-1b7a-4a52-9d3e-77d1c0a9b6f1",
      state: "ACTIVE",
      expires_in_ms: 290_000,
      ttl: 300_000,
      purpose: "rename login() to signIn() everywhere",
    } as Lease;
    for (const width of [80, 120]) {
      const text = tableText([lease], leaseColumns, createPaint(false), width);
      assert.ok(text.split("\n")[1]?.startsWith("FILE:/shop/src/login/session.ts  MUTATES  "), text);
      assert.ok(text.split("\n").every((line) => line.length <= width));
      assert.ok(!text.includes("lse_"));
    }
  });

  test("on 100 columns two waiters are told apart, however long what they wait behind is", () => {
    const waiter = (agent: string): Waiter => ({
      kind: "agent",
      wait: {
        ...{
          agent_id: agent,
          reason: "die",
          intents: [],
          blocked_by_total: 1,
          blocked_by: [{ agent_id: "z".repeat(90) }],
        },
        resources: ["FILE:/shop/src/a/very/long/path/of/a/file.ts"],
      } as unknown as Wait,
    });
    const waiters = ["claude-91c2", "claude-91c3"].map(waiter);
    const text = tableText(waiters, waiterColumns(false), createPaint(false), 100);
    assert.match(text, /claude-91c2[\s\S]*claude-91c3/);
    assert.ok(
      text.split("\n").every((line) => line.length <= 100),
      text,
    );
  });

  test("3.8: flags of all commands may stand before the command, and between its words", async () => {
    const lines = [
      ["--url", server.url, "ls"],
      [`--url=${server.url}`, "--json", "ls"],
      ["tasks", "--json", "ls"],
    ];
    for (const line of lines) assert.equal((await server.line(line)).code, 0, line.join(" "));
    assert.match((await start(["--json", "--help", "run"]).ended).stdout, /leasehold run/);
  });

  test("3.9: a type in lower case is refused, and not leased as a file", async () => {
    const ended = await server.line(["run", "lock:/a", ...sh("true")], { cwd: repository("typo") });
    assert.equal(ended.code, 2);
    assertOneLine(ended, "lock:/a");
    assert.match(ended.stderr, /LOCK:\/a/);
  });

  test("3.10: events -f without a server says so and ends", async () => {
    const ended = await start(["events", "-f", "--url", "http://127.0.0.1:9"]).ended;
    assert.equal(ended.code, 6);
    assertOneLine(ended, "events -f");
  });

  test("3.12: acquire --dry-run names who is in the way", async () => {
    await server.json(["acquire", "LOCK:/q", "--agent", "older", "--purpose", "deploy"]);
    const ended = await server.line(["acquire", "--dry-run", "LOCK:/q"]);
    assert.equal(ended.code, 107);
    assert.match(ended.stderr, /^leasehold: not granted: older holds MUTATES LOCK:\/q, [\d.]+s left, "deploy"\n$/);
  });

  test("3.13: serve on an address where Leasehold answers says so", async () => {
    const { port } = new URL(server.url);
    const ended = await start(["serve", "--store", "memory", "--port", port]).ended;
    assert.equal(ended.code, 5);
    assert.match(ended.stderr, /a Leasehold server answers at \S+ already/);
  });

  test("3.17: the log on a terminal is made to be read", () => {
    const line = JSON.stringify({
      level: 40,
      time: Date.UTC(2026, 10, 18),
      msg: "late",
      by_ms: 12,
      url: "http://x",
      why: "a b",
    });
    assert.match(readableLine(line), /^\d\d:\d\d:\d\d warn {2}late by_ms=12 url=http:\/\/x why="a b"$/);
  });

  test("3.18: backup does not replace a file without --force", async () => {
    const own = await startServer(["--data", join(folder.path, "backed")]);
    try {
      const file = join(folder.path, "monday.sqlite");
      writeFileSync(file, "precious");
      assert.equal((await own.line(["backup", file])).code, 1);
      assert.equal(readFileSync(file, "utf8"), "precious");
      assert.equal((await own.line(["backup", file, "--force"])).code, 0);
    } finally {
      await own.stop();
    }
  });

  test("3.23: agents that have ended are shown only with --all", async () => {
    await server.line(["run", "LOCK:/short", "--agent", "gone-soon", ...sh("true")]);
    await server.json(["agents", "register", "stays"]);
    const ids = async (...args: string[]) =>
      (await server.json<{ agents: { agent_id: string; state: string }[] }>(["agents", ...args])).agents;
    assert.ok((await ids()).every(({ state }) => state !== "COMPLETED" && state !== "ABORTED"));
    assert.ok((await ids()).some(({ agent_id: id }) => id === "stays"));
    assert.ok((await ids("--all")).length > (await ids()).length);
  });

  test("3.24: -v, version and status exist, and help of a wrong word suggests nothing far-fetched", async () => {
    assert.equal((await server.line(["-v"])).code, 0);
    assert.match((await server.line(["status"])).stdout, /answers at/);
    assert.equal((await start(["status", "--url", "http://127.0.0.1:9"]).ended).code, 6);
    assert.doesNotMatch((await start(["help", "nope"]).ended).stderr, /did you mean/);
  });
});

describe("waiting", () => {
  test("wait ends when the name is free, and leaves it free", async () => {
    const { leases } = await server.json<{ leases: Lease[] }>(["acquire", "LOCK:/wait", "--agent", "busy"]);
    assert.equal((await server.line(["wait", "-n", "LOCK:/wait"])).code, 107);
    const waiting = server.begin(["wait", "LOCK:/wait"]);
    await until(
      async () => ((await server.line(["ls", "LOCK:/wait", "--waiters"])).stdout === "" ? null : true),
      "it waits",
    );
    await server.json(["release", leases[0]?.id ?? ""]);
    const { code, stdout } = await waiting.ended;
    assert.deepEqual([code, stdout], [0, "LOCK:/wait is free\n"]);
    assert.equal((await server.line(["acquire", "-n", "LOCK:/wait"])).code, 0);
  });

  test("tasks add --wait prints the result, and its exit code tells how the task ended", async () => {
    const adding = server.begin(["tasks", "add", "shout", "--wait"]);
    await server.line(["work", "--type", "shout", "--count", "1", ...sh("echo HELLO")]);
    const { code, stdout } = await adding.ended;
    assert.deepEqual([code, stdout], [0, "HELLO\n"]);
    const { task_id: id } = await server.json<{ task_id: string }>(["tasks", "add", "shout"]);
    const late = await server.line(["tasks", "wait", id, "-w", "100ms"]);
    assert.equal(late.code, 7);
    const waiting = server.begin(["tasks", "wait", id]);
    await server.json(["tasks", "cancel", id]);
    assert.equal((await waiting.ended).code, 1);
  });

  test("ls in a pipe says that nothing is leased", async () => {
    const { code, stdout, stderr } = await server.line(["ls", "LOCK:/nobody"]);
    assert.deepEqual([code, stdout], [0, ""]);
    assert.match(stderr, /nothing is leased at LOCK:\/nobody/);
  });
});

describe("which server", () => {
  test("the command line uses the server that .leasehold.json names, as the guards do", async () => {
    const path = repository("shop", { repository: "shop", url: server.url });
    assert.equal((await start(["ls"], { cwd: path }).ended).code, 0);
    assert.equal((await start(["ls"], { cwd: path, env: { LEASEHOLD_URL: "http://127.0.0.1:9" } }).ended).code, 6);
    const strange = repository("strange", { url: "https://leases.example.com" });
    const refused = await start(["ls"], { cwd: strange, env: { LEASEHOLD_STATE: folder.path } }).ended;
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /leasehold guard allow/);
    assert.equal((await start(["version"], { cwd: strange }).ended).code, 0, "commands without a server work there");
    const misspelt = await start(["ls"], { cwd: repository("misspelt", { onDie: "keep" }) }).ended;
    assert.equal(misspelt.code, 2);
    assert.match(misspelt.stderr, /unknown field "onDie"; there are repository, /);
  });

  test("a profile names a server once, and holds no key", async () => {
    const env = { LEASEHOLD_PROFILES: join(folder.path, "profiles.json") };
    const line = (...args: string[]) => start(args, { env }).ended;
    const key = join(folder.path, "own.key");
    writeFileSync(key, "lhk_x", { mode: 0o600 });
    assert.equal((await line("profiles", "set", "here", "--url", server.url)).code, 0);
    assert.equal((await line("profiles", "set", "keyed", "--url", "http://127.0.0.1:9", "--key-file", key)).code, 0);
    assert.equal((await line("profiles", "set", "bad", "--url", server.url, "--key", "lhk_secret")).code, 2);
    assert.match((await line("profiles")).stdout, /^here\thttp.*\nkeyed\thttp:\/\/127\.0\.0\.1:9\t\t.*own\.key\t\n$/);
    assert.doesNotMatch(readFileSync(env.LEASEHOLD_PROFILES, "utf8"), /lhk_/);
    assert.equal((await line("ls", "--profile", "here")).code, 0);
    assert.equal((await start(["ls"], { env: { ...env, LEASEHOLD_PROFILE: "here" } }).ended).code, 0);
    assert.equal((await line("ls", "--profile", "keyed")).code, 6);
    const unknown = await line("ls", "--profile", "there");
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /there are here, keyed/);
    assert.equal((await line("profiles", "rm", "here")).code, 0);
    assert.equal((await line("ls", "--profile", "here")).code, 2);
  });
});
