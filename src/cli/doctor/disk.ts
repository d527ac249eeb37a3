/** Whether a folder's disk keeps what it says that it keeps, as far as that can be seen. */
import { closeSync, fdatasyncSync, openSync, rmSync, statfsSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Check } from "./server.ts";

const block = Buffer.alloc(4_096, 0x2e);
const writes = 64;
/** No disk with power-loss protection answers sooner, and memory does. */
const believableMs = 0.015;
const slowMs = 20;
const freeBytesMin = 1_073_741_824;
/** As Linux numbers them: what does not outlive the machine, and what other machines have a say in. */
const kinds: ReadonlyMap<number, readonly [name: string, why: string]> = new Map([
  [0x01021994, ["tmpfs", "it is memory, and gone with the next start"]],
  [0x858458f6, ["ramfs", "it is memory, and gone with the next start"]],
  [0x6969, ["nfs", "locks and syncs of a network disk are not to be relied on"]],
  [0x65735546, ["fuse", "what a sync means there is up to its maker"]],
]);

export async function checkDisk(folder: string): Promise<Check> {
  const name = "disk";
  const file = join(folder, `.leasehold-doctor-${process.pid}`);
  let times: readonly number[];
  let kind: readonly [string, string] | undefined;
  let freeBytes: number;
  try {
    const about = statfsSync(folder);
    kind = kinds.get(about.type);
    freeBytes = about.bavail * about.bsize;
    times = measure(file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { name, status: "problem", detail: `${folder} cannot be written to: ${why}` };
  } finally {
    rmSync(file, { force: true });
  }
  const sorted = times.toSorted((a, b) => a - b);
  const middle = sorted[Math.floor(sorted.length / 2)] ?? 0;
  const worst = sorted.at(-1) ?? 0;
  const figures = `4 KiB are durable in ${middle.toFixed(2)} ms (worst ${worst.toFixed(2)} ms)`;
  if (kind !== undefined)
    return { name, status: "warning", detail: `${folder} is on ${kind[0]}: ${kind[1]}; ${figures}` };
  if (freeBytes < freeBytesMin) {
    return {
      name,
      status: "warning",
      detail: `${folder} has only ${Math.floor(freeBytes / 1_048_576)} MiB left; ${figures}`,
    };
  }
  if (middle < believableMs) {
    return {
      name,
      status: "warning",
      detail: `${folder}: ${figures}, too quick to be true: is it memory, or a cache that may be lost?`,
    };
  }
  if (middle > slowMs) return { name, status: "warning", detail: `${folder}: ${figures}; that is slow` };
  return { name, status: "ok", detail: `${folder}: ${figures}` };
}

function measure(file: string): readonly number[] {
  const handle = openSync(file, "wx", 0o600);
  try {
    return Array.from({ length: writes }, () => {
      const began = performance.now();
      writeSync(handle, block);
      fdatasyncSync(handle);
      return performance.now() - began;
    });
  } finally {
    closeSync(handle);
  }
}
