import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";
import { Launcher } from "./launching.ts";
import { runForLease } from "./run-command.ts";

const options = {
  user: null,
  group: null,
  envPass: [],
  processesMax: null,
  memoryBytesMax: null,
  cpuSecondsMax: null,
};

const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/**
 * The end of all children is read in one go. Here the command ends while another child's output is read, so its end is
 * known in a turn of the loop that has not polled the command's own output.
 */
test("what a command printed before it ended is never missing, though another child ends in the same moment", async () => {
  const launcher = new Launcher(options);
  await launcher.prepare();
  const facts = { cell: "lab", resource: "VM:/a", event: "bind" };
  const command = ["/bin/sh", "-c", "sleep 0.5; echo vm-1"];
  const printed = runForLease({ launcher, command, facts, signal: AbortSignal.timeout(60_000) });
  const other = spawn("/bin/sh", ["-c", "echo other"], { stdio: ["ignore", "pipe", "ignore"] });
  other.stdout.once("data", () => block(1_500));
  block(200);
  assert.equal(await printed, "vm-1\n");
});

test("a command whose background process keeps its output open is not waited for", async () => {
  const launcher = new Launcher(options);
  await launcher.prepare();
  const command = ["/bin/sh", "-c", "sleep 30 & echo started"];
  const facts = { cell: "lab", resource: "VM:/b", event: "bind" };
  const began = performance.now();
  assert.equal(await runForLease({ launcher, command, facts, signal: AbortSignal.timeout(60_000) }), "started\n");
  assert.ok(performance.now() - began < 25_000);
});
