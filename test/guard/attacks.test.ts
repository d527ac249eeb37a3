/** Commands that once passed without a lease and without a comparison (M9), and folders that once ran code (M1). */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { shellWrites } from "../../src/guard/shell-writes.ts";
import { type Answer, type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, ["claude", "codex"]);
});
after(async () => {
  project?.remove();
  await fixture?.close();
});
beforeEach(async () => {
  await fixture.post("/v1/revoke", { resource_prefix: "FILE:/shop", reason: "the next test" });
  project.git("checkout", "-q", "-f", "main");
  project.git("clean", "-fdxq", "-e", ".claude", "-e", ".codex");
  // Who wrote which file last, and what is being written now.
  rmSync(at(".git/leasehold"), { recursive: true, force: true });
});

const at = (path: string) => join(project.root, path);
const hook = (event: string, session: string, command: string, more: object = {}) =>
  project.hook("claude", event, {
    ...payloadOf("claude", event, session, project.root, "Bash", { command }),
    ...more,
  });
const hold = (path: string) =>
  fixture.register("holder").then(() => fixture.grant("holder", `FILE:/shop/${path}`, { purpose: "a refactoring" }));

/** The table of M9: each writes src/a.ts, or says that it would. `e` holds what is written. */
const table: readonly string[] = [
  "perl fix.pl",
  `perl -e 'open F, ">src/a.ts"; print F "x"'`,
  "ruby fix.rb",
  `ruby -e 'File.write("src/a.ts", "x")'`,
  "curl -fsSLo src/a.ts file://$PWD/e",
  "curl -osrc/a.ts file://$PWD/e",
  "curl -s -D src/a.ts -c jar --trace t file://$PWD/e",
  "yq -i '.a = 1' src/a.ts",
  "sort e -osrc/a.ts",
  "uniq e src/a.ts",
  "xxd -r -p e src/a.ts",
  "tree -o src/a.ts",
  "less -O src/a.ts e",
  "history -w src/a.ts",
  `awk 'BEGIN{system("cp e src/a.ts")}'`,
  `awk '{print | "tee src/a.ts"}' e`,
  "sed -n '1e cp e src/a.ts' e",
  "trap 'cp e src/a.ts' EXIT",
  "function ls { cp e src/a.ts; }; ls",
  "echo ${x:-$(cp e src/a.ts)}",
  "echo $(( $(cp e src/a.ts; echo 1) ))",
  "cat <<E\n$(cp e src/a.ts)\nE\n",
  "git -c core.fsmonitor='cp e src/a.ts; false' status",
  "git diff --output=src/a.ts HEAD",
  "git archive -o src/a.ts HEAD",
  "GIT_EXTERNAL_DIFF='cp e src/a.ts; true' git diff",
  "rg --pre ./pre.sh x",
  "man -P 'cp e src/a.ts;' ls",
  "leasehold backup src/a.ts",
  "leasehold ledger export --out src/a.ts",
];

test("M9: each command of the table is leased or compared afterwards, and never called clear with the file unlisted", () => {
  assert.ok(table.length >= 24);
  for (const command of table) {
    const { isClear, mutated, copied } = shellWrites(command, "/r");
    const listed = [...mutated, ...copied.flat()].some(({ path }) => path === "/r/src/a.ts");
    assert.ok(!isClear || listed, command);
  }
});

test("M9: run for real against another's file, each is denied before or reported as a violation after", async () => {
  const has = async (program: string) =>
    (await run("/bin/bash", ["-c", `command -v ${program}`], project.root, project.env, "")).code === 0;
  const outcomes: string[] = [];
  for (const command of table) {
    const [program = ""] = command.split(" ");
    if (/^(?:yq|xxd|tree|less|rg|man|leasehold|ruby|perl|curl)$/.test(program) && !(await has(program))) continue;
    project.git("checkout", "-q", "-f", "main");
    project.write("e", "written past the guard\n");
    project.write("src/b.ts", "makes git diff run its program\n");
    project.write("fix.pl", 'open F, ">src/a.ts"; print F "x";');
    project.write("fix.rb", 'File.write("src/a.ts", "x")');
    await hold("src/a.ts");
    const asked = await hook("PreToolUse", "sly", command);
    if (asked.denied !== null) {
      assert.match(asked.denied, /holder holds FILE:\/shop\/src\/a\.ts/, command);
      outcomes.push("denied");
      continue;
    }
    await run("/bin/bash", ["-c", `set -o history; ${command}`], project.root, project.env, "");
    const isWritten = readFileSync(at("src/a.ts"), "utf8") !== "src/a.ts\n";
    const { shown } = await hook("PostToolUse", "sly", command);
    if (isWritten) assert.match(shown, /VIOLATION: that changed FILE:\/shop\/src\/a\.ts/, command);
    outcomes.push(isWritten ? "reported" : "wrote nothing");
  }
  assert.ok(outcomes.filter((one) => one === "denied").length >= 2, outcomes.join());
  assert.ok(outcomes.filter((one) => one === "reported").length >= 7, outcomes.join());
});

/** A folder of an ordinary clone that git itself takes for a repository, whose configuration names a program. */
function plantBareRepository(folder: string, mark: string): void {
  for (const part of ["objects", "refs/heads"]) mkdirSync(join(folder, part), { recursive: true });
  writeFileSync(join(folder, "HEAD"), "ref: refs/heads/main\n");
  const program = join(folder, "run.sh");
  writeFileSync(program, `#!/bin/sh\ntouch '${mark}'\nexit 1\n`);
  chmodSync(program, 0o755);
  writeFileSync(
    join(folder, "config"),
    `[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ${folder}\n\tfsmonitor = ${program}\n`,
  );
}

test("M1: git is not run in a folder that only a proposed command names, so no code of it runs before its user agrees", async () => {
  const mark = join(project.state, "ran");
  const bare = at("docs/x");
  plantBareRepository(bare, mark);
  const nested = at("vendor/y");
  mkdirSync(nested, { recursive: true });
  await run("git", ["init", "-q"], nested, project.env, "");
  await run(
    "git",
    ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty"],
    nested,
    project.env,
    "",
  );
  writeFileSync(join(nested, "run.sh"), `#!/bin/sh\ntouch '${mark}'\nexit 1\n`, { mode: 0o755 });
  await run("git", ["config", "core.fsmonitor", join(nested, "run.sh")], nested, project.env, "");

  // The twin: plain git does run it, so the folders are what they should be.
  for (const folder of [bare, nested]) {
    await run("git", ["status"], folder, project.env, "");
    assert.ok(existsSync(mark), folder);
    rmSync(mark);
  }
  for (const command of [
    "cd docs/x && git stash",
    "cd docs/x && git reset --hard",
    "git -C docs/x stash",
    "git -C docs/x checkout -- .",
    "(cd docs/x; git clean -fd)",
    "cd vendor/y && git reset --hard",
    "git -C vendor/y restore .",
    "git -C vendor/y stash -u",
  ]) {
    const { denied, code } = await hook("PreToolUse", "curious", command);
    assert.deepEqual([denied, code], [null, 0], command);
    assert.equal(existsSync(mark), false, command);
    await hook("PostToolUse", "curious", command);
    assert.equal(existsSync(mark), false, `after ${command}`);
  }
  // A tool's own folder is the model's choice as well.
  for (const workdir of [bare, nested]) {
    for (const event of ["PreToolUse", "PostToolUse"]) {
      const payload = payloadOf("codex", event, "curious", project.root, "shell", { command: "git stash", workdir });
      assert.equal((await project.hook("codex", event, payload)).code, 0);
      assert.equal(existsSync(mark), false, workdir);
    }
  }
});

test("M1: what the checkout's own configuration names is not run by a question of the guard", async () => {
  const mark = join(project.state, "ran-here");
  const program = join(project.state, "run.sh");
  writeFileSync(program, `#!/bin/sh\ntouch '${mark}'\ncat\n`, { mode: 0o755 });
  const config = readFileSync(at(".git/config"), "utf8");
  try {
    for (const [name, value] of [
      ["core.fsmonitor", program],
      ["core.hooksPath", project.state],
      ["diff.external", program],
      ["filter.odd=name.clean", program],
      ["filter.x.clean", program],
      ["filter.x.process", program],
      ["filter.x.required", "true"],
      ["diff.x.textconv", program],
    ] as const) {
      project.git("config", name, value);
    }
    project.write(".gitattributes", "*.ts filter=x diff=x\nsrc/b.ts filter=odd=name\n");
    project.write("src/a.ts", "changed\n");
    project.write("src/b.ts", "changed\n");
    rmSync(mark, { force: true });
    const commands = ["git stash", "git reset --hard", "git checkout -- src", "git restore src/a.ts", "node x.js"];
    for (const command of commands) {
      assert.equal((await hook("PreToolUse", "careful", command)).denied, null, command);
      await hook("PostToolUse", "careful", command);
      assert.equal(existsSync(mark), false, command);
    }
    project.git("status");
    assert.ok(existsSync(mark), "plain git runs it");
  } finally {
    writeFileSync(at(".git/config"), config);
    rmSync(at(".gitattributes"), { force: true });
  }
});

test("in a tree that is too large to compare the user is shown so, and what others hold is compared all the same", async () => {
  mkdirSync(at("built"));
  for (let n = 0; n <= 20_000; n++) writeFileSync(at(`built/${n}`), "");
  await hold("src/a.ts");
  await fixture.grant("holder", "FILE:/shop/src/deep/**");
  project.write("src/deep/c.ts", "theirs\n");
  const violate = `node -e 'for (const f of ["src/a.ts", "src/deep/c.ts"]) require("fs").writeFileSync(f, "mine")'`;
  const runAll = async (command: string): Promise<Answer> => {
    assert.equal((await hook("PreToolUse", "large", command)).denied, null);
    await run("/bin/sh", ["-c", command], project.root, project.env, "");
    return await hook("PostToolUse", "large", command);
  };
  const late = await runAll(violate);
  assert.match(late.shown, /VIOLATION: that changed FILE:\/shop\/src\/a\.ts.*FILE:\/shop\/src\/deep\/c\.ts/s);
  assert.match(late.shown, /too large to compare as a whole.*only the files that other agents hold were compared/s);
  assert.match((await runAll("node -e 0")).shown, /too large to compare/);

  // A command that makes it too large itself.
  rmSync(at("built"), { recursive: true });
  project.git("checkout", "-q", "-f", "main");
  const grow = `node -e 'const fs = require("fs"); fs.mkdirSync("built"); for (let n = 0; n <= 20000; n++) fs.writeFileSync("built/" + n, ""); fs.writeFileSync("src/a.ts", "mine")'`;
  assert.match((await runAll(grow)).shown, /VIOLATION: that changed FILE:\/shop\/src\/a\.ts/);
});
