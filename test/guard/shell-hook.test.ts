/** The hook that is a shell script: that it works without Node, and what makes it leave a call to Node. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { stageHook } from "../../scripts/hook-bundle.ts";
import { type Ended, type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
before(async () => {
  fixture = await serveGuards();
});
after(() => fixture?.close());

interface Place {
  readonly project: Project;
  readonly script: string;
  /** With a Node that ends with 99 and prints what it gets: only the script itself can answer. */
  alone(session: string, more?: Readonly<Record<string, string>>, input?: string): Promise<Ended>;
}

/** A project with a helper, which the script has found. */
async function makePlace(t: TestContext): Promise<Place> {
  const project = await makeProject(fixture.server.address.url, null);
  t.after(() => project.remove());
  const [, script = ""] = stageHook(join(project.state, "package")).split(" ");
  const stand = join(project.state, "node");
  writeFileSync(stand, "#!/bin/sh\nprintf 'node got '\ncat\nexit 99\n", { mode: 0o755 });
  const hook = (node: string, session: string, more = {}, input: string = payload(project, session)) =>
    run(
      script,
      ["guard", "hook", "claude", "PreToolUse"],
      project.root,
      { ...project.env, LEASEHOLD_NODE: node, ...more },
      input,
    );
  const place = { project, script, alone: (...args: Parameters<Place["alone"]>) => hook(stand, ...args) };
  await hook(process.execPath, "one");
  while (!readdirSync(project.state).includes("helper") || !hasPlace(project)) {
    await hook(process.execPath, "one");
    await pause(50);
  }
  return place;
}

const hasPlace = ({ state }: Project) => readdirSync(join(state, "helper")).some((name) => name.startsWith("at+"));
const payload = ({ root }: Project, session: string) =>
  JSON.stringify(payloadOf("claude", "PreToolUse", session, root, "Edit", { file_path: join(root, "src/a.ts") }));

test("once a helper runs, hooks are answered without Node, in the words that Node's hook has", async (t) => {
  const { alone, project, script } = await makePlace(t);
  assert.deepEqual(await alone("one"), { code: 0, stdout: "{}\n", stderr: "" });
  const { code, stdout } = await alone("two");
  assert.equal(code, 0);
  assert.match(stdout, /"permissionDecision":"deny".*claude-one holds FILE:\/shop\/src\/a\.ts/);
  assert.match((await alone("two", {}, "{")).stdout, /"deny".*not JSON/);
  const env = { ...project.env, LEASEHOLD_NODE: "/bin/false" };
  const unknown = await run(script, ["guard", "hook", "claude", "Nonsense"], project.root, env, "{}");
  assert.equal(unknown.code, 2, "a no without words of the tool's own");
  assert.match(unknown.stderr, /"Nonsense" is not an event of claude/);
});

test("a tool that gives up on its hook and ends the script, but not curl, has run unseen, which is reported", async (t) => {
  const { alone, project, script } = await makePlace(t);
  await alone("holder");
  project.write(".leasehold.json", '{"wait_ms": 3000}');
  const env = { ...project.env, LEASEHOLD_NODE: "/bin/false" };
  const child = spawn(script, ["guard", "hook", "claude", "PreToolUse"], { cwd: project.root, env });
  child.stdin.end(payload(project, "impatient"));
  await pause(1_500);
  child.kill("SIGKILL");
  const log = join(project.root, ".git/leasehold/violations.log");
  for (let tries = 0; tries < 100 && !existsSync(log); tries++) await pause(100);
  assert.match(readFileSync(log, "utf8"), /impatient/);
});

test("where nobody listens, Node gets all of the input", async (t) => {
  const { alone, project } = await makePlace(t);
  const [name = ""] = readdirSync(join(project.state, "helper")).filter((one) => one.startsWith("at+"));
  const left = join(project.state, "left");
  writeFileSync(left, "");
  writeFileSync(join(project.state, "helper", name), `${left}\n`);
  const input = payload(project, "one");
  const { code, stdout } = await alone("one", {}, input);
  assert.deepEqual([code, stdout], [99, `node got ${input}`]);
});

test("a helper that ends in the middle of a call has allowed nothing", async (t) => {
  const { alone, project } = await makePlace(t);
  const [name = ""] = readdirSync(join(project.state, "helper")).filter((one) => one.startsWith("at+"));
  const socket = join(project.state, "s");
  const server = createServer((connection) => connection.once("data", () => connection.destroy()));
  t.after(() => server.close());
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  writeFileSync(join(project.state, "helper", name), `${socket}\n`);
  const { code, stdout, stderr } = await alone("one");
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /the guard's helper gave no answer/);
});

test("a folder that others can write in, a program that is newer, and odd values are left to Node", async (t) => {
  const { alone, project, script } = await makePlace(t);
  const isAnswered = async (more = {}) => (await alone("one", more)).code === 0;
  assert.equal(await isAnswered(), true);
  for (const mode of [0o770, 0o702]) {
    chmodSync(join(project.state, "helper"), mode);
    assert.equal(await isAnswered(), false, mode.toString(8));
  }
  chmodSync(join(project.state, "helper"), 0o700);
  for (const LEASEHOLD_TENANT of ['a"b', "a\\b", "a\nb"])
    assert.equal(await isAnswered({ LEASEHOLD_TENANT }), false, LEASEHOLD_TENANT);
  assert.equal(await isAnswered({ LEASEHOLD_HELPER: "off" }), false);
  assert.equal(await isAnswered({ PATH: join(project.state, "empty") }), false, "no curl");
  assert.equal(await isAnswered(), true);
  const later = Date.now() / 1_000 + 5;
  utimesSync(script, later, later);
  assert.equal(await isAnswered(), false, "an update");
});

test("the key is not among the arguments of curl, and reaches the server with spaces and letters as they are", async (t) => {
  const { alone, project } = await makePlace(t);
  const tools = join(project.state, "tools-of-test");
  mkdirSync(tools);
  const log = join(project.state, "arguments");
  writeFileSync(join(tools, "curl"), `#!/bin/sh\nprintf '%s\\n' "$@" >${log}\nexec /usr/bin/curl "$@"\n`, {
    mode: 0o755,
  });
  const { code, stdout } = await alone("three", {
    PATH: `${tools}:${project.env["PATH"]}`,
    LEASEHOLD_KEY: "lhk_secret",
    LEASEHOLD_URL: "http://127.0.0.1:1/ ä",
  });
  assert.equal(code, 0);
  assert.match(stdout, /127\.0\.0\.1:1/, "the address was handed over");
  assert.ok(existsSync(log));
  assert.doesNotMatch(readFileSync(log, "utf8"), /secret|127\.0\.0\.1:1/);
});

/** A tool that leaves its pipe open is answered then, and not before: curl does not look at an answer while it reads. */
test("the script waits a little longer than the helper takes at most, and a coding agent waits longer than the script", () => {
  const seconds = Number(/--max-time (\d+)/.exec(readFileSync("bin/leasehold-hook", "utf8"))?.[1]);
  const helperMs = Number(
    /answerMsMax = ([\d_]+)/.exec(readFileSync("src/guard/hook-run.ts", "utf8"))?.[1]?.replaceAll("_", ""),
  );
  const entries = JSON.parse(readFileSync("plugin/hooks/hooks.json", "utf8")) as {
    readonly hooks: { readonly PreToolUse: readonly { readonly hooks: readonly { readonly timeout: number }[] }[] };
  };
  const toolSeconds = entries.hooks.PreToolUse[0]?.hooks[0]?.timeout ?? 0;
  assert.ok(
    helperMs > 0 && helperMs < seconds * 1_000 && seconds < toolSeconds,
    `${helperMs} ms, ${seconds} s, ${toolSeconds} s`,
  );
});

test("the script hands over every variable that guards read", () => {
  const script = readFileSync("bin/leasehold-hook", "utf8");
  const folders = ["src/guard", "src/guard/resident", "src/names", "src/trust"];
  const names = folders
    .flatMap((folder) => readdirSync(folder).map((name) => join(folder, name)))
    .filter((path) => path.endsWith(".ts") && !path.endsWith(".test.ts"))
    .flatMap((path) => [...readFileSync(path, "utf8").matchAll(/\b(?:LEASEHOLD_[A-Z_]+|XDG_[A-Z_]+_HOME)\b/g)])
    .map(([name]) => name);
  /** Read by the script itself. */
  const own = ["LEASEHOLD_HELPER", "LEASEHOLD_HOOK"];
  const missing = [...new Set(names)].filter((name) => !own.includes(name) && !script.includes(`add ${name} "`));
  assert.deepEqual(missing, []);
});
