import { run } from "./run.ts";

/**
 * Lint and format first, types second: the faster check comes first. Resolves with the exit code of the first
 * failure.
 */
export async function check(biomeFlags: readonly string[] = []): Promise<number> {
  const lint = await run(["node_modules/@biomejs/biome/bin/biome", "check", ...biomeFlags]);
  if (lint !== 0) {
    console.error("check: Biome found problems. `npm run fix` applies automatic fixes.");
    return lint;
  }
  // The page has another library of types: a browser's.
  for (const project of [".", "dashboard"]) {
    const types = await run(["node_modules/typescript/bin/tsc", "--noEmit", "-p", project]);
    if (types === 0) continue;
    console.error("check: type errors; see above.");
    return types;
  }
  return 0;
}

if (import.meta.main) process.exitCode = await check(process.argv.slice(2));
