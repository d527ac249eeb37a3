/**
 * Compiles src to dist for the package: type stripping does not work inside node_modules, so users get plain JavaScript
 * with declarations, and the SDK also as a package of its own. Only what the command line and the SDK import is compiled, no tests. The page is built by the set-up.
 */
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { bundleHook } from "./hook-bundle.ts";
import { manPage } from "./man-page.ts";
import { run } from "./run.ts";
import { buildSdk } from "./sdk-package.ts";

const outDir = "dist";

const pageFolder = "dashboard/dist";

export async function build(): Promise<number> {
  if (!existsSync(`${pageFolder}/index.html`)) {
    const failure = `${pageFolder}/build-failed.txt`;
    console.error(`build: there is no page. ${existsSync(failure) ? readFileSync(failure, "utf8") : ""}`);
    return 1;
  }
  rmSync(outDir, { recursive: true, force: true });
  const code = await run(["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"]);
  if (code !== 0) {
    console.error("build: type errors; see above.");
    return code;
  }
  for (const path of globSync(`${outDir}/**/*.d.ts`)) writeFileSync(path, withJsNames(readFileSync(path, "utf8")));
  writeFileSync(`${outDir}/guard/hook.cjs`, bundleHook());
  mkdirSync(`${outDir}/man`);
  writeFileSync(`${outDir}/man/leasehold.1`, await manPage());
  return buildSdk(withJsNames);
}

/** The compiler renames imports in JavaScript but not in declarations. */
export function withJsNames(declarations: string): string {
  return declarations.replaceAll(/((?:from|import)\s*\(?\s*")(\.{1,2}\/[^"]+)\.ts"/g, '$1$2.js"');
}

if (import.meta.main) process.exitCode = await build();
