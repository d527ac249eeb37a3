import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { leaveThingsYoung } from "./pretenuring.ts";

test("the flag is one that this V8 knows", () => {
  const flags: string[] = [];
  leaveThingsYoung((flag) => flags.push(flag));
  assert.deepEqual(flags, ["--no-allocation-site-pretenuring"]);
  // V8 says nothing of a flag that it does not know, so its own list is asked.
  const { stdout } = spawnSync(process.execPath, ["--v8-options"], { encoding: "utf8" });
  assert.match(stdout, /--allocation-site-pretenuring/);
});
