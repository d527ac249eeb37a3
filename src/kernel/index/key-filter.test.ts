import assert from "node:assert/strict";
import { test } from "node:test";
import { addKey, createKeyFilter, mayHaveKey } from "./key-filter.ts";

test("W10: every key that was added is found until its time is over, and few others are", () => {
  const filter = createKeyFilter(0);
  const count = 200_000;
  for (let n = 0; n < count; n++) addKey(filter, `agent\nkey-${n}`, 1_000 + n, n);
  let wrong = 0;
  for (let n = 0; n < count; n++) {
    assert.ok(mayHaveKey(filter, `agent\nkey-${n}`, 999 + n), `key ${n}`);
    if (mayHaveKey(filter, `agent\nother-${n}`, 999)) wrong++;
  }
  assert.ok(wrong < count / 50, `${wrong} of ${count}`);
  assert.ok(!mayHaveKey(filter, `agent\nkey-${count - 1}`, 1_000 + count));
});

test("S4: what is over leaves memory, and blocks are bounded however many keys come", () => {
  const filter = createKeyFilter(0);
  for (let n = 0; n < 400_000; n++) addKey(filter, `${n}`, n + 10, n);
  assert.ok(filter.blocks.length <= 2);
});
