/**
 * What a cell has bound and fenced, on disk: written before a binding is set up and after it is gone. A cell that was
 * killed knows from it what to tear down before it binds anything (G7). Without a file it remembers nothing.
 */

import { closeSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from "node:fs";
import type { CellLease } from "./binding.ts";

interface CellMemory {
  readonly leases: readonly CellLease[];
  readonly fences: Readonly<Record<string, string>>;
}

/** What a file of version 0.1 does not have; its leases are only torn down. */
const ofVersion01 = { predicate: "MUTATES", holder: "" } as const;

export class Journal {
  private readonly file: string | null;

  constructor(file: string | null) {
    this.file = file;
  }

  read(): CellMemory {
    if (this.file === null) return { leases: [], fences: {} };
    let text: string;
    try {
      text = readFileSync(this.file, "utf8");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return { leases: [], fences: {} };
      throw unusable(this.file, String((error as NodeJS.ErrnoException).code));
    }
    try {
      const { leases, fences } = JSON.parse(text) as CellMemory;
      if (Array.isArray(leases) && typeof fences === "object" && fences !== null) {
        return { leases: leases.map((lease) => ({ ...ofVersion01, ...lease })), fences };
      }
    } catch {
      // Said below.
    }
    throw unusable(this.file, "it is damaged");
  }

  /** Whole or not at all, and lasting when this returns. */
  write(memory: CellMemory): void {
    if (this.file === null) return;
    const partial = `${this.file}.new`;
    // A link that somebody has put there is not followed.
    rmSync(partial, { force: true });
    const handle = openSync(partial, "wx", 0o600);
    try {
      writeSync(handle, JSON.stringify(memory));
      fsyncSync(handle);
    } finally {
      closeSync(handle);
    }
    renameSync(partial, this.file);
  }
}

function unusable(file: string, why: string): Error {
  return new Error(
    `the cell's state in ${file} cannot be used (${why}); put it back, or move it away once its resources are clean`,
  );
}
