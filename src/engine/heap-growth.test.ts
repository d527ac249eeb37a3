import assert from "node:assert/strict";
import { test } from "node:test";
import { boundHeapGrowth } from "./heap-growth.ts";

test("a large heap may grow by less than it would, until it is small again; a small one is left alone", () => {
  const flags: string[] = [];
  let mebibytes = 100;
  const growth = boundHeapGrowth(
    () => mebibytes * 2 ** 20,
    (flag) => flags.push(flag),
  );
  for (mebibytes of [100, 380]) growth.look();
  assert.deepEqual(flags, []);
  for (mebibytes of [400, 700, 300, 200]) growth.look();
  assert.deepEqual(flags, ["--heap-growing-percent=90"]);
  mebibytes = 190;
  growth.look();
  growth.close();
  assert.deepEqual(flags, ["--heap-growing-percent=90", "--heap-growing-percent=0"]);
});
