import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { type TestContext, test } from "node:test";
import { clientOf, mutates, until } from "./harness.ts";
import type { WireLease, WireWaiting } from "./wire-types.ts";

interface Run {
  readonly child: ChildProcess;
  readonly output: { stdout: string; stderr: string };
  readonly ended: Promise<number | NodeJS.Signals>;
}

function run(t: TestContext, args: readonly string[], environment: Readonly<Record<string, string>> = {}): Run {
  const { PATH } = process.env;
  const child = spawn(process.execPath, ["src/main.ts", ...args], {
    env: { PATH, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (output.stderr += chunk.toString()));
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal ?? "SIGKILL"));
  });
  t.after(async () => {
    child.kill("SIGKILL");
    await ended;
  });
  return { child, output, ended };
}

/** Runs until it exits. */
async function done(t: TestContext, args: readonly string[], environment?: Readonly<Record<string, string>>) {
  const { output, ended } = run(t, args, environment);
  return { code: await ended, ...output };
}

/** Runs until it listens. */
async function listening(t: TestContext, args: readonly string[], environment?: Readonly<Record<string, string>>) {
  const started = run(t, ["--port", "0", ...args], environment);
  const url = await new Promise<string>((resolve, reject) => {
    started.child.stdout?.on("data", () => {
      const found = /listening on (\S+)/.exec(started.output.stdout)?.[1];
      if (found !== undefined) resolve(found);
    });
    void started.ended.then((code) => reject(new Error(`ended with ${code}: ${started.output.stderr}`)));
  });
  return { ...started, url, ...clientOf(url) };
}

function folder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "leasehold-line-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

test("--help and --version print and exit; a usage error exits with 2 and one line", async (t) => {
  const help = await done(t, ["--help"]);
  assert.equal(help.code, 0);
  assert.match(help.stdout, /Usage\n[\s\S]*Examples/);
  assert.match((await done(t, ["--version"])).stdout, /^\d+\.\d+\.\d+\n$/);
  const wrong: readonly (readonly string[])[] = [
    ["--prot", "1"],
    ["--port", "x"],
    ["frobnicate"],
    ["serve", "twice"],
    ["keys"],
    ["keys", "create", "--role", "king"],
    ["restore"],
  ];
  const ends = await Promise.all(wrong.map(async (args) => ({ args, ...(await done(t, args)) })));
  for (const { args, code, stdout, stderr } of ends) {
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, /^leasehold: [^\n]+\n$/, args.join(" "));
  }
});

test("S5: without keys the server does not listen beyond loopback; with a key it does, and requires it", async (t) => {
  const data = join(folder(t), "data");
  const beyond = ["--host", "0.0.0.0", "--behind-proxy", "10.0.0.5"];
  const refused = await done(t, [...beyond, "--port", "0", "--data", data]);
  assert.equal(refused.code, 2);
  assert.match(
    refused.stderr,
    /^leasehold: 0\.0\.0\.0 is not loopback, and there are no keys yet: make one with [^\n]+\n$/,
  );

  const made = await done(t, ["keys", "create", "--role", "operator", "--label", "first", "--data", data]);
  assert.equal(made.code, 0);
  assert.match(made.stdout, /^lhk_[\w-]{43}\n$/);
  const key = made.stdout.trim();
  const listed = await done(t, ["keys", "list", "--data", data]);
  const [keyId = ""] = listed.stdout.split("\t");
  assert.match(listed.stdout, /^key_[0-9a-f]{16}\toperator\tdefault\tfirst\tnever\n$/);
  assert.equal(statSync(join(data, "leasehold.sqlite")).mode & 0o077, 0, "the data is for its user alone");

  const plain = await done(t, ["--host", "0.0.0.0", "--port", "0", "--data", data]);
  assert.equal(plain.code, 2, "M10: keys would be readable on the way");
  assert.match(plain.stderr, /^leasehold: 0\.0\.0\.0 is not loopback, and keys would be readable [^\n]+\n$/);
  const noFile = await done(t, ["--tls-cert", "none.pem", "--tls-key", "none.pem", "--port", "0", "--data", data]);
  assert.deepEqual(
    [noFile.code, noFile.stderr],
    [2, "leasehold: the TLS certificate none.pem cannot be read: ENOENT\n"],
  );

  const server = await listening(t, [...beyond, "--data", data]);
  const { get } = clientOf(server.url.replace("0.0.0.0", "127.0.0.1"));
  assert.equal((await get("/v1/leases")).status, 401);
  assert.equal((await get("/v1/leases", { key })).status, 200);
  const locked = await done(t, ["keys", "list", "--data", data]);
  assert.equal(locked.code, 3);
  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 0);
  const last = await done(t, ["keys", "delete", keyId, "--data", data]);
  assert.equal(last.code, 1, "without any key the server would be open to all of the machine");
  assert.match(last.stderr, /the last operator's key/);
  const rotated = await done(t, ["keys", "rotate", keyId, "--overlap", "0", "--data", data]);
  assert.match(rotated.stdout, /^lhk_[\w-]{43}\n$/);
  const second = await done(t, ["keys", "create", "--role", "operator", "--expires-in", "90d", "--data", data]);
  assert.equal(second.code, 0);
  assert.equal((await done(t, ["keys", "delete", keyId, "--data", data])).code, 0);
  assert.match(
    (await done(t, ["keys", "list", "--data", data])).stdout,
    /^key_[0-9a-f]{16}\toperator\tdefault\t[^\t]*\t.*2/,
  );
});

test("locked data exits with 3, newer data with 4, an address in use with 5, each with one line", async (t) => {
  const data = join(folder(t), "data");
  const server = await listening(t, ["--data", data]);
  const second = await done(t, ["--port", "0", "--data", data]);
  assert.equal(second.code, 3);
  assert.match(second.stderr, /^leasehold: another server works on [^\n]+\n$/);

  const { port } = new URL(server.url);
  const inUse = await done(t, ["--port", port, "--data", join(folder(t), "other")]);
  assert.equal(inUse.code, 5);
  assert.match(inUse.stderr, /^leasehold: a Leasehold server answers at http:\/\/127\.0\.0\.1:\d+ already; [^\n]+\n$/);
  server.child.kill("SIGINT");
  assert.equal(await server.ended, 0);

  const db = new DatabaseSync(join(data, "leasehold.sqlite"));
  db.exec("PRAGMA user_version = 9999");
  db.close();
  const newer = await done(t, ["--port", "0", "--data", data]);
  assert.equal(newer.code, 4, newer.stderr);
  assert.match(newer.stderr, /^leasehold: [^\n]+\n$/);
});

test("SIGTERM: held requests are answered, acknowledged changes survive the restart, and the exit code is 0", async (t) => {
  const data = join(folder(t), "data");
  const first = await listening(t, [], { LEASEHOLD_DATA: data });
  await first.register("old");
  await first.register("young");
  const lease = await first.grant("young", "FILE:/a", { ttl_ms: 300_000 });
  const held = first.post<WireWaiting>("/v1/acquire", {
    agent_id: "old",
    intents: mutates("FILE:/a"),
    hold_ms: 50_000,
  });
  const isHeld = async () => ((await first.get("/metrics")).text.includes("leasehold_held_polls 1") ? true : null);
  await until(isHeld, "the answer is held");
  const began = performance.now();
  first.child.kill("SIGTERM");
  assert.equal((await held).body.verdict, "WAIT");
  assert.equal(await first.ended, 0);
  assert.ok(performance.now() - began < 25_000);
  const lines = first.output.stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as { msg: string });
  assert.deepEqual(
    lines.map(({ msg }) => msg),
    ["listening", "stopping: what is under way is committed and answered", "stopped"],
  );
  const second = await listening(t, [], { LEASEHOLD_DATA: data });
  const { body } = await second.get<WireLease>(`/v1/leases/${lease.id}`);
  assert.deepEqual([body.state, body.fence], ["ACTIVE", lease.fence]);
});

test("a second signal ends it at once", async (t) => {
  const server = await listening(t, ["--store", "memory", "--shutdown-timeout-ms", "60000"]);
  const socket = new (await import("node:net")).Socket();
  socket.on("error", () => undefined);
  socket.connect(Number(new URL(server.url).port), "127.0.0.1");
  socket.write(
    "POST /v1/agents HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n" +
      "Expect: 100-continue\r\n\r\n",
  );
  const [word] = (await once(socket, "data")) as [Buffer];
  assert.match(String(word), /^HTTP\/1\.1 100 /, "it waits for the rest");
  server.child.kill("SIGTERM");
  await until(() => (server.output.stderr.includes("stopping") ? true : null), "the first signal has arrived");
  assert.equal(server.child.exitCode, null);
  server.child.kill("SIGTERM");
  assert.equal(await server.ended, 1);
});

test("S6: a backup is fetched while the server runs; restored, every older fence and token is stale", async (t) => {
  const place = folder(t);
  const data = join(place, "data");
  const file = join(place, "copy.sqlite");
  const first = await listening(t, ["--data", data]);
  const { agent_token: token } = await first.register("alice");
  const before = await first.grant("alice", "FILE:/kept", { ttl_ms: 300_000 });
  const { port } = new URL(first.url);
  const made = await done(t, ["backup", file, "--port", port]);
  assert.deepEqual([made.code, made.stderr], [0, ""]);
  assert.equal(statSync(file).mode & 0o077, 0);
  const after = await first.grant("alice", "FILE:/later");
  const metrics = (await first.get("/metrics")).text;
  const lastSeen = Number(/^leasehold_last_event (\d+)$/m.exec(metrics)?.[1]);
  assert.ok(lastSeen > 0);
  assert.equal((await done(t, ["restore", file, "--data", data, "--force"])).code, 3);
  first.child.kill("SIGTERM");
  await first.ended;

  const unasked = await done(t, ["restore", file, "--data", data]);
  assert.equal(unasked.code, 1);
  assert.match(unasked.stderr, /exists already/);
  assert.equal((await done(t, ["restore", file, "--data", data, "--force"])).code, 0);
  const second = await listening(t, ["--data", data]);
  assert.equal((await second.get("/v1/leases", { key: token })).status, 401);
  assert.equal((await second.get(`/v1/leases/${after.id}`)).status, 404);
  assert.equal((await second.get(`/v1/leases/${before.id}`)).status, 200);
  const { body: reissued } = await second.get<WireLease>(`/v1/leases/${before.id}`);
  assert.equal(reissued.generation, before.generation + 1, "a live lease is re-issued");
  assert.ok(reissued.fence > after.fence, "beyond what the backup does not know");
  await second.register("alice");
  const fresh = await second.grant("alice", "FILE:/later");
  assert.ok(fresh.fence > reissued.fence);
  for (const lastKnown of [String(lastSeen), String(lastSeen + 1_000)]) {
    const headers = { "last-event-id": lastKnown };
    const gone = await fetch(`${second.url}/v1/events`, { headers });
    const { error, earliest } = (await gone.json()) as { error: string; earliest: number };
    assert.deepEqual([gone.status, error], [410, "history_pruned"], `event ${lastKnown} is of the lost history`);
    assert.ok(earliest > lastSeen + 1_000, "what comes is beyond the jump");
  }
  second.child.kill("SIGKILL");
  await second.ended;

  const again = join(place, "again");
  assert.equal((await done(t, ["restore", file, "--data", again])).code, 0);
  const third = await listening(t, ["--data", again]);
  await third.register("alice");
  const { fence } = await third.grant("alice", "FILE:/later");
  assert.ok(fence > fresh.fence, "the same backup in a fresh folder gives no fence twice");
});

test("a data folder that cannot be is refused at once, with one line that says so once", async (t) => {
  const place = folder(t);
  const file = join(place, "file");
  writeFileSync(file, "");
  for (const [data, why] of [
    ["/proc/leasehold/x", /the data folder \/proc\/leasehold\/x cannot be made: there can be no folders there/],
    [file, /is not a folder; name another place with --data/],
    [join(file, "below"), /is not a folder/],
  ] as const) {
    if (data.startsWith("/proc") && process.platform !== "linux") continue;
    for (const args of [
      ["--port", "0", "--data", data],
      ["restore", file, "--data", data],
    ]) {
      const { code, stderr } = await done(t, args);
      assert.equal(code, 1, stderr);
      assert.match(stderr, /^leasehold: [^\n]+\n$/);
      assert.match(stderr, why);
    }
  }
});

test("a signal during the start ends it, with code 0", async (t) => {
  const data = join(folder(t), "data");
  // Locked by somebody for longer than the start waits: SQLite tries for seconds.
  const first = await listening(t, ["--data", data]);
  first.child.kill("SIGKILL");
  await first.ended;
  const db = new DatabaseSync(join(data, "leasehold.sqlite"));
  db.exec("BEGIN IMMEDIATE");
  const starting = run(t, ["--port", "0", "--data", data, "--log-level", "info"]);
  await until(() => (existsSync(join(data, "lock.sqlite")) ? true : null), "it has begun");
  const isLocked = (): true | null => {
    try {
      const lock = new DatabaseSync(join(data, "lock.sqlite"), { timeout: 0 });
      try {
        lock.exec("BEGIN EXCLUSIVE");
        return null;
      } finally {
        lock.close();
      }
    } catch {
      return true;
    }
  };
  await until(isLocked, "it opens its data");
  starting.child.kill("SIGTERM");
  assert.equal(await starting.ended, 0, starting.output.stderr);
  assert.match(starting.output.stderr, /stopped before it was ready/);
  db.close();
});

test("a backup that fails leaves no file and prints one line", async (t) => {
  const file = join(folder(t), "copy.sqlite");
  const nobody = createServer();
  await new Promise<void>((resolve) => nobody.listen(0, "127.0.0.1", resolve));
  const address = nobody.address();
  const port = typeof address === "object" && address !== null ? String(address.port) : "";
  nobody.close();
  const alone = await done(t, ["backup", file, "--port", port]);
  assert.equal(alone.code, 6);
  assert.match(alone.stderr, /^leasehold: no server answers at [^\n]+\n$/);
  const server = await listening(t, ["--store", "memory"]);
  const refused = await done(t, ["backup", file, "--url", server.url, "--key", "lhk_wrong"]);
  assert.deepEqual([refused.code, existsSync(file)], [1, false]);
  assert.match(refused.stderr, /^leasehold: the server refused: [^\n]+\n$/);
  assert.match((await done(t, ["backup", file], { LEASEHOLD_URL: server.url })).stderr, /in memory only/);
});

test("L16: history older than its retention is pruned while the server runs", async (t) => {
  const data = join(folder(t), "data");
  const config = join(folder(t), "leasehold.json");
  writeFileSync(config, JSON.stringify({ prune_every_ms: 200, ended_keep_ms: 4_000, events_keep_ms: 4_000 }));
  const server = await listening(t, ["--data", data, "--config", config]);
  await server.register("alice");
  const lease = await server.grant("alice", "FILE:/a");
  await server.post(`/v1/leases/${lease.id}/release`);
  assert.equal((await server.get(`/v1/leases/${lease.id}`)).status, 200);
  const isForgotten = async () =>
    (await server.get(`/v1/leases/${lease.id}`)).body.error === "lease_unknown" ? true : null;
  await until(isForgotten, "the ended lease is forgotten", 15_000);
  const gone = await fetch(`${server.url}/v1/events?since=0`);
  assert.equal(gone.status, 410);
});
