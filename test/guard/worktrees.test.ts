/**
 * Thirteen agents, each in a worktree of its own, write what git shares between them at once. Rounds by
 * LEASEHOLD_ROUNDS: `LEASEHOLD_ROUNDS=10 npm test -- test/guard/worktrees.test.ts`.
 */
import assert from "node:assert/strict";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type Ended, type Fixture, makeProject, type Project, payloadOf, run, serveGuards } from "./harness.ts";

const agents = 13;
const { LEASEHOLD_ROUNDS: rounds = "1" } = process.env;

let fixture: Fixture;
let project: Project;
before(async () => {
  fixture = await serveGuards();
  project = await makeProject(fixture.server.address.url, ["claude", "git"]);
  project.git("config", "user.name", "a");
  project.git("config", "user.email", "a@example.com");
});
after(async () => {
  project?.remove();
  await fixture?.close();
});

/** As a coding agent runs a command: between its two hooks. */
async function shell(session: string, cwd: string, command: string): Promise<Ended> {
  const payload = (event: string) => ({
    ...payloadOf("claude", event, session, cwd, "Bash", { command }),
    tool_use_id: `${session} ${command}`,
  });
  for (;;) {
    const { denied } = await project.hook("claude", "PreToolUse", payload("PreToolUse"));
    if (denied === null) break;
    assert.match(denied, /git command has been running here/);
  }
  const ended = await run("/bin/sh", ["-c", command], cwd, project.env, "");
  await project.hook("claude", "PostToolUse", payload("PostToolUse"));
  return ended;
}

for (let round = 1; round <= Number(rounds); round++) {
  test(`round ${round}: ${agents} agents add a worktree, configure it and commit at once, and all ${agents} commits arrive`, async () => {
    const names = Array.from({ length: agents }, (_, index) => `w${round}-${index}`);
    const results = await Promise.all(
      names.map(async (name) => {
        const folder = join(project.root, "..", name);
        const steps: readonly (readonly [cwd: string, command: string])[] = [
          [project.root, `git worktree add -q -b ${name} ${folder}`],
          [folder, `git config branch.${name}.description ${name} && git config branch.${name}.remote .`],
          [folder, `echo ${name} > ${name}.txt && git add ${name}.txt && git commit -qm ${name}`],
        ];
        for (const [cwd, command] of steps) {
          const { code, stderr } = await shell(name, cwd, command);
          if (code !== 0) return `${command}: ${stderr}`;
        }
        return "";
      }),
    );
    assert.deepEqual(results.filter(Boolean), []);
    const subjects = names.map((name) => project.git("log", "-1", "--format=%s", name).trim());
    assert.deepEqual(subjects, names);
    const described = names.map((name) => project.git("config", `branch.${name}.description`).trim());
    assert.deepEqual(described, names);
    assert.equal(
      (await fixture.get<{ leases: readonly unknown[] }>("/v1/leases?resource=GIT:/**")).body.leases.length,
      0,
    );
  });
}

test("git does not wait for another git that writes its configuration: without turns one of the two fails", async () => {
  const lock = join(project.root, ".git/config.lock");
  writeFileSync(lock, "");
  const { code, stderr } = await run("git", ["config", "test.key", "x"], project.root, project.env, "");
  rmSync(lock);
  assert.deepEqual([code === 0, /could not lock config file/.test(stderr)], [false, true], stderr);
});
