import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { binary, type Server, startServer, until } from "./harness.ts";

let server: Server;

before(async () => {
  server = await startServer();
});
after(() => server.stop());

/** util-linux's `script` gives a program a terminal. */
const hasScript = spawnSync("script", ["--version"]).status === 0;

function inTerminal(command: string) {
  const { PATH } = process.env;
  const env = { PATH, TERM: "xterm-256color", LEASEHOLD_URL: server.url };
  const child = spawn("script", ["-qfec", `stty rows 24 cols 100; ${command}; stty -a`, "/dev/null"], { env });
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
  await top.shows(/X:\/top\/a +ann +first/);
  await top.shows(/█/);
  top.press("/ben\r");
  await top.shows(/only "ben"/);
  top.press("j");
  top.press("r");
  await top.shows(/revoke MUTATES X:\/top\/b of ben\? y\/n/);
  top.press("y");
  await top.shows(/revoked/);
  top.press("s");
  await top.shows(/sorted by resource/);
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

test("top restores the terminal when a signal ends it", { skip: !hasScript }, async () => {
  const top = inTerminal(`sh -c 'echo pid=$$; exec ${line} top --interval 200ms'`);
  await top.shows(/nobody waits/);
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
  const look = await server.json<Record<string, unknown>>(["top"]);
  assert.deepEqual(Object.keys(look), ["leases", "waiters", "tasks", "counts", "has_more"]);
});
