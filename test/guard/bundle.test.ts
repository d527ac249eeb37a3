import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { stageHook } from "../../scripts/hook-bundle.ts";
import { type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, null);
  const program = stageHook(join(project.state, "package"));
  const { code, stderr } = await project.cli(["guard", "install", "claude", "git", "--command", program]);
  assert.equal(code, 0, stderr);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});

const call = (event: string, session: string, name: string, input: object) =>
  project.hook("claude", event, payloadOf("claude", event, session, project.root, name, input));

test("the bundled hook answers like the source at every event of a session", async () => {
  assert.match(project.command("claude", "PreToolUse"), /state\/package\/bin\/leasehold-hook/);
  const file = { file_path: join(project.root, "src/a.ts") };
  const command = `node -e 'require("fs").writeFileSync("src/b.ts", "x")'`;
  for (const [event, name, input] of [
    ["SessionStart", "", {}],
    ["PreToolUse", "Read", file],
    ["PreToolUse", "Edit", file],
    ["PostToolUse", "Edit", file],
    ["PreToolUse", "Bash", { command }],
  ] as const) {
    const { code, denied, stderr } = await call(event, "one", name, input);
    assert.deepEqual([code, denied, stderr], [0, null, ""], event);
  }
  assert.match(
    (await call("PreToolUse", "two", "Edit", file)).denied ?? "",
    /claude-one holds FILE:\/shop\/src\/a\.ts/,
  );
  project.write("src/b.ts", "x");
  assert.match((await call("PostToolUse", "one", "Bash", { command })).shown, /also changed FILE:\/shop\/src\/b\.ts/);
  project.git("add", "src/b.ts");
  const commit = ["-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x"];
  const refused = await run("git", commit, project.root, project.env, "");
  assert.match(refused.stderr, /src\/b\.ts: claude-one/);
  for (const event of ["Stop", "SessionEnd"]) assert.equal((await call(event, "one", "", {})).code, 0, event);
  assert.equal((await call("PreToolUse", "two", "Edit", file)).denied, null);
  assert.match((await project.hook("claude", "PreToolUse", "{")).denied ?? "", /not JSON/);
});
