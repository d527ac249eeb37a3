import assert from "node:assert/strict";
import { test } from "node:test";
import { nearest } from "./arguments.ts";
import { readDurationMs, showDuration } from "./durations.ts";
import { createPaint } from "./paint.ts";
import { cut, cutFront, plain, plainLines, widthOf } from "./plain-text.ts";
import { tabbedText, tableText } from "./table.ts";

test("durations are read as people write them, and a bare number is in seconds", () => {
  const cases = {
    "500ms": 500,
    "30s": 30_000,
    "30": 30_000,
    "5m": 300_000,
    "1.5h": 5_400_000,
    "2d": 172_800_000,
    "0": 0,
  };
  for (const [text, ms] of Object.entries(cases)) assert.equal(readDurationMs(text), ms, text);
  for (const text of ["", "s", "5 s", "-5s", "5x", "1e3", "99999999999999h", "٣s"])
    assert.equal(readDurationMs(text), null, text);
});

test("durations are shown in two figures at most", () => {
  const cases = {
    0: "0ms",
    840: "840ms",
    12340: "12.3s",
    59949: "59.9s",
    59950: "1m00s",
    245000: "4m05s",
    7800000: "2h10m",
    273600000: "3d04h",
  };
  for (const [ms, text] of Object.entries(cases)) assert.equal(showDuration(Number(ms)), text);
});

test("a word that was nearly right is found, and one that was not is not", () => {
  assert.equal(nearest("rnu", ["run", "ls", "release"]), "run");
  assert.equal(nearest("relase", ["run", "ls", "release"]), "release");
  assert.equal(nearest("zzzzz", ["run", "ls"]), null);
  assert.equal(nearest("x", ["ls"]), null);
});

test("text of others keeps to its place: no control characters, widths as terminals count them", () => {
  assert.equal(plain("a\u001b[2J\u202eb\nc\u0007"), "a\u{fffd}[2J\u{fffd}b\u{fffd}c\u{fffd}");
  // A worker's result in the operator's terminal (L1 of the security review).
  assert.equal(plainLines("done\n\u001b]52;c;aGk=\u0007\r"), "done\n\u{fffd}]52;c;aGk=\u{fffd}\u{fffd}");
  assert.equal(widthOf("日本e\u0301"), 5);
  assert.equal(cut("日本語", 4), "日…");
  assert.equal(cutFront("FILE:/shop/src/auth.ts", 8), "…auth.ts");
  assert.equal(cut("abc", 0), "");
});

test("a table is as wide as the terminal where something can give way, and a pipe gets tabs", () => {
  const rows = [
    { id: "lse_1", name: "FILE:/a/very/long/name/of/a/file.ts" },
    { id: "lse_22", name: "X:/b" },
  ];
  const columns = [
    { title: "ID", cell: ({ id }: { id: string }) => id },
    { title: "NAME", cell: ({ name }: { name: string }) => name, gives: "middle" as const },
  ];
  assert.equal(
    tableText(rows, columns, createPaint(false), 24),
    "ID      NAME\nlse_1   FILE:/…a/file.ts\nlse_22  X:/b\n",
  );
  assert.equal(tabbedText(rows, columns), "lse_1\tFILE:/a/very/long/name/of/a/file.ts\nlse_22\tX:/b\n");
});
