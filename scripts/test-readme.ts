/**
 * The README's first screen as a newcomer meets it: the packed file by npx, an empty folder, the machine's own Node (20 or later),
 * and the commands of the README as they stand there. Then the hooks that `init` installed, as Claude Code runs them. npx
 * downloads what the package depends on, so this is not part of `npm test`.
 *
 *   npm run test:readme [-- --archive leasehold-0.1.0.tgz]
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { pack } from "../test/package/packing.ts";

const barMs = 120_000;
const { values } = parseArgs({ options: { archive: { type: "string" } } });
const page = readFileSync("README.md", "utf8");
const blocks = [...page.matchAll(/```(?:sh|text)\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
const [start = ""] = (blocks.find((block) => block.startsWith("npx leasehold ")) ?? "").split("\n");
const refusal = blocks.find((block) => block.startsWith("Leasehold: ")) ?? "";
const conflict = blocks.find((block) => block.includes("edit 91c2")) ?? "";

const place = mkdtempSync(join(tmpdir(), "leasehold-readme-"));
const archive = values.archive === undefined ? (await pack(place)).archive : resolve(values.archive);
for (const folder of ["empty", "home"]) mkdirSync(join(place, folder));
const port = await freePort();
// The server's usual port may be taken on this machine: the one thing that differs from a newcomer's.
const env = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  HOME: join(place, "home"),
  npm_config_cache: join(place, "home/.npm"),
  LEASEHOLD_PORT: String(port),
  LEASEHOLD_URL: `http://127.0.0.1:${port}`,
};
const asPacked = (text: string): string => text.replaceAll("npx leasehold", `npx --yes file:${archive}`);

const began = performance.now();
const server = spawn("sh", ["-c", `exec ${asPacked(start)}`], {
  cwd: join(place, "empty"),
  env,
  detached: true,
  stdio: ["ignore", "pipe", "inherit"],
});
try {
  await new Promise<void>((done, fail) => {
    let text = "";
    server.stdout.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      if (text.includes("listening on")) done();
    });
    server.once("close", () => fail(new Error(`the server ended: ${text}`)));
  });
  report("the server listens");
  const ran = await shell(asPacked(conflict), join(place, "empty"));
  assert.equal(ran.code, 0, ran.stdout);
  const shown = denialIn(ran.stdout.trim().split("\n").at(-1) ?? "");
  assert.equal(plainly(shown ?? ran.stdout), plainly(refusal), "the second agent reads what the README shows");
  const ms = report("the second agent was refused, by the commands of the README");
  const root = join(place, "empty/shop");
  const { hooks } = JSON.parse(readFileSync(join(root, ".claude/settings.json"), "utf8")) as {
    readonly hooks: Readonly<Record<string, readonly { readonly hooks: readonly { readonly command: string }[] }[]>>;
  };
  const installed = hooks["PreToolUse"]?.[0]?.hooks[0]?.command ?? "";
  const asClaude = (session: string) => {
    const payload = { session_id: session, cwd: root, hook_event_name: "PreToolUse", tool_use_id: session };
    const tool = { tool_name: "Edit", tool_input: { file_path: join(root, "src/login.ts") } };
    return shell(installed, root, JSON.stringify({ ...payload, ...tool }));
  };
  assert.equal(denialIn((await asClaude("one")).stdout), null);
  assert.match(denialIn((await asClaude("two")).stdout) ?? "", /claude-one holds FILE:\/shop\/src\/login\.ts/);
  report("the installed hooks refuse the second session without npx");
  assert.ok(ms < barMs, `${(ms / 1_000).toFixed(1)} s, and the bar is ${barMs / 1_000} s`);
} finally {
  if (server.pid !== undefined) process.kill(-server.pid, "SIGTERM");
  server.removeAllListeners("close");
  rmSync(place, { recursive: true, force: true, maxRetries: 5 });
}

function report(what: string): number {
  const ms = performance.now() - began;
  console.log(`${(ms / 1_000).toFixed(1)} s: ${what}`);
  return ms;
}

/** Line ends and remaining times may differ. */
function plainly(text: string): string {
  return text
    .replaceAll(/\s+/g, " ")
    .replaceAll(/\d+ s\b/g, "N s")
    .trim();
}

function denialIn(text: string): string | null {
  const { hookSpecificOutput: said } = JSON.parse(text || "{}") as {
    readonly hookSpecificOutput?: { readonly permissionDecision?: string; readonly permissionDecisionReason?: string };
  };
  return said?.permissionDecision === "deny" ? (said.permissionDecisionReason ?? "") : null;
}

function shell(
  command: string,
  cwd: string,
  input = "",
): Promise<{ readonly code: number | null; readonly stdout: string }> {
  return new Promise((done) => {
    const child = spawn("sh", ["-c", command], {
      cwd,
      env: { ...env, CLAUDE_PROJECT_DIR: cwd },
      stdio: ["pipe", "pipe", "inherit"],
    });
    let stdout = "";
    child.stdout.on("data", (chunk: Buffer) => (stdout += chunk.toString()));
    child.stdin.end(input);
    child.once("close", (code) => done({ code, stdout }));
  });
}

function freePort(): Promise<number> {
  return new Promise((done) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address();
      probe.close(() => done(typeof address === "object" && address !== null ? address.port : 0));
    });
  });
}
