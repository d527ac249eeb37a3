/** Which test file found each planted fault when it was last run: it is tried first, and saves the others. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export const caughtByPath = "scripts/mutants/caught-by.json";

const path = join(import.meta.dirname, "../..", caughtByPath);

/** From a fault's name to a path in the repository. */
export function readCaughtBy(): ReadonlyMap<string, string> {
  if (!existsSync(path)) return new Map();
  return new Map(Object.entries(JSON.parse(readFileSync(path, "utf8")) as Record<string, string>));
}

export function writeCaughtBy(entries: readonly (readonly [name: string, file: string])[]): void {
  writeFileSync(path, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
}
