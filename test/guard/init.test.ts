import assert from "node:assert/strict";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { startServer } from "../../src/server/start.ts";
import { clientOf } from "../server/harness.ts";
import { binary, type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, null);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});

const files = [
  ".leasehold.json",
  ".claude/settings.json",
  ".codex/hooks.json",
  ".codex/config.toml",
  ".cursor/hooks.json",
  ".cursor/mcp.json",
  ".gemini/settings.json",
  ".mcp.json",
  ".git/hooks/pre-commit",
];
const everything = ["claude", "codex", "cursor", "gemini", "git"];
const there = () => files.filter((path) => existsSync(join(project.root, path)));

test("newuser 2.5: init finds the tools that are there, says in about eight lines what it will do, and does it on yes", async () => {
  mkdirSync(join(project.root, ".cursor"));
  const asked = await project.cli(["init"]);
  assert.equal(asked.code, 2);
  assert.match(asked.stderr, /nothing was changed.*--yes/);
  const lines = asked.stdout.trimEnd().split("\n");
  assert.ok(lines.length <= 9, asked.stdout);
  assert.match(asked.stdout, /found +Cursor \(\.cursor\)/);
  assert.match(asked.stdout, /guards +\.cursor\/hooks\.json:/);
  assert.match(asked.stdout, /git +\.git\/hooks\/pre-commit/);
  assert.doesNotMatch(asked.stdout, /claude\/|gemini|codex/i);
  const diff = await project.cli(["init", "--diff"]);
  assert.match(diff.stdout, /^--- \/dev\/null\n\+\+\+ \.leasehold\.json\n\+\{\n\+ {2}"repository": "shop"/);
  assert.deepEqual(there(), []);
  rmSync(join(project.root, ".cursor"), { recursive: true });
});

test("init stages a conflict, shows what the second agent reads, ends with the server's state, and undo takes all of it out", async () => {
  const done = await project.cli(["init", ...everything, "--yes"]);
  assert.equal(done.code, 0, done.stderr);
  assert.deepEqual(there(), files);
  assert.match(
    done.stdout,
    /checked: two sessions wanted one file, and the second one read:\n +Leasehold: claude-check-1-\w+ holds FILE:\/shop\/\.leasehold-check (?:.|\n {2})*\nserver: answers at http.*\nnext: open two coding agents/,
  );
  const { body } = await fixture.get<{ leases: readonly unknown[] }>("/v1/leases");
  assert.deepEqual(body.leases, [], "the check leaves nothing behind");
  const { body: waiting } = await fixture.get<{ waits: readonly { agent_id?: string }[] }>("/v1/waits");
  const left = waiting.waits.filter(({ agent_id: id = "" }) => id.includes("-check-"));
  assert.deepEqual(left, [], "and nobody who comes back");
  assert.match((await project.cli(["init", ...everything, "--yes"])).stdout, /set up already/);
  const payload = payloadOf("claude", "PreToolUse", "s", project.root, "Edit", {
    file_path: join(project.root, "src/a.ts"),
  });
  assert.equal((await project.hook("claude", "PreToolUse", payload)).denied, null);
  const status = await project.cli(["guard", "status"]);
  assert.deepEqual([status.code, status.stdout.match(/installed/g)?.length], [0, 5]);

  const undone = await project.cli(["init", "--undo", "--yes"]);
  assert.equal(undone.code, 0, undone.stderr);
  assert.deepEqual(there(), []);
  assert.equal(project.git("status", "--porcelain"), "");
  assert.equal(existsSync(join(project.root, ".git/leasehold")), false, "newuser 2.13: its own records too");
  assert.deepEqual(existsSync(project.state) ? readdirSync(project.state) : [], []);
});

test("newuser 2.6: without a server init says that nothing can be written yet, and how to start one", async () => {
  const env = { LEASEHOLD_URL: "http://127.0.0.1:9" };
  const { code, stdout } = await project.cli(["init", "claude", "--no-mcp", "--yes"], env);
  assert.equal(code, 0);
  assert.match(
    stdout,
    /server: does not answer at http:\/\/127\.0\.0\.1:9; start it with `leasehold serve`: until then writes are denied/,
  );
  await project.cli(["init", "--undo", "--yes"], env);
});

test("newuser 2.9: a server that wants a key is said to want one, at a session's start and by the status", async (t) => {
  const locked = await startServer({ port: 0, store: "memory", shutdownTimeoutMs: 1_000, logLevel: "silent" });
  t.after(() => locked.close());
  const { post } = clientOf(locked.address.url);
  const { body } = await post<{ key: string }>("/v1/keys", { role: "operator" });
  const env = { LEASEHOLD_URL: locked.address.url };
  await project.cli(["guard", "install", "claude"]);
  const start = { session_id: "x", cwd: project.root, hook_event_name: "SessionStart", source: "startup" };
  const { shown } = await project.hook("claude", "SessionStart", start, env);
  assert.match(shown, /the server at .* refuses this session .*writes are denied\. Set LEASEHOLD_KEY/);
  assert.doesNotMatch(shown, /no server answers/);
  const status = await project.cli(["guard", "status"], env);
  assert.deepEqual([status.code, /needs a key: set LEASEHOLD_KEY/.test(status.stdout)], [7, true], status.stdout);
  assert.equal((await project.cli(["guard", "status"], { ...env, LEASEHOLD_KEY: body.key })).code, 0);
  await project.cli(["guard", "uninstall", "claude"]);
});

test("newuser 2.10: a configuration with comments is skipped and named, the others are set up, and status lists it", async () => {
  project.write(".gemini/settings.json", '{ // mine\n  "theme": "Dark"\n}\n');
  const { code, stderr } = await project.cli(["guard", "install", "claude", "gemini", "git"]);
  assert.deepEqual(
    [code, /skipped: \.gemini\/settings\.json is not a plain JSON object/.test(stderr)],
    [0, true],
    stderr,
  );
  const status = await project.cli(["guard", "status"]);
  assert.equal(status.code, 7);
  assert.match(status.stdout, /Claude Code +installed/);
  assert.match(status.stdout, /Gemini CLI +unreadable: \.gemini/);
  assert.match(status.stdout, /git +installed/);
  const alone = await project.cli(["guard", "install", "gemini"]);
  assert.deepEqual([alone.code, /not a plain JSON object/.test(alone.stderr)], [1, true]);
  const init = await project.cli(["init", "claude", "gemini", "--yes", "--no-check"]);
  assert.match(init.stdout, /skipped +\.gemini\/settings\.json/);
  await project.cli(["init", "--undo", "--yes"]);
  rmSync(join(project.root, ".gemini"), { recursive: true });
  assert.deepEqual(there(), []);
});

test("newuser 2.14: --name sets up a folder without git", async () => {
  const folder = join(project.root, "..", "plain");
  mkdirSync(folder);
  const args = [binary, "init", "claude", "--name", "zap", "--yes", "--no-mcp"];
  const { code, stdout, stderr } = await run(process.execPath, args, folder, project.env, "");
  assert.deepEqual([code, /FILE:\/zap\/\.leasehold-check/.test(stdout)], [0, true], stderr + stdout);
});

test("only the named tools are set up, and status reports what is missing or cannot work", async () => {
  const { code } = await project.cli(["init", "claude", "--no-mcp", "--yes"]);
  assert.deepEqual([code, there()], [0, [".leasehold.json", ".claude/settings.json"]]);
  const down = await project.cli(["guard", "status"], { LEASEHOLD_URL: "http://127.0.0.1:9" });
  assert.deepEqual([down.code, /does not answer/.test(down.stdout)], [7, true]);
  const whole = project.read(".claude/settings.json");
  project.write(
    ".claude/settings.json",
    project.read(".claude/settings.json").replace("guard hook claude Stop", "guard hook other Stop"),
  );
  const broken = await project.cli(["guard", "status"]);
  assert.deepEqual([broken.code, /incomplete: no hook for Stop/.test(broken.stdout)], [7, true]);
  project.write(".claude/settings.json", whole);
  for (const args of [
    ["guard", "install", "emacs"],
    ["init", "emacs"],
    ["guard", "install", "--dry-run", "--yes"],
  ]) {
    assert.equal((await project.cli(args)).code, 2, args.join(" "));
  }
  const dry = await project.cli(["guard", "uninstall", "--dry-run"]);
  assert.match(dry.stdout, /^--- \.claude\/settings\.json\n\+\+\+ \/dev\/null\n-/);
});

test("an agent can claim files before it works on them", async () => {
  project.write(".claude/settings.json", "{}");
  await project.cli(["guard", "install", "claude"]);
  const claim = (session: string) =>
    project.hook(
      "claude",
      "PreToolUse",
      payloadOf("claude", "PreToolUse", session, project.root, "Bash", { command: "leasehold guard claim src/b.ts" }),
    );
  assert.equal((await project.cli(["guard", "claim", "src/b.ts"])).code, 7);
  assert.equal((await claim("first")).denied, null);
  const shown = await project.cli(["guard", "claim", "src/b.ts"]);
  assert.deepEqual([shown.code, shown.stdout], [0, "FILE:/shop/src/b.ts is held by claude-first\n"]);
  assert.match((await claim("second")).denied ?? "", /claude-first holds/);
});
