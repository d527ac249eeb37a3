import assert from "node:assert/strict";
import { test } from "node:test";
import { patchPaths } from "./patch.ts";

test("an apply_patch envelope tells which files it adds, changes, deletes and moves", () => {
  const text = `*** Begin Patch
*** Add File: src/new.ts
+x
*** Update File: src/a.ts
@@
-a
+b
*** Update File: src/old.ts
*** Move to: src/renamed.ts
@@
*** Delete File: src/gone.ts
*** End Patch`;
  assert.deepEqual(patchPaths(text), {
    changed: ["src/new.ts", "src/a.ts"],
    deleted: ["src/gone.ts"],
    renamed: [["src/old.ts", "src/renamed.ts"]],
  });
});

test("a unified diff tells them too, and a text that is none names nothing", () => {
  const diff = "--- a/src/a.ts\t2026\n+++ b/src/a.ts\n@@ -1 +1 @@\n-a\n+b\n--- a/gone.ts\n+++ /dev/null\n";
  assert.deepEqual(patchPaths(diff), { changed: ["src/a.ts"], deleted: ["gone.ts"], renamed: [] });
  assert.equal(patchPaths("hello"), null);
});
