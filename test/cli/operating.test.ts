import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import * as shapes from "../../src/protocol/leases/shapes.ts";
import type { Agent, Key, OperationAnswers, Resource, Tenant } from "../../src/sdk/wire.ts";
import {
  assertFits,
  assertOneLine,
  binary,
  type Folder,
  makeFolder,
  type Server,
  start,
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

describe("operating", { concurrency: 3 }, () => {
  test("agents are registered, listed, shown, paused and unpaused", async () => {
    const registered = await server.json([
      "agents",
      "register",
      "ops-1",
      "--label",
      "model=opus",
      "--label",
      "host=a=b",
    ]);
    assertFits(shapes.registered, registered);
    const agent = await server.json<Agent>(["agents", "ops-1"]);
    assert.deepEqual(agent.labels, { model: "opus", host: "a=b" });
    assert.equal((await server.json<Agent>(["agents", "pause", "ops-1"])).paused_by_operator, true);
    const paused = await server.line(["acquire", "X:/paused", "--agent", "ops-1"]);
    assert.deepEqual([paused.code, paused.stdout], [107, ""]);
    assert.equal((await server.json<Agent>(["agents", "unpause", "ops-1"])).paused_by_operator, false);
    // L9: announced by its supervisor; verify-all ends it.
    assert.equal((await server.json<Agent>(["agents", "restart", "ops-1"])).state, "DIE_RESTART");
    await server.line(["verify", "--agent", "ops-1"]);
    assert.notEqual((await server.json<Agent>(["agents", "ops-1"])).state, "DIE_RESTART");
    const { agents } = await server.json<{ agents: Agent[] }>(["agents", "--state", "PAUSED"]);
    assert.ok(agents.some(({ agent_id: id }) => id === "ops-1"));
    for (const one of agents) assertFits(shapes.agent, one);
  });

  test("an agent's digest is shown, and a missing one is reported", async () => {
    await server.json(["agents", "register", "saver"]);
    await fetch(`${server.url}/v1/agents/saver/digest`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ checkpoint_id: "step-1", resume_point: "tests are written", context: { done: 3 } }),
    });
    const digest = await server.json(["digest", "saver"]);
    assertFits(shapes.digest, digest);
    assert.match((await server.line(["digest", "saver"])).stdout, /^checkpoint {2}step-1[\s\S]*tests are written/);
    await server.json(["agents", "register", "no-saver"]);
    assert.equal((await server.line(["digest", "no-saver"])).code, 1);
  });

  test("resources are declared, fenced, reset and withdrawn", async () => {
    const name = "GPU:/ops/a100";
    const shown = (answer: Resource) => [answer.state, answer.capacity];
    assert.deepEqual(shown(await server.json<Resource>(["resources", "declare", name, "--capacity", "2"])), [
      "READY",
      2,
    ]);
    await server.json(["acquire", name, "--units", "2"]);
    assert.equal((await server.line(["acquire", "-n", name])).code, 107);
    assert.equal((await server.line(["acquire", "--units", "3", name])).code, 107, "more than there are at all");
    assert.equal((await server.json<Resource>(["resources", "fence", name, "--reason", "smoke"])).state, "FENCED");
    assert.equal((await server.line(["acquire", name])).code, 107);
    assert.equal((await server.json<Resource>(["resources", "reset", name])).state, "READY");
    assert.equal((await server.json<Resource>(["resources", "withdraw", name, "--revoke"])).state, "WITHDRAWN");
    const { resources } = await server.json<{ resources: Resource[] }>([
      "resources",
      "GPU:/ops",
      "--state",
      "WITHDRAWN",
    ]);
    assert.deepEqual(
      resources.map(({ resource }) => resource),
      [name],
    );
    for (const one of resources) assertFits(shapes.resource, one);
  });

  test("events prints history and ends, -f follows until a signal, and filters narrow both", async () => {
    await server.json(["acquire", "X:/events/a", "--agent", "eve"]);
    const { code, stdout } = await server.line(["events", "--agent", "eve", "--json"]);
    assert.equal(code, 0);
    const types = stdout
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { type: string }).type);
    assert.deepEqual(types, ["agent.registered", "lease.granted", "agent.transitioned"]);
    const following = server.begin(["events", "-f", "--since", "0", "--type", "lease.released", "--limit", "1"]);
    await server.line(["release", "--all", "--agent", "eve"]);
    assert.match(
      (await following.ended).stdout,
      /^\d+\t\S+Z\tlease\.released\tMUTATES X:\/events\/a eve fence \d+[^\n]*\n$/,
    );
    const endless = server.begin(["events", "-f", "--since", "0"]);
    await until(() => (endless.output.stdout === "" ? null : true), "it shows something");
    endless.child.kill("SIGINT");
    assert.equal((await endless.ended).code, 0);
  });

  test("tenants are created, changed, suspended, resumed and listed", async () => {
    const tenant = await server.json<Tenant>(["tenants", "create", "acme"]);
    assertFits(shapes.tenant, tenant);
    const changed = await server.json<Tenant>([
      "tenants",
      "set",
      "acme",
      "--ttl-max",
      "2m",
      "--leases-max",
      "1",
      "--strategy",
      "wound_wait",
    ]);
    assert.deepEqual(
      [changed.settings.ttl_ms_max, changed.quotas.leases_max, changed.settings.strategy],
      [120_000, 1, "wound_wait"],
    );
    assert.equal(
      (await server.line(["acquire", "X:/a", "X:/b", "--tenant", "acme"])).code,
      107,
      "one more than its quota",
    );
    assert.equal(
      (await server.json<Tenant>(["tenants", "suspend", "acme", "--reason", "unpaid", "--yes"])).suspended,
      true,
    );
    assert.equal((await server.json<Tenant>(["tenants", "resume", "acme"])).suspended, false);
    const { tenants } = await server.json<{ tenants: Tenant[] }>(["tenants", "list"]);
    assert.ok(tenants.some(({ tenant_id: id }) => id === "acme"));
    assert.equal((await server.line(["tenants", "create", "acme"])).code, 1);
  });

  test("doctor reports a healthy server, and gives advice where none runs", async () => {
    const well = await server.json<{ ok: boolean; checks: { name: string; status: string }[] }>([
      "doctor",
      "--data",
      folder.path,
    ]);
    assert.equal(well.ok, true);
    assert.deepEqual(
      well.checks.map(({ name }) => name),
      ["here", "server", "ready", "version", "clock", "time", "key", "people", "commits", "disk"],
    );
    assert.ok(
      well.checks.every(({ status }) => status === "ok" || status === "warning"),
      JSON.stringify(well.checks),
    );
    const alone = await start(["doctor", "--url", "http://127.0.0.1:9"]).ended;
    assert.equal(alone.code, 7);
    assert.match(alone.stdout, /problem +server +no server answers at http:\/\/127\.0\.0\.1:9; start one/);
  });

  test("cluster status shows who leads, and cluster resign needs another server", async () => {
    const { servers, shards } = await server.json<OperationAnswers["get_cluster"]>(["cluster", "status"]);
    assert.deepEqual([servers.length, shards.length, shards[0]?.server_id], [1, 1, servers[0]?.server_id]);
    assert.match((await server.line(["cluster", "status"])).stdout, /^http:\S+\tleads\t/m);
    const alone = await server.line(["cluster", "resign", "--yes"]);
    assert.equal(alone.code, 2);
    assertOneLine(alone, "No other server could lead");
  });

  test("serve, keys, backup and restore work on one data folder, from the first key to a restored copy", async () => {
    const data = join(folder.path, "data");
    const made = await start(["keys", "create", "--role", "operator", "--data", data]).ended;
    const key = made.stdout.trim();
    assert.match(key, /^lhk_[\w-]{43}$/);
    assert.match((await start(["keys", "list", "--data", data]).ended).stdout, /operator/);
    const own = await startServer(["--data", data]);
    const env = { LEASEHOLD_KEY: key };
    try {
      const keyless = await own.line(["ls"]);
      assert.equal(keyless.code, 2);
      assertOneLine(keyless, "no key");
      const created = await own.json<Key & { key: string }>(["keys", "create", "--role", "reader", "--label", "dash"], {
        env,
      });
      assertFits(shapes.newKey, created);
      const reader = { LEASEHOLD_KEY: created.key };
      assert.equal((await own.line(["ls"], { env: reader })).code, 0);
      const forbidden = await own.line(["acquire", "X:/a"], { env: reader });
      assert.equal(forbidden.code, 2, "a key that may not");
      assertOneLine(forbidden, "reader");
      const { keys } = await own.json<{ keys: Key[] }>(["keys", "list", "--role", "reader"], { env });
      assert.deepEqual(
        keys.map(({ label }) => label),
        ["dash"],
      );
      assert.equal((await own.json<Key>(["keys", "delete", created.key_id], { env })).key_id, created.key_id);
      assert.equal((await own.line(["ls"], { env: reader })).code, 2);

      const agentKey = await own.json<{ key: string; key_id: string }>(["keys", "create", "--role", "agent"], { env });
      const asAgent = { LEASEHOLD_KEY: agentKey.key };
      const ran = await own.line(["run", "X:/agent", "--", "sh", "-c", "echo $LEASEHOLD_AGENT_ID"], { env: asAgent });
      assert.deepEqual([ran.code, ran.stderr], [0, ""], "a key that only registers agents is enough for run");

      const inner = 'echo "[$LEASEHOLD_KEY$LEASEHOLD_KEY_FILE]"; "$0" "$1" verify --agent "$LEASEHOLD_AGENT_ID"';
      for (const given of [asAgent, env]) {
        const nested = await own.line(["run", "X:/in", "--", "sh", "-c", inner, process.execPath, binary], {
          env: given,
        });
        assert.deepEqual(
          [nested.code, nested.stdout.split("\n")[0]],
          [0, "[]"],
          "the command acts with a token, not the key",
        );
      }
      const rotated = await own.json<{ key: string; former_until: string | null; expires_at: string }>(
        ["keys", "rotate", agentKey.key_id, "--overlap", "0", "--expires-in", "90d"],
        { env },
      );
      assert.equal(rotated.former_until, null);
      assert.equal((await own.line(["run", "X:/agent", "--", "true"], { env: asAgent })).code, 2);
      assert.equal(
        (await own.line(["run", "X:/agent", "--", "true"], { env: { LEASEHOLD_KEY: rotated.key } })).code,
        0,
      );
      const listed = await own.line(["keys", "list"], { env });
      assert.match(listed.stdout, new RegExp(`^${agentKey.key_id}\tagent\t.*\t${rotated.expires_at}\t`, "m"));

      const file = join(folder.path, "copy.sqlite");
      const backup = await own.json<{ file: string; bytes: number }>(["backup", file], { env });
      assert.deepEqual([backup.file, backup.bytes], [file, statSync(file).size]);
      assert.equal(
        (await start(["serve", "--port", "0", "--data", data]).ended).code,
        3,
        "another server has the data",
      );
      assert.equal((await start(["restore", file, "--data", data, "--force"]).ended).code, 3);
      const port = new URL(own.url).port;
      assert.equal(
        (await start(["serve", "--port", port, "--store", "memory"]).ended).code,
        5,
        "the address is in use",
      );
      await own.stop();
      assert.equal((await start(["restore", file, "--data", data]).ended).code, 1, "data is there already");
      const restored = await start(["restore", file, "--data", data, "--force", "--json"]).ended;
      assert.deepEqual([restored.code, JSON.parse(restored.stdout)], [0, { data, restored: true }]);
      assert.ok(existsSync(data));
    } finally {
      await own.stop();
    }
  });

  test("a server that goes down is exit code 6: retry", async () => {
    const own = await startServer(["--store", "memory", "--shutdown-timeout-ms", "20000"]);
    try {
      own.process.child.kill("SIGSTOP");
      const { code, stderr } = await own.line(["ls"], { env: { LEASEHOLD_TIMEOUT: "1s" } });
      assert.equal(code, 6, stderr);
      assert.match(stderr, /^leasehold: the server at \S+ did not answer in time[^\n]+\n$/);
    } finally {
      own.process.child.kill("SIGCONT");
      await own.stop();
    }
  });
});
