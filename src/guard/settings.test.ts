import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { readSettings, SettingsProblem } from "./settings.ts";

test("a guard's key is in the environment, or in a file that is its owner's alone", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-guard-key-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [own, open] = [join(folder, "own"), join(folder, "open")];
  writeFileSync(own, "lhk_file\n", { mode: 0o600 });
  writeFileSync(open, "lhk_file\n", { mode: 0o644 });
  assert.equal(readSettings(null, { LEASEHOLD_KEY_FILE: own }).key, "lhk_file");
  assert.equal(readSettings(null, { LEASEHOLD_KEY_FILE: open, LEASEHOLD_KEY: "lhk_said" }).key, "lhk_said");
  assert.equal(readSettings(null, {}).key, null);
  assert.throws(() => readSettings(null, { LEASEHOLD_KEY_FILE: open }), SettingsProblem);
});
