/** Lists that are watched, by the real binary: lines in a pipe, JSON for programs, a screen on a terminal. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Client } from "../../src/sdk/client.ts";
import { binary, type Folder, makeFolder, type Running, type Server, start, startServer, until } from "./harness.ts";

let server: Server;
let folder: Folder;
let client: Client;
const children = new Set<ChildProcess>();
/** util-linux's `script` gives a program a terminal. */
const hasScript = spawnSync("script", ["--version"]).status === 0;

before(async () => {
  server = await startServer();
  folder = makeFolder();
  client = new Client({ url: server.url, transport: "http" });
});
after(async () => {
  for (const child of children) child.kill("SIGKILL");
  await client.close();
  await server.stop();
  folder.remove();
});

interface Line {
  readonly change: "is" | "new" | "changed" | "gone";
  readonly lease?: { readonly resource: string; readonly agent_id: string };
  readonly waiter?: { readonly agent_id: string; readonly state: string };
  readonly returning?: { readonly agent_id: string; readonly reason: string };
  readonly agent?: { readonly agent_id: string; readonly state: string };
  readonly activity?: string | null;
  readonly task?: { readonly task_id: string; readonly status: string };
}

function watch(args: readonly string[], at: Server = server): Running & { lines(): readonly Line[] } {
  const running = at.begin([...args, "--watch", "--json"]);
  children.add(running.child);
  const lines = () =>
    running.output.stdout
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line);
  return { ...running, lines };
}

async function stopped({ child, ended }: Running): Promise<void> {
  child.kill("SIGINT");
  const { code, stderr } = await ended;
  assert.deepEqual([code, stderr], [0, ""]);
}

const has = (watched: { lines(): readonly Line[] }, what: string, fits: (line: Line) => boolean) =>
  until(() => (watched.lines().some(fits) ? true : null), what);

const acquire = (agent: string, resource: string, rest: object = {}) =>
  client.call("acquire", { agent_id: agent, intents: [{ predicate: "MUTATES", resource }], ...rest });

test("ls --watch prints what is leased, and then each grant and end, however short it lasts", async () => {
  for (const agent of ["first", "quick"]) await client.call("register_agent", { agent_id: agent });
  await acquire("first", "X:/lines/a");
  const watched = watch(["ls", "X:/lines/**"]);
  await has(watched, "what is there", ({ change, lease }) => change === "is" && lease?.resource === "X:/lines/a");
  const rounds = 20;
  for (let n = 0; n < rounds; n++) {
    const { leases = [] } = (await acquire("quick", `X:/lines/${n}`)) as { leases?: readonly { id: string }[] };
    await client.call("release_lease", { lease_id: leases[0]?.id ?? "" });
  }
  await acquire("quick", "X:/elsewhere");
  const gone = ({ change, lease }: Line) => change === "gone" && lease?.agent_id === "quick";
  await until(() => (watched.lines().filter(gone).length === rounds ? true : null), "every end");
  const names = (kind: Line["change"]) =>
    watched.lines().flatMap(({ change, lease }) => (change === kind && lease !== undefined ? [lease.resource] : []));
  const all = Array.from({ length: rounds }, (_, n) => `X:/lines/${n}`);
  assert.deepEqual(names("new"), all, "in order, each once, and nothing that is elsewhere");
  assert.deepEqual(names("gone"), all);
  await stopped(watched);
});

test("ls --watch shows who waits, stands by, and comes back after DIE as what they are", async () => {
  for (const agent of ["w-old", "w-young", "w-dies"]) await client.call("register_agent", { agent_id: agent });
  await acquire("w-old", "X:/wait/held");
  await acquire("w-young", "X:/wait/held", { standby_ms: 50_000, hold_ms: 0 });
  const watched = watch(["ls", "X:/wait/**"]);
  await has(watched, "it stands by", ({ waiter }) => waiter?.agent_id === "w-young" && waiter.state === "STANDBY");
  await assert.rejects(acquire("w-dies", "X:/wait/held"), { code: "die" });
  await has(
    watched,
    "it comes back",
    ({ returning }) => returning?.agent_id === "w-dies" && returning.reason === "die",
  );
  await stopped(watched);
  const { stdout } = await server.line(["ls", "X:/wait/**", "--waiters"]);
  assert.match(stdout, /^MUTATES X:\/wait\/held\tw-young\tstands by\t/m);
  assert.match(stdout, /^\S.*\tw-dies\tcomes back\t/m);
});

test("agents --watch and tasks ls --watch print each state", async () => {
  await client.call("register_agent", { agent_id: "here" });
  const agents = watch(["agents"]);
  const tasks = watch(["tasks", "ls", "--type", "watched"]);
  await has(agents, "agents", ({ agent }) => agent?.agent_id === "here");
  await client.call("register_agent", { agent_id: "newcomer" });
  await acquire("newcomer", "X:/agents/one");
  const did = (state: string) => (line: Line) => line.agent?.agent_id === "newcomer" && line.agent.state === state;
  await has(agents, "it executes", did("EXECUTING"));
  await has(agents, "it works", (line) => line.agent?.agent_id === "newcomer" && line.activity === "working");
  const { task_id: id } = await client.call("create_task", { task_type: "watched", principal_ai: "me" });
  await has(tasks, "a new task", ({ task }) => task?.task_id === id && task.status === "queued");
  await client.call("create_task", { task_type: "other", principal_ai: "me" });
  await client.call("cancel_task", { task_id: id });
  await has(tasks, "its end", ({ task }) => task?.task_id === id && task.status === "canceled");
  assert.ok(tasks.lines().every(({ task }) => task?.task_id === id));
  await stopped(agents);
  await stopped(tasks);
});

for (const store of ["sqlite", "memory"] as const) {
  test(`ls --watch goes on through a restart of a server on ${store}, says so, and misses nothing`, async () => {
    const kept = store === "sqlite" ? ["--data", join(folder.path, "restarted")] : ["--store", "memory"];
    const one = await startServer(kept);
    const { port } = new URL(one.url);
    await one.json(["acquire", "X:/restart/before", "--agent", "before", "--ttl", "10m"]);
    const watched = watch(["ls"], one);
    await has(watched, "what is there", ({ lease }) => lease?.resource === "X:/restart/before");
    await one.stop();
    await until(() => (watched.output.stderr.includes("the connection broke") ? true : null), "it says so");
    const again = start(["serve", "--port", port, "--log-level", "warn", ...kept]);
    children.add(again.child);
    await until(() => (again.output.stdout.includes("listening") ? true : null), "it serves again");
    await one.json(["acquire", "X:/restart/after", "--agent", "after"]);
    await has(watched, "what came", ({ change, lease }) => change === "new" && lease?.resource === "X:/restart/after");
    const isGone = watched.lines().some(({ change, lease }) => change === "gone" && lease?.agent_id === "before");
    assert.equal(isGone, store === "memory");
    await until(() => (watched.output.stderr.includes("connected again") ? true : null), "it says that too");
    watched.child.kill("SIGINT");
    assert.equal((await watched.ended).code, 0);
    again.child.kill("SIGKILL");
    await again.ended;
  });
}

test("--watch without a server, or of a single agent, is refused as every command refuses", async () => {
  assert.equal((await start(["ls", "--watch", "--url", "http://127.0.0.1:9"]).ended).code, 6);
  assert.equal((await server.line(["agents", "here", "--watch"])).code, 2);
});

test("on a terminal --watch redraws in place, scrolls, tells that it is not live, and restores the screen", {
  skip: !hasScript,
}, async () => {
  const own = await startServer();
  await own.json(["acquire", `X:/${"folder/".repeat(12)}the-end.ts`, "--agent", "ann", "--ttl", "10m"]);
  const { PATH } = process.env;
  const line = `"${process.execPath}" "${binary}"`;
  const child = spawn("script", ["-qfec", `stty rows 10 cols 80; ${line} ls --watch; stty -a`, "/dev/null"], {
    env: { PATH, TERM: "xterm-256color", LEASEHOLD_URL: own.url },
  });
  children.add(child);
  let text = "";
  child.stdout.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const shows = (word: RegExp) => until(() => (word.test(text) ? true : null), `it shows ${word}`);
  await shows(/X:\/folder\/\S*…\S*the-end\.ts +MUTATES/);
  await shows(/live/);
  await own.json(["acquire", "X:/short", "--agent", "ben"]);
  await shows(/X:\/short/);
  for (let n = 0; n < 10; n++) await own.json(["acquire", `X:/many/${n}`, "--agent", "ben"]);
  await shows(/\d+ below; ↑ ↓ scroll, q quits/);
  child.stdin.write("G");
  await shows(/\d+ lines above/);
  await own.stop();
  await shows(/NOT LIVE for \S+: no server answers/);
  child.stdin.write("\u0003");
  await new Promise<void>((resolve) => child.once("close", () => resolve()));
  assert.ok(text.includes("\u001b[?1049h"));
  assert.match(text.slice(text.lastIndexOf("\u001b[?1049l")), /\bicanon\b/, "the terminal is as it was");
});
