/** One session is one agent: its hooks, its MCP server and its commands; and what becomes of it when it ends unannounced. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readSettings } from "../../src/guard/settings.ts";
import { until } from "../server/harness.ts";
import type { WireLease } from "../server/wire-types.ts";
import { binary, type Fixture, makeProject, type Project, payloadOf, serveGuards } from "./harness.ts";

const toolFile = fileURLToPath(new URL("./coding-tool.ts", import.meta.url));

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});

interface Tool {
  readonly process: ChildProcess;
  hook(event: string, toolName: string, input: object, more?: object): Promise<string>;
  mcp(tool: string, args: object): Promise<{ readonly structuredContent?: { readonly verdict?: string } }>;
}

/** The session's own process, with what it runs below it. */
function startTool(t: { after(end: () => void): void }, session: string): Tool {
  const env = { ...project.env, CLAUDE_PROJECT_DIR: project.root };
  const child = spawn(process.execPath, [toolFile], { cwd: project.root, env, stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => void child.kill("SIGKILL"));
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const ask = async (request: object): Promise<unknown> => {
    child.stdin.write(`${JSON.stringify(request)}\n`);
    return JSON.parse((await lines.next()).value as string);
  };
  return {
    process: child,
    async hook(event, toolName, input, more = {}) {
      const payload = { ...payloadOf("claude", event, session, project.root, toolName, input), ...more };
      const request = { kind: "hook", command: project.command("claude", event), input: JSON.stringify(payload) };
      return ((await ask(request)) as { readonly stdout: string }).stdout;
    },
    mcp: (tool, args) =>
      ask({ kind: "mcp", program: [process.execPath, binary, "mcp"], tool, args }) as ReturnType<Tool["mcp"]>,
  };
}

const at = (path: string) => join(project.root, path);
const edit = (session: string, path: string, event = "PreToolUse", more: object = {}) =>
  project.hook("claude", event, {
    ...payloadOf("claude", event, session, project.root, "Edit", { file_path: at(path) }),
    ...more,
  });
async function holdersOf(path: string): Promise<readonly string[]> {
  const query = new URLSearchParams({ resource: `FILE:/shop/${path}` });
  const { body } = await fixture.get<{ leases: readonly WireLease[] }>(`/v1/leases?${query}`);
  return body.leases.map(({ agent_id: agent }) => agent);
}
const freed = (path: string) =>
  until(async () => ((await holdersOf(path)).length === 0 ? true : null), `${path} is free`, 30_000);

test("newuser 2.1: a model that acquires over MCP by stdio and then edits is the same agent as its guard", async (t) => {
  const tool = startTool(t, "stdio");
  await tool.hook("SessionStart", "", {});
  const intents = [{ predicate: "MUTATES", resource: "FILE:/shop/src/one.ts" }];
  const granted = await tool.mcp("acquire_leases", { intents, purpose: "rename" });
  assert.equal(granted.structuredContent?.verdict, "GRANTED", JSON.stringify(granted));
  assert.doesNotMatch(await tool.hook("PreToolUse", "Edit", { file_path: at("src/one.ts") }), /deny/);
  assert.deepEqual(await holdersOf("src/one.ts"), ["claude-stdio"]);
  assert.match((await edit("stranger", "src/one.ts")).denied ?? "", /claude-stdio holds/);
  // And the other way round: what the guard has leased is the model's.
  await tool.hook("PreToolUse", "Edit", { file_path: at("src/two.ts") });
  const again = await tool.mcp("acquire_leases", {
    intents: [{ predicate: "MUTATES", resource: "FILE:/shop/src/two.ts" }],
  });
  assert.equal(again.structuredContent?.verdict, "GRANTED");
  await tool.hook("Stop", "", {});
  assert.deepEqual(await holdersOf("src/one.ts"), []);
});

test("newuser 2.1: a model that acquires over MCP by HTTP, as another agent, is not refused by its guard, nor blamed", async () => {
  await fixture.post("/v1/agents", { agent_id: "over-http" });
  const intents = [{ predicate: "MUTATES", resource: "FILE:/shop/src/http.ts" }];
  const { body } = await fixture.post<object>("/v1/acquire", { agent_id: "over-http", intents });
  const asked = payloadOf("claude", "PostToolUse", "http", project.root, "mcp__leasehold__acquire_leases", { intents });
  const response = [
    { type: "text", text: "GRANTED" },
    { type: "text", text: JSON.stringify(body) },
  ];
  assert.match((await edit("http", "src/http.ts")).denied ?? "", /over-http holds/, "not before the guard has seen it");
  await project.hook("claude", "PostToolUse", { ...asked, tool_response: response });
  assert.equal((await edit("http", "src/http.ts")).denied, null);
  project.write("src/http.ts", "mine\n");
  const { shown } = await edit("http", "src/http.ts", "PostToolUse");
  assert.doesNotMatch(shown, /VIOLATION|not leased before/);
  assert.match((await edit("stranger", "src/http.ts")).denied ?? "", /over-http holds/, "it is nobody else's");
});

test("newuser 2.7: what a session holds is free soon after its process was killed, long before the lease ends", async (t) => {
  project.write(".leasehold.json", '{"ttl_ms": 300000}');
  t.after(() => project.write(".leasehold.json", "{}"));
  const tool = startTool(t, "crashed");
  await tool.hook("SessionStart", "", {});
  await tool.hook("PreToolUse", "Edit", { file_path: at("src/crash.ts") });
  await tool.hook("PostToolUse", "Edit", { file_path: at("src/crash.ts") });
  assert.deepEqual(await holdersOf("src/crash.ts"), ["claude-crashed"]);
  tool.process.kill("SIGKILL");
  await freed("src/crash.ts");
});

test("newuser 2.7: a session that its user interrupts, which no hook reports, is released when its transcript says so", async () => {
  const transcript = join(project.state, "..", "transcript.jsonl");
  writeFileSync(transcript, '{"type":"assistant","message":{}}\n');
  const more = { transcript_path: transcript };
  // The helper must know the session.
  await until(async () => {
    await edit("cancelled", "src/cancel.ts", "PreToolUse", more);
    return (await holdersOf("src/cancel.ts")).length === 1 ? true : null;
  }, "it is leased");
  await edit("cancelled", "src/cancel.ts", "PreToolUse", more);
  appendFileSync(
    transcript,
    '{"type":"user","message":{"content":[{"type":"text","text":"[Request interrupted by user]"}]}}\n',
  );
  await freed("src/cancel.ts");
});

test("newuser 2.7: a session without a sign of life is free within 90 s, by the defaults", () => {
  const { ttlMs, quietMs } = readSettings(null, { LEASEHOLD_STATE: project.state });
  assert.ok(ttlMs + quietMs <= 90_000);
});

test("newuser 2.7: guard release frees a session by how its name begins, and lists them where it is not clear", async () => {
  await edit("stuck-1", "src/stuck-1.ts");
  await edit("stuck-2", "src/stuck-2.ts");
  const which = await project.cli(["guard", "release"]);
  assert.deepEqual([which.code, /claude-stuck-1 .*claude-stuck-2/.test(which.stderr)], [2, true], which.stderr);
  const { code, stdout } = await project.cli(["guard", "release", "claude-stuck-1"]);
  assert.deepEqual([code, stdout], [0, "1 released.\n"]);
  assert.deepEqual([await holdersOf("src/stuck-1.ts"), await holdersOf("src/stuck-2.ts")], [[], ["claude-stuck-2"]]);
  assert.equal((await project.cli(["guard", "release", "nobody"])).code, 7);
});

test("a tool that ran without its guard's answer is reported to the agent, its user and the status", async () => {
  await edit("holder", "src/unseen.ts");
  project.write("src/unseen.ts", "theirs\n");
  await edit("holder", "src/unseen.ts", "PostToolUse");
  project.write("src/unseen.ts", "overwritten\n");
  const { shown } = await project.hook("claude", "PostToolUse", {
    ...payloadOf("claude", "PostToolUse", "late", project.root, "Bash", { command: "./generate.sh" }),
    tool_use_id: "toolu_late",
  });
  assert.match(shown, /Bash ran UNSEEN: the hook before it was not called, or did not answer in time/);
  assert.match(shown, /VIOLATION: that changed FILE:\/shop\/src\/unseen\.ts, which claude-holder holds/);
  const { stdout } = await project.cli(["guard", "status"]);
  assert.match(stdout, /claude-late ran Bash unseen: \.\/generate\.sh/);
});

test("newuser 2.12: apply_patch within a shell command is leased and denied like the tool of that name", async () => {
  await edit("patched", "src/patched.ts");
  const patch = "*** Begin Patch\n*** Update File: src/patched.ts\n@@\n-a\n+b\n*** End Patch";
  for (const command of [`apply_patch <<'EOF'\n${patch}\nEOF`, `bash -lc "apply_patch <<'EOF'\n${patch}\nEOF"`]) {
    const payload = payloadOf("codex", "PreToolUse", "patcher", project.root, "Bash", { command });
    const { denied } = await project.hook("codex", "PreToolUse", payload);
    assert.match(denied ?? "allowed", /claude-patched holds FILE:\/shop\/src\/patched\.ts/, command);
  }
});
