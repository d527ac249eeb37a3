import assert from "node:assert/strict";
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import type { GuardedTool } from "../../src/guard/payload.ts";
import type { WireLease } from "../server/wire-types.ts";
import { type Answer, type Fixture, makeProject, type Project, payloadOf, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url);
  mkdirSync(join(project.root, "deep"));
});
after(async () => {
  project?.remove();
  await fixture?.close();
});
beforeEach(() => fixture.post("/v1/revoke", { resource_prefix: "FILE:/shop", reason: "the next test" }));

const at = (path: string) => join(project.root, path);
const befores = { claude: "PreToolUse", codex: "PreToolUse", cursor: "preToolUse", gemini: "BeforeTool" } as const;

async function asked(tool: GuardedTool, session: string, name: string, input: object): Promise<Answer> {
  const payload = payloadOf(tool, befores[tool], session, project.root, name, input);
  return await project.hook(tool, befores[tool], payload);
}

async function heldBy(agentId: string): Promise<readonly string[]> {
  const { body } = await fixture.get<{ leases: readonly WireLease[] }>(`/v1/leases?limit=100&agent_id=${agentId}`);
  return body.leases.map(({ predicate, resource }) => `${predicate} ${resource.slice("FILE:/shop/".length)}`).sort();
}

const patch = (...lines: readonly string[]) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");

/** The payloads with which each tool writes, and the leases that they need. */
const shapes: () => Readonly<
  Record<GuardedTool, readonly (readonly [name: string, input: object, leased: readonly string[]])[]>
> = () => ({
  claude: [
    ["Edit", { file_path: at("src/a.ts"), old_string: "a", new_string: "b", replace_all: false }, ["MUTATES src/a.ts"]],
    ["MultiEdit", { file_path: at("src/a.ts"), edits: [{ old_string: "a", new_string: "b" }] }, ["MUTATES src/a.ts"]],
    ["Write", { file_path: at("src/new/x.ts"), content: "x" }, ["MUTATES src/new/x.ts"]],
    [
      "NotebookEdit",
      { notebook_path: at("n.ipynb"), cell_id: "c", new_source: "1", edit_mode: "replace" },
      ["MUTATES n.ipynb"],
    ],
    ["Bash", { command: "echo x >> src/a.ts", description: "adds", timeout: 5_000 }, ["MUTATES src/a.ts"]],
    ["mcp__files__write_file", { path: at("src/b.ts"), content: "x" }, ["MUTATES src/b.ts"]],
    [
      "mcp__files__move_file",
      { source: at("src/b.ts"), destination: at("src/z.ts") },
      ["RENAMES src/b.ts", "RENAMES src/z.ts"],
    ],
  ],
  codex: [
    [
      "apply_patch",
      { command: patch("*** Update File: src/a.ts", "*** Move to: src/d.ts", "@@", "-a", "+b") },
      ["RENAMES src/a.ts", "RENAMES src/d.ts"],
    ],
    [
      "apply_patch",
      { command: patch("*** Add File: src/n.ts", "+n", "*** Delete File: src/b.ts") },
      ["DELETES src/b.ts", "MUTATES src/n.ts"],
    ],
    ["Bash", { command: ["bash", "-lc", "rm src/c.ts"] }, ["DELETES src/c.ts"]],
    ["Bash", { command: "sed -i s/a/b/ a.ts", workdir: at("src") }, ["MUTATES src/a.ts"]],
    ["mcp__files__edit_file", { path: "src/b.ts", edits: [] }, ["MUTATES src/b.ts"]],
  ],
  cursor: [
    ["Write", { file_path: at("src/a.ts"), content: "x" }, ["MUTATES src/a.ts"]],
    ["StrReplace", { path: at("src/a.ts"), old_string: "a", new_string: "b" }, ["MUTATES src/a.ts"]],
    ["Delete", { path: at("src/b.ts") }, ["DELETES src/b.ts"]],
    ["EditNotebook", { target_notebook: at("n.ipynb"), cell_idx: 0 }, ["MUTATES n.ipynb"]],
    ["Shell", { command: "tee c.ts < /dev/null", working_directory: at("src") }, ["MUTATES src/c.ts"]],
    ["MCP:write_file", { path: at("src/b.ts"), content: "x" }, ["MUTATES src/b.ts"]],
  ],
  gemini: [
    ["write_file", { file_path: at("src/a.ts"), content: "x" }, ["MUTATES src/a.ts"]],
    ["replace", { file_path: "src/a.ts", old_string: "a", new_string: "b", instruction: "i" }, ["MUTATES src/a.ts"]],
    ["run_shell_command", { command: "mv a.ts b2.ts", dir_path: "src" }, ["RENAMES src/a.ts", "RENAMES src/b2.ts"]],
    ["mcp_files_write_file", { path: at("src/b.ts"), content: "x" }, ["MUTATES src/b.ts"]],
  ],
});

for (const tool of ["claude", "codex", "cursor", "gemini"] as const) {
  test(`${tool}: each of its ways to write leases the written files, and is denied to others`, async () => {
    for (const [index, [name, input, leased]] of shapes()[tool].entries()) {
      const first = await asked(tool, `s${index}`, name, input);
      assert.deepEqual([first.code, first.denied, first.stderr], [0, null, ""], name);
      assert.deepEqual(await heldBy(`${tool}-s${index}`), leased, `${name} ${JSON.stringify(input)}`);
      const second = await asked(tool, `t${index}`, name, input);
      assert.match(second.denied ?? "", new RegExp(`${tool}-s${index} holds FILE:/shop/`), name);
      await fixture.post("/v1/revoke", { resource_prefix: "FILE:/shop", reason: "the next shape" });
    }
  });
}

test("a sub-agent of Claude Code or Codex gets the other agents at its start, its own session included", async () => {
  for (const tool of ["claude", "codex"] as const) {
    await asked(tool, "parent", tool === "claude" ? "Write" : "apply_patch", {
      file_path: at("src/a.ts"),
      command: patch("*** Update File: src/a.ts", "@@"),
      content: "",
    });
    const { shown, code } = await project.hook(tool, "SubagentStart", {
      session_id: "parent",
      cwd: project.root,
      hook_event_name: "SubagentStart",
      agent_id: "child",
      agent_type: "explorer",
    });
    assert.equal(code, 0);
    assert.match(shown, new RegExp(`${tool}-parent.*MUTATES FILE:/shop/src/a\\.ts`));
    await fixture.post("/v1/revoke", { resource_prefix: "FILE:/shop", reason: "the next tool" });
  }
});

test("a link out of the repository and `..` count as outside, with a note; a link within counts as its target", async () => {
  symlinkSync(project.state, at("out"));
  symlinkSync(at("src/c.ts"), at("alias.ts"));
  for (const path of ["out/x.txt", "../elsewhere.txt", "deep/../../elsewhere.txt"]) {
    const { denied, shown } = await asked("claude", "linker", "Write", {
      file_path: `${project.root}/${path}`,
      content: "",
    });
    assert.deepEqual([denied, await heldBy("claude-linker")], [null, []], path);
    assert.match(shown, /not guarded, because it is not in a repository/, path);
  }
  assert.equal((await asked("claude", "linker", "Edit", { file_path: at("alias.ts") })).denied, null);
  assert.match(
    (await asked("gemini", "other", "replace", { file_path: at("src/c.ts") })).denied ?? "",
    /claude-linker holds/,
  );
});

test("two worktrees use one name for a file, and two names with scope worktree", async () => {
  const tree = join(project.root, "../feature");
  project.git("worktree", "add", "-q", tree, "-b", "feature");
  const inTree = (session: string) =>
    project.hook("claude", "PreToolUse", {
      ...payloadOf("claude", "PreToolUse", session, tree, "Edit", { file_path: join(tree, "src/a.ts") }),
    });
  assert.equal((await asked("claude", "here", "Edit", { file_path: at("src/a.ts") })).denied, null);
  assert.match((await inTree("there")).denied ?? "", /claude-here holds FILE:\/shop\/src\/a\.ts/);
  project.write("../feature/.leasehold.json", '{"scope": "worktree"}');
  assert.equal((await inTree("there")).denied, null);
  const { body } = await fixture.get<{ leases: readonly WireLease[] }>("/v1/leases?agent_id=claude-there");
  assert.deepEqual(
    body.leases.map(({ resource }) => resource),
    ["FILE:/shop@feature/src/a.ts"],
  );
});
