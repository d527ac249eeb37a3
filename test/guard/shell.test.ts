import assert from "node:assert/strict";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { type Answer, type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, ["claude", "git"]);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});
beforeEach(async () => {
  await fixture.post("/v1/revoke", { resource_prefix: "FILE:/shop", reason: "the next test" });
  project.git("checkout", "-q", "-f", "main");
  project.git("clean", "-fdq", "-e", ".claude");
});

const author = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
const hook = (event: string, session: string, toolName: string, input: object) =>
  project.hook("claude", event, payloadOf("claude", event, session, project.root, toolName, input));

/** As the agent's tool does: the hook before, the command, the hook after. */
async function bash(
  session: string,
  command: string,
): Promise<{ readonly before: Answer; readonly after: Answer | null; readonly stderr: string }> {
  const asked = await hook("PreToolUse", session, "Bash", { command });
  if (asked.denied !== null) return { before: asked, after: null, stderr: "" };
  // In a process of the session, as a tool does it.
  const { stderr } = await run("/bin/sh", ["-c", command], project.root, project.env, "");
  return { before: asked, after: await hook("PostToolUse", session, "Bash", { command }), stderr };
}
const hold = (agent: string, path: string) =>
  fixture.register(agent).then(() => fixture.grant(agent, `FILE:/shop/${path}`, { purpose: "a refactoring" }));

test("a write that the command's text does not show is found in the tree: on another's file it is a violation, reported and recorded", async () => {
  await hold("holder", "src/b.ts");
  const { before: asked, after: answer } = await bash(
    "sly",
    `node -e 'require("fs").writeFileSync("src/b.ts", "mine")'`,
  );
  assert.equal(asked.denied, null);
  assert.match(
    answer?.shown ?? "",
    /VIOLATION: that changed FILE:\/shop\/src\/b\.ts, which holder holds \(MUTATES, for "a refactoring"/,
  );
  assert.match(answer?.stdout ?? "", /"decision":"block"/);
  const { text } = await fixture.get("/v1/events?follow=false&since=0&types=lease.violated");
  assert.match(text, /"agent_id":"holder".*"claude-sly wrote FILE:\/shop\/src\/b\.ts"/, "its holder can hear of it");
  const { stdout } = await project.cli(["guard", "status", "--json"]);
  const { violations } = JSON.parse(stdout) as {
    readonly violations: readonly { readonly agent_id: string; readonly resource: string }[];
  };
  assert.deepEqual(violations.map(({ agent_id: agent, resource }) => [agent, resource]).at(-1), [
    "claude-sly",
    "FILE:/shop/src/b.ts",
  ]);
});

test("a lease that expired while the tool asked its user is acquired again, or the write is a violation", async () => {
  const input = { file_path: join(project.root, "src/a.ts") };
  await hook("PreToolUse", "asking", "Edit", input);
  await fixture.post("/v1/revoke", { agent_id: "claude-asking", reason: "as if its time had run out" });
  project.write("src/a.ts", "late");
  assert.match((await hook("PostToolUse", "asking", "Edit", input)).shown, /not leased before.*leased for you now/);
  await fixture.post("/v1/revoke", { agent_id: "claude-asking", reason: "again" });
  await hold("holder", "src/a.ts");
  assert.match((await hook("PostToolUse", "asking", "Edit", input)).shown, /VIOLATION.*holder holds/);
});

test("a write to a free file is leased for the session afterwards", async () => {
  const { after: told } = await bash("late", `node -e 'require("fs").writeFileSync("src/c.ts", "mine")'`);
  assert.match(told?.shown ?? "", /also changed FILE:\/shop\/src\/c\.ts.*leased for you now/);
  assert.match(
    (await hook("PreToolUse", "other", "Edit", { file_path: join(project.root, "src/c.ts") })).denied ?? "",
    /claude-late holds/,
  );
});

test("another agent's write in the meantime is not attributed to the command", async () => {
  const command = "node -e 0";
  await hook("PreToolUse", "runner", "Bash", { command });
  const input = { file_path: join(project.root, "src/b.ts") };
  assert.equal((await hook("PreToolUse", "editor", "Edit", input)).denied, null);
  project.write("src/b.ts", "by the editor");
  const amid = await hook("PostToolUse", "runner", "Bash", { command });
  assert.equal(amid.shown, "");
  await hook("PreToolUse", "runner", "Bash", { command });
  project.write("src/b.ts", "by the editor again");
  await hook("PostToolUse", "editor", "Edit", input);
  await project.hook("claude", "Stop", { session_id: "editor", cwd: project.root, hook_event_name: "Stop" });
  assert.equal((await hook("PostToolUse", "runner", "Bash", { command })).shown, "");
});

test("git commands that rewrite files lease the files that git reports as changed", async () => {
  project.git("checkout", "-q", "-b", `side-${process.pid}`);
  project.write("src/a.ts", "on the side");
  project.git("commit", "-qam", "side", "--no-verify");
  project.git("checkout", "-q", "main");
  await hold("holder", "src/a.ts");
  const blocked = await bash("switcher", `git checkout side-${process.pid}`);
  assert.match(blocked.before.denied ?? "", /holder holds FILE:\/shop\/src\/a\.ts/);
  project.write("src/b.ts", "dirty");
  await hold("holder-2", "src/b.ts");
  for (const command of ["git checkout -- src", "git restore src/b.ts", "git reset --hard", "git stash"]) {
    assert.match((await bash("switcher", command)).before.denied ?? "", /holder(-2)? holds/, command);
  }
  assert.equal((await bash("switcher", "git status")).before.denied, null);
});

test("a commit of files that others hold is refused, for both names of a rename; own and free files pass", async () => {
  await hold("holder", "src/b.ts");
  project.git("mv", "src/b.ts", "src/moved.ts");
  const commit = () => run("git", [...author, "commit", "-qm", "x"], project.root, project.env, "");
  const refused = await commit();
  assert.equal(refused.code, 1);
  assert.match(
    refused.stderr,
    /nothing is committed, because others hold\n {2}src\/b\.ts: holder \(MUTATES, for "a refactoring", \d+ s left\)/,
  );
  project.git("reset", "-q", "--hard");

  // By the agent itself through its tool: its own lease is not in its way.
  await hook("PreToolUse", "committer", "Edit", { file_path: join(project.root, "src/c.ts") });
  project.write("src/c.ts", "changed");
  project.git("add", "src/c.ts");
  const strange = await commit();
  assert.match(strange.stderr, /src\/c\.ts: claude-committer/, "to anybody else it is");
  assert.match(strange.stderr, /guard release SESSION.*git commit --no-verify/, "newuser 2.15: with the ways out");
  const own = await bash("committer", "git -c user.name=a -c user.email=a@example.com commit -qm own");
  assert.equal(own.stderr, "");
  assert.equal(project.git("log", "-1", "--format=%s").trim(), "own");
});

test("without a server a commit is refused, unless the repository's settings allow it, and then with a warning", async () => {
  project.write("src/a.ts", "x");
  project.git("add", "src/a.ts");
  const env = { ...project.env, LEASEHOLD_URL: "http://127.0.0.1:9" };
  const closed = await run("git", [...author, "commit", "-qm", "x"], project.root, env, "");
  assert.equal(closed.code, 1);
  assert.match(closed.stderr, /no server answers at http:\/\/127\.0\.0\.1:9 .*leasehold serve/);
  project.write(".leasehold.json", '{"unreachable": "open"}');
  const open = await run("git", [...author, "commit", "-qm", "x"], project.root, env, "");
  rmSync(join(project.root, ".leasehold.json"));
  assert.deepEqual([open.code, /UNGUARDED/.test(open.stderr)], [0, true], open.stderr);
});
