/** TLS, the owner's token, and what would lock others out, on the command line. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { otherPeople } from "../../src/cli/doctor-checks.ts";
import { startServer as startHere } from "../../src/server/start.ts";
import { makeProject } from "../guard/harness.ts";
import { tlsFolder } from "../server/tls-client.ts";
import { assertOneLine, start, startServer, until } from "./harness.ts";

test("S5: a server with TLS is reached with its CA, and a cell with its certificate", async (t) => {
  const { authority, folder, files, put } = tlsFolder(t);
  const { tlsCert, tlsKey, tlsCa } = files;
  const server = await startServer([
    "--store",
    "memory",
    "--tls-cert",
    tlsCert,
    "--tls-key",
    tlsKey,
    "--tls-ca",
    tlsCa,
  ]);
  t.after(() => server.stop());
  assert.match(server.url, /^https:/);
  assert.equal((await server.line(["ls"])).code, 6, "its CA is not known");
  assert.equal((await server.line(["ls", "--tls-ca", tlsCa])).code, 0);
  assert.equal((await server.line(["ls"], { env: { LEASEHOLD_CA: tlsCa } })).code, 0);
  const inner = await server.line([
    "run",
    "FILE:/a",
    "--tls-ca",
    tlsCa,
    "--",
    "sh",
    "-c",
    'test "$LEASEHOLD_CA" = "$0"',
    tlsCa,
  ]);
  assert.equal(inner.code, 0, inner.stderr);
  const missing = await server.line(["ls", "--tls-ca", join(folder, "none.pem")]);
  assert.equal(missing.code, 2);
  assertOneLine(missing, "a CA that is not there");

  const { cert, key } = authority.issue({ name: "lab-1" });
  put(join(folder, "cell.pem"), cert);
  put(join(folder, "cell.key"), key);
  const config = join(folder, "cell.json");
  const resources = [{ resource: "MEMORY:/lab/a", driver: "memory", options: { bytes: 64 } }];
  writeFileSync(config, JSON.stringify({ cell: "lab-1", tls: { cert: tlsCert, key: tlsKey }, resources }));
  const line = ["cell", "--config", config, "--tls-ca", tlsCa];
  const refused = await server.line(line);
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /A cell shows a client certificate/);
  const certificate = ["--tls-cert", join(folder, "cell.pem"), "--tls-key", join(folder, "cell.key")];
  const cell = server.begin([...line, ...certificate]);
  t.after(() => cell.child.kill("SIGKILL"));
  await until(
    () => (/is linked to https:.*1 of 1 resources are ready/.test(cell.output.stdout) ? true : null),
    "the link",
  );
  const granted = await server.json<{ leases: { coordinate: string }[] }>([
    "acquire",
    "MEMORY:/lab/a",
    "--tls-ca",
    tlsCa,
  ]);
  assert.match(granted.leases[0]?.coordinate ?? "", /^https:\/\//);
});

test("S5, M10: a key is not sent over plain http to another machine, unless --insecure says so", async () => {
  const url = "http://192.0.2.1:7117";
  const refused = await start(["ls", "--url", url], { env: { LEASEHOLD_KEY: "lhk_x" } }).ended;
  assert.equal(refused.code, 2);
  assertOneLine(refused, "a key in clear");
  assert.match(refused.stderr, /neither https nor on this machine.*--insecure or LEASEHOLD_INSECURE=1/);
  const offline = { LEASEHOLD_KEY: "lhk_x", LEASEHOLD_URL: url };
  const check = await start(["cell", "--check", "--config", "examples/cell/cell.json"], { env: offline }).ended;
  assert.doesNotMatch(check.stderr, /neither https/, "what sends nothing is not refused");
  const env = { LEASEHOLD_KEY: "lhk_x", LEASEHOLD_INSECURE: "1" };
  const sent = await start(["ls", "--url", url, "--timeout", "300ms"], { env }).ended;
  assert.doesNotMatch(sent.stderr, /neither https/, "it is only not there");
});

test("S5: the command line, guards and MCP find the token of a server that is its owner's alone", async (t) => {
  const state = mkdtempSync(join(tmpdir(), "leasehold-owned-"));
  process.env["LEASEHOLD_STATE"] = state;
  const server = await startHere({ port: 0, store: "memory", ownerOnly: true });
  t.after(async () => {
    await server.close();
    delete process.env["LEASEHOLD_STATE"];
    rmSync(state, { recursive: true, force: true });
  });
  const { url, port } = server.address;
  assert.equal(statSync(join(state, "owner", `127.0.0.1-${port}.json`)).mode & 0o777, 0o600);
  const env = { LEASEHOLD_STATE: state, LEASEHOLD_URL: url };
  assert.equal((await start(["ls"], { env }).ended).code, 0);
  assert.equal((await start(["run", "FILE:/a", "--", "true"], { env }).ended).code, 0);
  const backup = await start(["backup", join(state, "b.sqlite")], { env }).ended;
  assert.match(backup.stderr, /^(?!.*needs a credential)/, "the token was shown");
  const other = await start(["ls"], { env: { ...env, LEASEHOLD_STATE: `${state}/none` } }).ended;
  assert.equal(other.code, 2);
  assert.match(other.stderr, /its owner's alone/);
  const link = await start(["open", "--print"], { env }).ended;
  assert.match(link.stdout, /^http:\/\/127\.0\.0\.1:\d+\/#\/sign-in\/[\w-]{32}$/m);
  const asked = `${JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } } })}\n${JSON.stringify({ jsonrpc: "2.0", id: 2, method: "tools/call", params: { name: "list_leases", arguments: {} } })}\n`;
  const mcp = await start(["mcp"], { env, input: asked }).ended;
  assert.doesNotMatch(mcp.stdout, /unauthorized/, mcp.stdout);

  const project = await makeProject(url);
  t.after(() => project.remove());
  const payload = {
    session_id: "s1",
    cwd: project.root,
    tool_name: "Write",
    tool_input: { file_path: join(project.root, "a.txt"), content: "x" },
  };
  const let_ = await project.hook("claude", "PreToolUse", payload, { LEASEHOLD_STATE: state });
  assert.equal(let_.denied, null, let_.stdout);
});

test("M6: without keys, what would lock others out is not done without a word", async (t) => {
  const server = await startServer();
  t.after(() => server.stop());
  const lines = [
    ["keys", "create", "--role", "operator"],
    ["keys", "delete", "key_1"],
    ["token", "rotate"],
    ["tenants", "suspend", "default"],
  ];
  for (const line of lines) {
    const refused = await server.line(line);
    assert.equal(refused.code, 2, line.join(" "));
    assertOneLine(refused, line.join(" "));
    assert.match(refused.stderr, /say that this is meant with --yes\n$/);
  }
  const { key } = await server.json<{ key: string }>(["keys", "create", "--role", "operator", "--yes"]);
  const env = { LEASEHOLD_KEY: key };
  assert.equal(
    (await server.line(["keys", "create", "--role", "reader"], { env })).code,
    0,
    "with a key it is as ever",
  );
});

test("M6: doctor names the other people of a machine, and no accounts of services", () => {
  const passwords = [
    "root:x:0:0:root:/root:/bin/bash",
    "daemon:x:1:1::/usr/sbin:/usr/sbin/nologin",
    "me:x:1000:1000::/home/me:/bin/bash",
    "ann:x:1001:1001::/home/ann:/usr/bin/zsh",
    "svc:x:1002:1002::/srv:/usr/sbin/nologin",
    "nobody:x:65534:65534::/:/bin/sh",
    "",
  ].join("\n");
  assert.deepEqual(otherPeople(passwords, 1000), ["ann"]);
});
