import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Fixture, makeProject, type Project, payloadOf, serveGuards } from "./harness.ts";

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
const there = () => files.filter((path) => existsSync(join(project.root, path)));

test("init shows the change, does nothing without confirmation, installs with it, and can undo it", async () => {
  const shown = await project.cli(["init"]);
  assert.equal(shown.code, 2);
  assert.match(shown.stdout, /^--- \/dev\/null\n\+\+\+ \.leasehold\.json\n\+\{\n\+ {2}"repository": "shop"/);
  assert.match(shown.stderr, /nothing was changed.*--yes/);
  assert.deepEqual(there(), []);

  const done = await project.cli(["init", "--yes"]);
  assert.equal(done.code, 0, done.stderr);
  assert.deepEqual(there(), files);
  assert.match((await project.cli(["init", "--yes"])).stdout, /set up already/);
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
  project.write(".claude/settings.json", "{ // mine\n}");
  const commented = await project.cli(["guard", "install", "claude"]);
  assert.deepEqual([commented.code, /not a plain JSON object/.test(commented.stderr)], [1, true]);
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
