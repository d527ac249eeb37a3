import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { allCommands } from "../../src/cli/commands.ts";
import { exitCodeTable } from "../../src/cli/exit-codes.ts";
import { inTurns, start } from "./harness.ts";

const commands = await allCommands();
const run = (...args: readonly string[]) => start(args).ended;

test("each command's --help shows its usage, its flags and examples, and needs no server", async () => {
  await inTurns(commands, async ({ name, flags = {}, examples, offline }) => {
    const { code, stdout, stderr } = await run(...name.split(" "), "--help");
    assert.deepEqual([code, stderr], [0, ""], name);
    assert.match(stdout, new RegExp(`Usage\\n {2}leasehold ${name}`), name);
    const server = offline === true ? [] : ["url", "key", "tenant"];
    for (const flag of [...Object.keys(flags), ...server, "json", "help"]) {
      assert.ok(stdout.includes(`--${flag}`), `${name} --${flag}`);
    }
    for (const [line] of examples) assert.ok(stdout.includes(line), `${name}: ${line}`);
    assert.ok(examples.length > 0, `${name} has an example`);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the point
    assert.doesNotMatch(stdout, /\u001b/, "no colours in a pipe");
  });
});

test("help lists every command, shows one's own help, and that of a group", async () => {
  const [all, one, group, groupFlag] = await Promise.all([
    run("help"),
    run("help", "tasks", "add"),
    run("help", "tasks"),
    run("tasks", "--help"),
  ]);
  assert.equal(all.code, 0);
  for (const { name } of commands) assert.match(all.stdout, new RegExp(`^ {2}${name} `, "m"), name);
  assert.match(one.stdout, /leasehold tasks add TYPE/);
  assert.match(group.stdout, /leasehold tasks ls[\s\S]*leasehold tasks redrive/);
  assert.equal(groupFlag.stdout, group.stdout);
});

test("--version prints the package's version", async () => {
  const { version } = JSON.parse(readFileSync("package.json", "utf8")) as { readonly version: string };
  for (const flag of ["--version", "-V", "-v"]) assert.equal((await run(flag)).stdout, `${version}\n`);
});

test("docs/cli.md has every command and the exit codes of the code", () => {
  const text = readFileSync("docs/cli.md", "utf8");
  assert.ok(text.includes(exitCodeTable()), `docs/cli.md lacks this table:\n${exitCodeTable()}`);
  for (const { name } of commands) assert.ok(text.includes(`\`${name}`), `docs/cli.md lacks ${name}`);
});

test("completion for each shell names every command and flag", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const { code, stdout } = await run("completion", shell);
    assert.equal(code, 0);
    for (const { name, flags = {} } of commands) {
      for (const word of name.split(" ")) assert.ok(stdout.includes(word), `${shell} ${name}`);
      for (const flag of Object.keys(flags)) assert.ok(stdout.includes(flag), `${shell} --${flag}`);
    }
  }
});
