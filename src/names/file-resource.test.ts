import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { resourceName } from "../cli/resource-names.ts";
import { fileResource as ofSdk } from "../sdk/index.ts";
import { fileResource, strangerWarning } from "./file-resource.ts";
import { NamingProblem } from "./project-file.ts";

const place = realpathSync(mkdtempSync(join(tmpdir(), "leasehold-file-names-")));
after(() => rmSync(place, { recursive: true, force: true }));
for (const name of ["shop", "bank"]) {
  mkdirSync(join(place, name, ".git"), { recursive: true });
  mkdirSync(join(place, name, "src"));
  writeFileSync(join(place, name, ".git/config"), "[core]\n");
}
const shop = join(place, "shop");

test("the SDK and the command line have one spelling for a file", () => {
  assert.equal(ofSdk, fileResource);
  for (const path of ["src/auth.ts", "./src/auth.ts", "src/", "src/**/*.ts", "../bank/a.ts", join(shop, "x")]) {
    assert.equal(ofSdk(path, shop), resourceName(path, shop));
  }
  assert.equal(ofSdk("auth.ts", join(shop, "src")), "FILE:/shop/src/auth.ts");
  assert.throws(() => ofSdk("a.ts", place), NamingProblem);
  assert.throws(() => ofSdk("", shop), NamingProblem);
});

test("a FILE name whose first part is not a known repository is warned about", () => {
  assert.match(strangerWarning("FILE:/src/auth.ts", shop) ?? "", /"src" .* is FILE:\/shop\/src\/auth\.ts$/);
  for (const name of ["FILE:/shop/src/auth.ts", "FILE:/shop@feature/a", "FILE:/bank/a", "FILE:/**", "GPU:/src/a"]) {
    assert.equal(strangerWarning(name, shop), null, name);
  }
  assert.equal(strangerWarning("FILE:/src/auth.ts", place), null, "outside of a repository nothing is known");
});
