import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { Client } from "../../src/sdk/client.ts";
import { binary, type Server, startServer, until } from "./harness.ts";

let server: Server;
const terminals = new Set<ChildProcess>();

before(async () => {
  server = await startServer();
});
after(async () => {
  // A failed test leaves its program running, and this process would wait for it.
  for (const child of terminals) child.kill();
  await server.stop();
});

/** util-linux's `script` gives a program a terminal. */
const hasScript = spawnSync("script", ["--version"]).status === 0;

function inTerminal(command: string) {
  const { PATH } = process.env;
  const env = { PATH, TERM: "xterm-256color", LEASEHOLD_URL: server.url };
  const child = spawn("script", ["-qfec", `stty rows 24 cols 100; ${command}; stty -a`, "/dev/null"], { env });
  terminals.add(child);
  const output = { text: "" };
  child.stdout.on("data", (chunk: Buffer) => (output.text += chunk.toString()));
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const shows = (word: string | RegExp) =>
    until(() => (output.text.match(word) === null ? null : true), `it shows ${word}`);
  return { child, output, ended, shows, press: (keys: string) => child.stdin.write(keys) };
}

const line = `"${process.execPath}" "${binary}"`;

test("top shows leases live, filters, sorts, revokes after a confirmation, and restores the terminal", {
  skip: !hasScript,
}, async () => {
  await server.json(["acquire", "X:/top/a", "--agent", "ann", "--purpose", "first"]);
  await server.json(["acquire", "X:/top/b", "--agent", "ben", "--purpose", "second"]);
  const top = inTerminal(`${line} top --interval 200ms`);
  await top.shows(/ann +\S*working\S* +.*MUTATES X:\/top\/a {2}"first"/);
  await top.shows(/█/);
  top.press("/ben\r");
  await top.shows(/only "ben"/);
  top.press("j");
  top.press("r");
  await top.shows(/revoke MUTATES X:\/top\/b of ben, which loses it at once\? y\/n/);
  top.press("n");
  await top.shows(/not revoked/);
  top.press("r");
  top.press("y");
  await top.shows(/mrevoked/);
  top.press("s");
  await top.shows(/sorted by agent/);
  top.press("q");
  await top.ended;
  const { text } = top.output;
  assert.ok(text.includes("\u001b[?1049h") && text.includes("\u001b[?1049l"), "the screen is taken and given back");
  assert.ok(text.lastIndexOf("\u001b[?25h") > text.lastIndexOf("\u001b[?25l"), "the cursor is back");
  assert.match(text.slice(text.lastIndexOf("\u001b[?1049l")), /\bicanon\b/, "the terminal is as it was");
  const { leases } = await server.json<{ leases: { resource: string }[] }>(["ls", "X:/top/**"]);
  assert.deepEqual(
    leases.map(({ resource }) => resource),
    ["X:/top/a"],
  );
});

test("top tells the five states apart, and shows standbys and agents that died as what they are", {
  skip: !hasScript,
}, async () => {
  const client = new Client({ url: server.url });
  // Of two agents the one that registered first is the older: it waits where the younger dies.
  for (const id of ["w-elder", "w-holder", "w-standby", "w-died", "w-paused", "w-idle", "w-lost"]) {
    await client.call("register_agent", { agent_id: id });
  }
  const intents = [{ predicate: "MUTATES", resource: "X:/w/one" }] as const;
  await client.call("acquire", { agent_id: "w-holder", intents, ttl_ms: 60_000, purpose: "holding" });
  await client.call("acquire", { agent_id: "w-elder", intents, wait_timeout_ms: 60_000 });
  await client.call("acquire", { agent_id: "w-standby", intents, standby_ms: 50_000 });
  await assert.rejects(client.call("acquire", { agent_id: "w-died", intents }));
  await client.call("pause_agent", { agent_id: "w-paused" });
  await client.call("acquire", { agent_id: "w-lost", intents: [{ predicate: "MUTATES", resource: "X:/w/two" }] });
  await client.call("revoke", { agent_id: "w-lost", reason: "for the test" });
  const top = inTerminal(`NO_COLOR=1 ${line} top --interval 200ms`);
  await top.shows(/w-holder +working +█+\S* +\S+ +MUTATES X:\/w\/one {2}"holding"/);
  await top.shows(/w-elder +blocked +for \S+ +wants MUTATES X:\/w\/one/);
  await top.shows(/← w-holder holds MUTATES X:\/w\/one, \S+ left {2}"holding"/);
  await top.shows(/w-standby +blocked +for \S+ +stands by for MUTATES X:\/w\/one/);
  await top.shows(/w-died +blocked +for \S+ +died, (due back|back in \S+): X:\/w\/one/);
  await top.shows(/w-paused +person +for \S+ +paused by an operator/);
  await top.shows(/w-idle +idle/);
  await top.shows(/w-lost +lost/);
  await client.call("acquire", { agent_id: "w-idle", intents: [{ predicate: "MUTATES", resource: "X:/w/three" }] });
  await top.shows(/granted \d\.\d\/s/);
  top.press("q");
  await top.ended;
});

test("top restores the terminal when a signal ends it", { skip: !hasScript }, async () => {
  const top = inTerminal(`sh -c 'echo pid=$$; exec ${line} top --interval 200ms'`);
  await top.shows(/\d+ working/);
  process.kill(Number(/pid=(\d+)/.exec(top.output.text)?.[1]), "SIGTERM");
  await top.ended;
  const { text } = top.output;
  assert.match(text.slice(text.lastIndexOf("\u001b[?1049l")), /\bicanon\b/, "the terminal is as it was");
});

test("tables and colours are for terminals only, NO_COLOR is respected, and --json is JSON everywhere", {
  skip: !hasScript,
}, async () => {
  await server.json(["acquire", "X:/tables", "--agent", "tab"]);
  const coloured = inTerminal(`${line} ls X:/tables`);
  await coloured.ended;
  assert.match(coloured.output.text, /RESOURCE[\s\S]*LEFT[\s\S]*X:\/tables/);
  assert.ok(coloured.output.text.includes("\u001b[32m"), "the time left is green");
  const plain = inTerminal(`NO_COLOR=1 ${line} ls X:/tables`);
  await plain.ended;
  assert.match(plain.output.text, /RESOURCE +PREDICATE/);
  assert.ok(!plain.output.text.includes("\u001b["));
  const json = inTerminal(`${line} ls X:/tables --json`);
  await json.ended;
  assert.match(json.output.text, /^\{"leases":\[\{"id":/);
});

test("top --json prints one snapshot", async () => {
  const snapshot = await server.json<Record<string, unknown>>(["top"]);
  assert.deepEqual(Object.keys(snapshot), ["overview", "agents", "waits", "has_more"]);
});
