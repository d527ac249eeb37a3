import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, test } from "node:test";
import { findRepository, type Repository } from "../../names/repository.ts";
import { guardedTools } from "../payload.ts";
import { CannotChange } from "./changes.ts";
import { diffText } from "./diff.ts";
import { hookFiles } from "./hook-entries.ts";
import { install, type Part, planInstall, planRemoval, uninstall, type Wanted } from "./installing.ts";

const places: string[] = [];
afterEach(() => {
  for (const place of places.splice(0)) rmSync(place, { recursive: true, force: true });
});

const wanted: Wanted = {
  program: () => "leasehold",
  endpoint: { url: "http://127.0.0.1:7117" },
  project: { repository: "shop" },
};
const hooks: readonly Part[] = guardedTools.map((tool) => ({ kind: "hooks", tool }));
const mcp: readonly Part[] = guardedTools.map((tool) => ({ kind: "mcp", tool }));
const all: readonly Part[] = [{ kind: "project" }, ...hooks, { kind: "git" }, ...mcp];

function repositoryWith(files: Readonly<Record<string, string>>): Repository {
  const place = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-install-")));
  places.push(place);
  const root = join(place, "shop");
  mkdirSync(root);
  execFileSync("git", ["init", "-q"], { cwd: root });
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    if (path.includes("hooks/")) chmodSync(join(root, path), 0o755);
  }
  const found = findRepository(root);
  assert.ok(found !== null);
  return found;
}

/** Every file of it with its bytes and mode, but for what guards keep for themselves. */
function picture({ root }: Repository): Readonly<Record<string, string>> {
  const paths = globSync(["**/*", ".*/**/*", ".*"], { cwd: root }).filter((path) =>
    statSync(join(root, path)).isFile(),
  );
  const own = paths.filter((path) => !path.startsWith(".git/leasehold") && path !== ".git/config");
  return Object.fromEntries(
    own.sort().map((path) => [path, `${statSync(join(root, path)).mode} ${readFileSync(join(root, path), "utf8")}`]),
  );
}

const put = async (repository: Repository, parts: readonly Part[]) => {
  const changes = planInstall(repository, parts, wanted);
  await install(repository, changes, {});
  return changes;
};
const take = async (repository: Repository, parts: readonly Part[]) =>
  uninstall(repository, planRemoval(repository, parts, {}), {});

const configured: Readonly<Record<string, string>> = {
  ".claude/settings.json":
    '{\n\t"permissions": { "allow": ["Bash(ls:*)"] },\n\t"hooks": {\n\t\t"PreToolUse": [{ "matcher": "Bash", "hooks": [{ "type": "command", "command": "mine" }] }],\n\t\t"Stop": []\n\t}\n}',
  ".codex/hooks.json": '{"hooks": {}}',
  ".codex/config.toml": '# mine\r\nmodel = "x" # why\r\n\r\n[mcp_servers.other]\r\ncommand = "o"\r\n',
  ".cursor/hooks.json": '{ "version": 1, "hooks": { "afterFileEdit": [{ "command": "fmt" }] } }\n',
  ".cursor/mcp.json": '{"mcpServers":{"other":{"url":"http://o"}}}',
  ".gemini/settings.json": '{\r\n    "theme": "Dark",\r\n    "mcpServers": {}\r\n}\r\n',
  ".git/hooks/pre-commit": "#!/bin/sh\necho mine\n",
};

for (const [what, files] of [
  ["an empty repository", {}],
  ["one that is configured", configured],
] as const) {
  test(`${what}: all is put in, again changes nothing, and taken out it is as it was, to the byte`, async () => {
    const repository = repositoryWith(files);
    const before = picture(repository);
    const changes = await put(repository, all);
    assert.ok(changes.length >= 8);
    assert.deepEqual(planInstall(repository, all, wanted), []);
    await take(repository, all);
    assert.deepEqual(picture(repository), before);
    assert.deepEqual(planRemoval(repository, all, {}), []);
  });
}

test("what was configured stays: other hooks, other servers, comments", async () => {
  const repository = repositoryWith(configured);
  await put(repository, all);
  const read = (path: string) => readFileSync(join(repository.root, path), "utf8");
  const claude = JSON.parse(read(hookFiles.claude)) as {
    permissions: unknown;
    hooks: { PreToolUse: readonly unknown[] };
  };
  assert.deepEqual(claude.permissions, { allow: ["Bash(ls:*)"] });
  assert.deepEqual(claude.hooks.PreToolUse[0], { matcher: "Bash", hooks: [{ type: "command", command: "mine" }] });
  assert.equal(claude.hooks.PreToolUse.length, 3, "one entry for writes, one for reads");
  assert.match(
    read(".codex/config.toml"),
    /^# mine\r\nmodel = "x" # why\r\n[\s\S]*\[mcp_servers\.leasehold\]\nurl = "http:\/\/127\.0\.0\.1:7117\/mcp"/,
  );
  assert.deepEqual(Object.keys((JSON.parse(read(".cursor/mcp.json")) as { mcpServers: object }).mcpServers), [
    "other",
    "leasehold",
  ]);
  assert.match(
    read(".gemini/settings.json"),
    /^\{\r\n {4}"theme": "Dark",\r\n/,
    "as it was written: line ends and indentation",
  );
});

test("only guards are taken out, MCP entries stay; what the user changed since stays too", async () => {
  const repository = repositoryWith(configured);
  await put(repository, all);
  const path = join(repository.root, ".gemini/settings.json");
  writeFileSync(path, readFileSync(path, "utf8").replace("Dark", "Light"));
  await take(repository, hooks);
  const gemini = JSON.parse(readFileSync(path, "utf8")) as Readonly<Record<string, unknown>>;
  assert.deepEqual(gemini, { theme: "Light", mcpServers: { leasehold: { httpUrl: "http://127.0.0.1:7117/mcp" } } });
  await take(repository, all);
  assert.deepEqual(JSON.parse(readFileSync(path, "utf8")), { theme: "Light" });
  assert.equal(
    readFileSync(join(repository.root, ".claude/settings.json"), "utf8"),
    configured[".claude/settings.json"],
  );
});

test("a clone that has the entries, and no memory of what was before, is cleared of them as well", async () => {
  const repository = repositoryWith(configured);
  await put(repository, all);
  rmSync(join(repository.root, ".git/leasehold"), { recursive: true });
  await take(repository, [...hooks, ...mcp]);
  const read = (path: string) => readFileSync(join(repository.root, path), "utf8");
  for (const path of [".claude/settings.json", ".cursor/hooks.json", ".cursor/mcp.json", ".gemini/settings.json"])
    assert.doesNotMatch(read(path), /leasehold/, path);
  assert.equal(read(".codex/config.toml"), configured[".codex/config.toml"]);
});

test("another way to start it replaces the entries, and adds none", async () => {
  const repository = repositoryWith({});
  await put(repository, hooks);
  await install(repository, planInstall(repository, hooks, { ...wanted, program: () => "npx leasehold" }), {});
  const text = readFileSync(join(repository.root, hookFiles.claude), "utf8");
  assert.equal(text.match(/guard hook claude PreToolUse/g)?.length, 2, "before a write, and before a read");
  assert.match(text, /npx leasehold guard hook claude PreToolUse/);
});

test("what cannot be merged without a loss is left alone, and said so", () => {
  for (const text of ['{ // mine\n "a": 1 }', "[]", '{"hooks": []}', '{"hooks": {"PreToolUse": {}}}']) {
    const repository = repositoryWith({ ".claude/settings.json": text });
    assert.throws(() => planInstall(repository, hooks, wanted), CannotChange, text);
  }
});

test("an entry that somebody else wrote under our name is theirs", async () => {
  const mine = '{"mcpServers": {"leasehold": {"command": "my-own", "args": ["x"]}}}';
  const repository = repositoryWith({
    ".mcp.json": mine,
    ".codex/config.toml": '[mcp_servers.leasehold]\ncommand = "my-own"\n',
  });
  await put(repository, mcp);
  await take(repository, mcp);
  assert.equal(readFileSync(join(repository.root, ".mcp.json"), "utf8"), mine);
  assert.equal(
    readFileSync(join(repository.root, ".codex/config.toml"), "utf8"),
    '[mcp_servers.leasehold]\ncommand = "my-own"\n',
  );
});

test("git's own hook runs first, then the one that was there, a link too; in core.hooksPath as well", async () => {
  const repository = repositoryWith({
    "tools/check.sh": "#!/bin/sh\necho checked > ran\n",
    "bin/leasehold": "#!/bin/sh\necho guarded >> guarded\n",
  });
  const { root } = repository;
  for (const path of ["tools/check.sh", "bin/leasehold"]) chmodSync(join(root, path), 0o755);
  mkdirSync(join(root, ".githooks"));
  symlinkSync("../tools/check.sh", join(root, ".githooks/pre-commit"));
  const git = (...args: readonly string[]) =>
    execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], { cwd: root, stdio: "pipe" });
  git("config", "core.hooksPath", ".githooks");
  await install(
    repository,
    planInstall(repository, [{ kind: "git" }], { ...wanted, program: () => join(root, "bin/leasehold") }),
    {},
  );
  git("commit", "-qm", "x", "--allow-empty");
  assert.deepEqual(
    [readFileSync(join(root, "guarded"), "utf8"), readFileSync(join(root, "ran"), "utf8")],
    ["guarded\n", "checked\n"],
  );
  await take(repository, [{ kind: "git" }]);
  assert.deepEqual(globSync("**/*", { cwd: join(root, ".githooks") }), ["pre-commit"]);
  assert.equal(realpathSync(join(root, ".githooks/pre-commit")), join(root, "tools/check.sh"));
});

for (const folder of ["shared-hooks", 'it\'s $(touch pwned) `touch pwned` "x"']) {
  test(`L8: hooks in a folder that other repositories share (${folder}) are not touched: this one gets its own, which pass on`, async () => {
    const repository = repositoryWith({ "bin/leasehold": "#!/bin/sh\ntrue\n" });
    const { root } = repository;
    chmodSync(join(root, "bin/leasehold"), 0o755);
    const shared = join(root, "..", folder);
    mkdirSync(shared);
    for (const name of ["pre-commit", "commit-msg"]) {
      writeFileSync(join(shared, name), `#!/bin/sh\necho ${name} >> "${root}/ran"\n`, { mode: 0o755 });
    }
    const git = (...args: readonly string[]) =>
      execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], {
        cwd: root,
        stdio: "pipe",
        encoding: "utf8",
      });
    git("config", "core.hooksPath", shared);
    const changes = planInstall(repository, [{ kind: "git" }], {
      ...wanted,
      program: () => join(root, "bin/leasehold"),
    });
    await install(repository, changes, {});
    assert.deepEqual(
      planInstall(repository, [{ kind: "git" }], { ...wanted, program: () => join(root, "bin/leasehold") }),
      [],
    );
    git("commit", "-qm", "x", "--allow-empty");
    assert.equal(readFileSync(join(root, "ran"), "utf8"), "pre-commit\ncommit-msg\n");
    await take(repository, [{ kind: "git" }]);
    assert.equal(git("config", "core.hooksPath").trim(), shared);
    assert.equal(existsSync(join(root, "pwned")), false, "nothing in a folder's name is run");
  });
}

test("the change is shown as lines that come and go", () => {
  const repository = repositoryWith({ ".cursor/mcp.json": '{\n  "mcpServers": {\n    "other": {}\n  }\n}\n' });
  const text = diffText(planInstall(repository, [{ kind: "mcp", tool: "cursor" }], wanted));
  assert.equal(
    text,
    '--- .cursor/mcp.json\n+++ .cursor/mcp.json\n {\n   "mcpServers": {\n-    "other": {}\n+    "other": {},\n+    "leasehold": {\n+      "url": "http://127.0.0.1:7117/mcp"\n+    }\n   }\n }\n',
  );
});
