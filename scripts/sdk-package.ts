/**
 * `@leasehold/sdk`: the SDK alone, for programs that need no server and no command line. It is compiled from the same
 * sources as the SDK in `leasehold`, and has no dependencies.
 *
 *   npm run build && npm publish ./dist-sdk
 */
import { copyFileSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { run } from "./run.ts";

export const sdkFolder = "dist-sdk";

export async function buildSdk(rename: (declarations: string) => string): Promise<number> {
  rmSync(sdkFolder, { recursive: true, force: true });
  mkdirSync(sdkFolder);
  const code = await run(["node_modules/typescript/bin/tsc", "-p", "tsconfig.sdk.json"]);
  if (code !== 0) return code;
  for (const path of globSync(`${sdkFolder}/**/*.d.ts`)) writeFileSync(path, rename(readFileSync(path, "utf8")));
  writeFileSync(`${sdkFolder}/package.json`, `${JSON.stringify(sdkManifest(), null, 2)}\n`);
  copyFileSync("LICENSE", `${sdkFolder}/LICENSE`);
  writeFileSync(`${sdkFolder}/README.md`, sdkReadme());
  return 0;
}

/** What the two packages have in common is said once, in package.json. */
export function sdkManifest(): object {
  const main = JSON.parse(readFileSync("package.json", "utf8")) as Readonly<Record<string, unknown>>;
  const { version, license, keywords, engines, publishConfig } = main;
  const entry = { types: "./dist/sdk/index.d.ts", default: "./dist/sdk/index.js" };
  return {
    name: "@leasehold/sdk",
    version,
    description: "The client of Leasehold: leases, tasks and events for AI agents and workers, without dependencies.",
    license,
    keywords,
    type: "module",
    sideEffects: false,
    engines,
    exports: { ".": entry, "./package.json": "./package.json" },
    files: ["dist"],
    publishConfig,
  };
}

/** The page of the documentation, with this package's name. */
function sdkReadme(): string {
  return readFileSync("docs/sdk.md", "utf8").replaceAll("leasehold/sdk", "@leasehold/sdk");
}
