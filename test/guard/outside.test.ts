import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Ended, type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, ["claude", "worktrees"]);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});

const localFile = ".claude/settings.local.json";

function worktreeHook(event: string, session: string, fields: object): Promise<Ended> {
  const { hooks } = JSON.parse(project.read(localFile)) as {
    readonly hooks: Readonly<Record<string, readonly { readonly hooks: readonly { readonly command: string }[] }[]>>;
  };
  const command = hooks[event]?.[0]?.hooks[0]?.command ?? "";
  const payload = { session_id: session, cwd: project.root, hook_event_name: event, ...fields };
  return run("/bin/sh", ["-c", command], project.root, project.env, JSON.stringify(payload));
}

test("Claude Code's worktrees are made one at a time: eight at once all arrive, with what git ignores", async () => {
  project.write(".gitignore", ".env\n");
  project.write(".env", "SECRET=1\n");
  project.write(".worktreeinclude", ".env\n");
  const names = Array.from({ length: 8 }, (_, index) => `feature-${index}`);
  const made = await Promise.all(names.map((name) => worktreeHook("WorktreeCreate", name, { name })));
  assert.deepEqual(
    made.map(({ code, stderr }) => ({ code, stderr })),
    names.map(() => ({ code: 0, stderr: "" })),
  );
  for (const [index, { stdout }] of made.entries()) {
    assert.equal(stdout, `${join(project.root, ".claude/worktrees", names[index] ?? "")}\n`);
    assert.equal(readFileSync(join(stdout.trim(), ".env"), "utf8"), "SECRET=1\n");
    assert.equal(readFileSync(join(stdout.trim(), "src/a.ts"), "utf8"), "src/a.ts\n");
  }
  const removed = await Promise.all(
    made.map(({ stdout }, index) => worktreeHook("WorktreeRemove", `r${index}`, { worktree_path: stdout.trim() })),
  );
  assert.deepEqual(
    removed.map(({ code, stderr }) => [code, stderr]),
    made.map(() => [0, ""]),
  );
  assert.ok(made.every(({ stdout }) => !existsSync(stdout.trim())));
  const { leases } = (await fixture.get<{ leases: readonly unknown[] }>("/v1/leases?resource=GIT:/**")).body;
  assert.equal(leases.length, 0);
});

test("a worktree's name that leads elsewhere, a base that is a flag and a folder that is not a worktree are refused", async () => {
  for (const fields of [{ name: "../../x" }, { name: "-x" }, {}, { name: "ok", base_ref: "--help" }]) {
    const { code, stdout } = await worktreeHook("WorktreeCreate", "bad", fields);
    assert.deepEqual([code, stdout], [1, ""], JSON.stringify(fields));
  }
  const { code, stderr } = await worktreeHook("WorktreeRemove", "bad", { worktree_path: project.root });
  assert.equal(code, 1);
  assert.match(stderr, /not a worktree of this repository/);
  assert.ok(existsSync(join(project.root, "src/a.ts")));
});

test("hooks for worktrees are the user's own, are named to be installed, and go with the rest", async () => {
  assert.doesNotMatch(project.read(".claude/settings.json"), /WorktreeCreate/);
  const other = await makeProject(fixture.server.address.url, []);
  assert.equal(existsSync(join(other.root, localFile)), false);
  writeFileSync(join(other.root, localFile), '{"permissions": {"allow": ["Bash(ls)"]}}');
  assert.equal((await other.cli(["guard", "install", "worktrees"])).code, 0);
  assert.match((await other.cli(["guard", "status"])).stdout, /worktrees +installed/);
  assert.equal((await other.cli(["guard", "uninstall"])).code, 0);
  assert.equal(other.read(localFile), '{"permissions": {"allow": ["Bash(ls)"]}}');
  other.remove();
});

test("a folder outside every repository is guarded once it is shared, and not after", async () => {
  const folder = join(project.env["HOME"] ?? "", ".claude");
  const memory = join(folder, "MEMORY.md");
  mkdirSync(folder, { recursive: true });
  writeFileSync(memory, "notes\n");
  const write = (session: string) =>
    project.hook(
      "claude",
      "PreToolUse",
      payloadOf("claude", "PreToolUse", session, project.root, "Write", { file_path: memory, content: "x" }),
    );
  const end = (session: string) =>
    project.hook("claude", "SessionEnd", payloadOf("claude", "SessionEnd", session, project.root, "", {}));

  assert.deepEqual(
    [(await write("one")).denied, (await write("two")).denied],
    [null, null],
    "outside, nobody is kept from it",
  );
  const shared = await project.cli(["guard", "share", folder]);
  assert.equal(shared.code, 0, shared.stderr);
  assert.match(shared.stdout, /FILE:\/claude\./);
  assert.equal((await write("one")).denied, null);
  assert.match((await write("two")).denied ?? "", /MEMORY\.md/);
  await end("one");
  assert.equal((await write("two")).denied, null);
  await end("two");

  assert.equal((await project.cli(["guard", "share", folder, "--stop"])).code, 0);
  assert.equal(existsSync(join(folder, ".leasehold.json")), false);
  const inside = await project.cli(["guard", "share", join(project.root, "src")]);
  assert.notEqual(inside.code, 0);
  assert.match(inside.stderr, /in the repository shop/);
});
