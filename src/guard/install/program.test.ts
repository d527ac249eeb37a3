import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findProgram, lastingPath, mcpProgram } from "./program.ts";

/** A search path with a program `leasehold` in this folder alone. */
function withProgramIn(folder: string, check: () => void): void {
  const place = mkdtempSync(join(tmpdir(), "leasehold-program-"));
  const own = join(place, folder);
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, "leasehold"), "#!/bin/sh\nexit 0\n");
  chmodSync(join(own, "leasehold"), 0o755);
  const { PATH: before = "" } = process.env;
  process.env["PATH"] = `${own}:/usr/bin:/bin`;
  try {
    check();
  } finally {
    process.env["PATH"] = before;
    rmSync(place, { recursive: true, force: true });
  }
}

test("hooks do not name a leasehold that only npx has on its path: it is gone when npx ends", () => {
  withProgramIn("home/.npm/_npx/5e8a/node_modules/.bin", () => {
    assert.match(findProgram("/nowhere", null)("claude"), /bin\/leasehold-hook$/);
    assert.match(findProgram("/nowhere", null)("git"), /bin\/leasehold\.cjs$/);
    const endpoint = mcpProgram("/nowhere", null);
    assert.ok("command" in endpoint && endpoint.command === process.execPath, JSON.stringify(endpoint));
  });
});

test("hooks name leasehold where it is installed for the user or the machine", () => {
  withProgramIn("usr/local/bin", () => assert.equal(findProgram("/nowhere", null)("claude"), "leasehold"));
});

test("the path that lasts has none of npm's own folders, and all others in their order", () => {
  const path = "/a/node_modules/.bin:/usr/local/bin:/npm/node-gyp-bin:/tools/node_modules/.bin/:/bin";
  assert.equal(lastingPath(path), "/usr/local/bin:/bin");
});
