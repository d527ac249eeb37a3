/** Random numbers for ids and jitter, drawn from the system in large portions because each draw is a system call. */
import { randomFillSync } from "node:crypto";
import type { Entropy } from "../kernel/contract/commands.ts";

const pool = new Uint32Array(16_384);
let used = pool.length;

export function drawEntropy(): Entropy {
  if (used >= pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const first = pool[used] ?? 0;
  const second = pool[used + 1] ?? 0;
  used += 2;
  return [first, second];
}
