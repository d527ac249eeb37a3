import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { allowServer } from "../../src/guard/settings.ts";
import { binary, type Fixture, hookScript, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, ["claude", "codex", "cursor", "gemini"]);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});

const nowhere = { LEASEHOLD_URL: "http://127.0.0.1:9" };
const edit = (session: string) =>
  payloadOf("claude", "PreToolUse", session, project.root, "Edit", { file_path: join(project.root, "src/a.ts") });
const befores = [
  ["claude", "PreToolUse", "Edit"],
  ["codex", "PreToolUse", "Edit"],
  ["cursor", "preToolUse", "Write"],
  ["gemini", "BeforeTool", "write_file"],
] as const;

test("without a server every tool's write is denied with the command to run; reads and read-only commands are not", async () => {
  const each = befores.map(async ([tool, event, name]) => {
    const payload = payloadOf(tool, event, "down", project.root, name, {
      file_path: join(project.root, "src/a.ts"),
      content: "",
    });
    const { denied, code } = await project.hook(tool, event, payload, nowhere);
    assert.equal(code, 0);
    assert.match(denied ?? "", /no server answers at http:\/\/127\.0\.0\.1:9 .*`leasehold serve`/, tool);
  });
  await Promise.all(each);
  const shell = async (session: string, command: string) => {
    const payload = payloadOf("claude", "PreToolUse", session, project.root, "Bash", { command });
    return (await project.hook("claude", "PreToolUse", payload, nowhere)).denied;
  };
  // A session with leases has to renew them, and may still read.
  assert.equal((await project.hook("claude", "PreToolUse", edit("cut-off"))).denied, null);
  for (const session of ["down", "cut-off"]) {
    assert.equal(await shell(session, "ls && cat src/a.ts"), null);
    assert.equal(await shell(session, "nohup npx leasehold serve &"), null, "what helps must be possible");
    assert.match((await shell(session, "npm test")) ?? "", /no server answers/, "it may write anything");
  }
  const start = await project.hook(
    "claude",
    "SessionStart",
    { session_id: "down", cwd: project.root, hook_event_name: "SessionStart" },
    nowhere,
  );
  assert.match(start.shown, /no server answers.*writes are denied/);
});

test("where the repository's settings say open, a write without a server is allowed with a warning", async () => {
  project.write(".leasehold.json", '{"unreachable": "open"}');
  const { denied, shown } = await project.hook("claude", "PreToolUse", edit("open"), nowhere);
  project.write(".leasehold.json", "{}");
  assert.equal(denied, null);
  assert.match(shown, /UNGUARDED/);
});

test("a server that never answers, or answers nonsense, counts as unavailable; input that does not end is not waited for", async () => {
  const silent = createServer(() => undefined).listen(0, "127.0.0.1");
  const strange = createServer((_request, response) => response.end("<html>")).listen(0, "127.0.0.1");
  await Promise.all([silent, strange].map((one) => new Promise((resolve) => one.once("listening", resolve))));
  // Through the script such a tool gets its no from curl's limit (shell-hook.test.ts).
  const byNode = { ...project.env, LEASEHOLD_HELPER: "off" };
  const open = run("/bin/sh", ["-c", project.command("claude", "PreToolUse")], project.root, byNode, null);
  const answers = await Promise.all(
    [silent, strange].map((one, index) =>
      project.hook("claude", "PreToolUse", edit(`strange-${index}`), {
        LEASEHOLD_URL: `http://127.0.0.1:${(one.address() as AddressInfo).port}`,
      }),
    ),
  );
  for (const one of [silent, strange]) {
    one.closeAllConnections();
    one.close();
  }
  assert.match(answers[0]?.denied ?? "", /no answer within/);
  assert.match(answers[1]?.denied ?? "", /is not Leasehold/);
  assert.match((await open).stdout, /did not end within 3 s/);
});

test("an invalid payload is denied before a write, in the tool's own format, and never crashes the hook", async () => {
  const payloads = [
    "",
    "{",
    "null",
    "[]",
    '"x"',
    "{}",
    '{"session_id": 1}',
    '{"session_id": "x"}',
    '{"session_id":"x","tool_name":"Edit"}',
    '{"session_id":"x","tool_name":"Edit","tool_input":[]}',
    '{"session_id":"x","tool_name":"Edit","tool_input":{"file_path":""}}',
    '{"session_id":"x","tool_name":"apply_patch","tool_input":{"command":"no patch"}}',
    '{"session_id":"x","tool_name":"Bash","tool_input":{"command":5}}',
    "\u0000\u0001",
  ];
  const rest = [...payloads.entries()];
  const work = async (): Promise<void> => {
    for (let next = rest.shift(); next !== undefined; next = rest.shift()) {
      const [index, payload] = next;
      const [tool, event] = befores[index % befores.length] ?? befores[0];
      const { denied, code, stderr } = await project.hook(tool, event, payload);
      assert.deepEqual([code, stderr], [0, ""], payload);
      assert.match(denied ?? "", /^Leasehold: /, `${tool} ${payload}`);
    }
  };
  await Promise.all([work(), work(), work()]);
  const later = await project.hook("claude", "PostToolUse", "{");
  assert.equal(later.code, 1, "after a write there is nothing to deny");
  assert.match(later.stderr, /^leasehold: .*not JSON/);
});

test("unknown tools of a coding agent pass; unknown events and coding agents are refused", async () => {
  const unknown = payloadOf("claude", "PreToolUse", "s", project.root, "WebSearch", { query: "x" });
  assert.deepEqual([(await project.hook("claude", "PreToolUse", unknown)).stdout], ["{}\n"]);
  for (const args of [["claude", "Dance"], ["emacs", "PreToolUse"], ["claude"], [], ["git", "dance"]]) {
    const { code, stderr, stdout } = await run(
      process.execPath,
      [binary, "guard", "hook", ...args],
      project.root,
      project.env,
      "{}",
    );
    assert.ok(code === 2 || (args[0] === "git" && code === 1), args.join(" "));
    assert.match(stderr, /^leasehold: ".*" is not an? .*one of/, args.join(" "));
    assert.equal(stdout, "");
  }
});

test("newuser 2.4: people without Leasehold work on: their hooks pass, and a session's start says one sentence", async () => {
  const without = (event: string) =>
    project.command("claude", event).replaceAll(hookScript, join(project.state, "gone"));
  const pass = await run("/bin/sh", ["-c", without("PreToolUse")], project.root, project.env, "{}");
  assert.deepEqual([pass.code, pass.stdout, pass.stderr], [0, "", ""]);
  const start = await run("/bin/sh", ["-c", without("SessionStart")], project.root, project.env, "{}");
  const { systemMessage } = JSON.parse(start.stdout) as { readonly systemMessage: string };
  assert.match(systemMessage, /^This repository is guarded by Leasehold, which is not installed here: [^.]*\.$/);
});

test("newuser 2.4: a hook that is there and cannot start denies a write, and never a read", async () => {
  const broken = join(project.state, "broken");
  mkdirSync(project.state, { recursive: true });
  writeFileSync(broken, "#!/bin/sh\nexit 1\n", { mode: 0o755 });
  const { hooks } = JSON.parse(project.read(".claude/settings.json")) as {
    readonly hooks: Readonly<Record<string, readonly { matcher: string; hooks: readonly { command: string }[] }[]>>;
  };
  for (const [matcher, code] of [
    ["Read", 0],
    ["Edit", 2],
  ] as const) {
    const entry = hooks["PreToolUse"]?.find((one) => new RegExp(`^(?:${one.matcher})$`).test(matcher));
    const command = (entry?.hooks[0]?.command ?? "").replaceAll(hookScript, broken);
    assert.equal((await run("/bin/sh", ["-c", command], project.root, project.env, "{}")).code, code, matcher);
  }
});

test("a very large write is guarded, one beyond the limit is denied", async () => {
  const content = "x".repeat(8 * 2 ** 20);
  const large = payloadOf("claude", "PreToolUse", "large", project.root, "Write", {
    file_path: join(project.root, "src/large.ts"),
    content,
  });
  assert.equal((await project.hook("claude", "PreToolUse", large)).denied, null);
  const beyond = await project.hook("claude", "PreToolUse", `{"session_id":"${"x".repeat(65 * 2 ** 20)}"}`);
  assert.match(beyond.denied ?? "", /larger than 64 MiB/);
});

test("an invalid settings file denies with what to write instead", async () => {
  const wrong = [
    ["{", /not a JSON object/],
    ['{"unreachable": "maybe"}', /"unreachable" in \.leasehold\.json .*"closed", "open"/],
    ['{"ttl_ms": "long"}', /"ttl_ms"/],
    ['{"repository": "a/b"}', /"repository"/],
    ['{"scope": "planet"}', /"scope"/],
  ] as const;
  for (const [text, reason] of wrong) {
    project.write(".leasehold.json", text);
    assert.match((await project.hook("claude", "PreToolUse", edit("settings"))).denied ?? "", reason, text);
  }
  project.write(".leasehold.json", "{}");
});

test("L5: a server that a repository names elsewhere gets nothing before its user allows it, and then not the key", async (t) => {
  const seen: (string | undefined)[] = [];
  const spy = createServer((request, response) => {
    seen.push(request.headers.authorization);
    response.end("{}");
  }).listen(0, "127.0.0.1");
  t.after(() => {
    project.write(".leasehold.json", "{}");
    spy.closeAllConnections();
    spy.close();
  });
  await new Promise((resolve) => spy.once("listening", resolve));
  const { port } = spy.address() as AddressInfo;
  // By a name that is not a loopback address, and yet leads here.
  const url = `http://0.0.0.0:${port}`;
  project.write(".leasehold.json", JSON.stringify({ url }));
  const env = { LEASEHOLD_URL: "", LEASEHOLD_KEY: "secret" };
  const refused = await project.hook("claude", "PreToolUse", edit("spied"), env);
  assert.match(
    refused.denied ?? "",
    /names a server that is not on this machine.*leasehold guard allow http:\/\/0\.0\.0\.0/,
  );
  const start = { session_id: "spied", cwd: project.root, hook_event_name: "SessionStart", source: "startup" };
  await project.hook("claude", "SessionStart", start, env);
  assert.match((await project.cli(["guard", "status"], env)).stderr, /names a server that is not on this machine/);
  assert.equal((await project.cli(["guard", "uninstall", "--dry-run"], env)).code, 0, "guards can be taken out");
  // An agent has no terminal, and so cannot allow it.
  const alone = await project.cli(["guard", "allow", url], env);
  assert.deepEqual(
    [alone.code === 0, /there is no terminal to ask at/.test(alone.stderr)],
    [false, true],
    alone.stderr,
  );
  assert.deepEqual(seen, []);
  assert.equal(allowServer(`${url}/`, { LEASEHOLD_STATE: project.state }), url);
  assert.throws(() => allowServer("ftp://x", { LEASEHOLD_STATE: project.state }), /is not an address/);
  await project.hook("claude", "PreToolUse", edit("spied"), env);
  assert.deepEqual([seen.length > 0, seen.filter((one) => one !== undefined)], [true, []]);
});
