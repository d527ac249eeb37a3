/** The cost of one durable append on this machine: the unit of the other figures. */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { percentile } from "./children.ts";

export function measureFsync(rounds = 400): number {
  const folder = mkdtempSync(join(tmpdir(), "leasehold-fsync-"));
  const file = openSync(join(folder, "log"), "a");
  const page = Buffer.alloc(4096, 1);
  const times: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    writeSync(file, page);
    fdatasyncSync(file);
    times.push(performance.now() - began);
  }
  closeSync(file);
  rmSync(folder, { recursive: true });
  return percentile(
    times.sort((a, b) => a - b),
    0.5,
  );
}
