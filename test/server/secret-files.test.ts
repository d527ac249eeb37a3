/** Files with secrets, while somebody swaps what their names mean. */
import assert from "node:assert/strict";
import { chmodSync, copyFileSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { Worker } from "node:worker_threads";
import { MasterKey } from "../../src/server/cluster/secrets.ts";
import { readKeyFile } from "../../src/trust/key-file.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/** Puts a file that is its owner's alone and one that others may read under one name, in turns, as fast as it can. */
const swapping = `
  const { linkSync, renameSync, rmSync } = require("node:fs");
  const { workerData: { file, own, open, stop } } = require("node:worker_threads");
  const flag = new Int32Array(stop);
  for (let n = 0; Atomics.load(flag, 0) === 0; n++) {
    rmSync(file + ".next", { force: true });
    linkSync(n % 2 === 0 ? own : open, file + ".next");
    renameSync(file + ".next", file);
    Atomics.store(flag, 1, 1);
  }`;
const readings = 20_000;

interface Swapped {
  /** The name that the reader is given. */
  readonly file: string;
  readonly own: string;
  readonly open: string;
  /** What a reading shows of the file's content; it throws where the file is refused. */
  readonly read: () => string;
}

async function readWhileSwapped({ file, own, open, read }: Swapped): Promise<{ shown: Set<string>; refused: number }> {
  const stop = new SharedArrayBuffer(8);
  const flag = new Int32Array(stop);
  const worker = new Worker(swapping, { eval: true, workerData: { file, own, open, stop } });
  const ended = new Promise((resolve, reject) => worker.once("exit", resolve).once("error", reject));
  while (Atomics.load(flag, 1) === 0) await new Promise((resolve) => setTimeout(resolve, 1));
  const shown = new Set<string>();
  let refused = 0;
  for (let n = 0; n < readings; n++) {
    try {
      shown.add(read());
    } catch {
      refused++;
    }
  }
  Atomics.store(flag, 0, 1);
  await ended;
  return { shown, refused };
}

function twoFiles(folder: string, name: string, [ofOwner, ofAll]: readonly [string, string]) {
  const [file, own, open] = [join(folder, name), join(folder, "own"), join(folder, "open")];
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(own, ofOwner, { mode: 0o600 });
  writeFileSync(open, ofAll);
  chmodSync(open, 0o644);
  copyFileSync(own, `${file}.first`);
  renameSync(`${file}.first`, file);
  return { file, own, open };
}

test("S5: of a key file that is swapped, what is read is what was found to be its owner's alone", async () => {
  const files = twoFiles(temporaryFolder("leasehold-secrets-"), "key", ["lhk_own", "lhk_open"]);
  const { shown, refused } = await readWhileSwapped({ ...files, read: () => readKeyFile(files.file) });
  assert.deepEqual([...shown], ["lhk_own"]);
  assert.ok(refused > 0);
});

test("S5: of a master key that is swapped, what is read is what was found to be its owner's alone", async () => {
  const [ofOwner, ofAll] = ["a".repeat(40), "b".repeat(40)];
  const folder = temporaryFolder("leasehold-secrets-");
  const files = twoFiles(folder, "master.key", [ofOwner, ofAll]);
  const sealed = new MasterKey(files.own).seal("n", "of the owner");
  const read = (): string => {
    const key = new MasterKey(files.file);
    try {
      return key.open("n", sealed);
    } catch {
      return "another key";
    }
  };
  const { shown, refused } = await readWhileSwapped({ ...files, read });
  assert.deepEqual([...shown], ["of the owner"]);
  assert.ok(refused > 0);
});
