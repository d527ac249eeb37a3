/** Every command of docs/recipes.md, as it is written there, in a shell of its own. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { binary, type Server, startServer, until } from "./cli/harness.ts";

let server: Server;
const folder = mkdtempSync(join(tmpdir(), "leasehold-recipes-"));

before(async () => {
  server = await startServer();
  writeFileSync(join(folder, "leasehold"), `#!/bin/sh\nexec "${process.execPath}" "${binary}" "$@"\n`, { mode: 0o755 });
  symlinkSync(process.execPath, join(folder, "node"));
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

const commands = [...readFileSync("docs/recipes.md", "utf8").matchAll(/```sh\n([\s\S]*?)```/g)].flatMap(
  ([, block = ""]) => block.trim().split("\n"),
);

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
}

const shell = (line: string): Promise<Ended> => begin(line).ended;

function begin(line: string): { readonly output: { stdout: string }; readonly ended: Promise<Ended> } {
  const { PATH = "", HOME = "" } = process.env;
  const env = { PATH: `${folder}:${PATH}`, HOME, LEASEHOLD_URL: server.url };
  const child = spawn("sh", ["-c", line], { env, cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  const output = { stdout: "" };
  child.stdout.on("data", (chunk: Buffer) => (output.stdout += chunk.toString()));
  const ended = new Promise<Ended>((resolve) => child.once("close", (code) => resolve({ code, ...output })));
  return { output, ended };
}

test("every command of the recipes succeeds as it is written", async () => {
  assert.ok(commands.length >= 9, `${commands.length} commands`);
  for (const line of commands) assert.equal((await shell(line)).code, 0, line);
});

test("two worktrees at once get two ports, and one that another program has is not given", async () => {
  const busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
  const address = busy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  const range = `--range ${port}-${Math.min(port + 5, 65_535)}`;
  const held = "echo $PORT; until test -e done; do sleep 0.05; done";
  const print = `leasehold port ${range} -- sh -c '${held}'`;
  const running = [begin(print), begin(print.replace("leasehold port", "leasehold port other"))];
  const areBoth = () => running.every(({ output }) => output.stdout.endsWith("\n")) || null;
  await until(areBoth, "both commands print their ports");
  writeFileSync(join(folder, "done"), "");
  const ports = (await Promise.all(running.map(({ ended }) => ended))).map(({ stdout }) => Number(stdout));
  busy.close();
  assert.equal(new Set([...ports, port]).size, 3, `${ports} beside ${port}`);
});

test("outside of a coding session a port is not kept without a command, and a full range is refused", async () => {
  assert.equal((await shell("leasehold port 2>/dev/null")).code, 2);
  assert.equal((await shell("leasehold port --range 9-1 -- true 2>/dev/null")).code, 2);
  const busy = createServer();
  await new Promise<void>((resolve) => busy.listen(0, "127.0.0.1", resolve));
  const address = busy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  assert.equal((await shell(`leasehold port --range ${port}-${port} -- true 2>/dev/null`)).code, 107);
  busy.close();
});
