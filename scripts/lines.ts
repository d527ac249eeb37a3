/**
 * How many lines of code `src` has by folder: written by hand, for production. Comments and blank lines do not count, nor
 * do generated files, tests, and what only tests use.
 *
 * Usage: npm run lines [-- --files]     --files lists each file too
 */
import { parseArgs } from "node:util";
import { readSources, withoutComments } from "../test/sources/imports.ts";

const generated = /\.gen\.ts$|^src\/sdk\/wire\.ts$/;
const forTests = /\.(?:test|child)\.ts$|\/testing\/|^src\/store\/contract|^src\/ledger\/sample-/;

const { values: flags } = parseArgs({ options: { files: { type: "boolean", default: false } } });
const totals = new Map<string, number>();
for (const { path, text } of readSources("src/**/*.ts")) {
  if (generated.test(path) || forTests.test(path)) continue;
  const lines = withoutComments(text)
    .split("\n")
    .filter((line) => line.trim() !== "").length;
  if (flags.files) console.log(`${String(lines).padStart(7)}  ${path}`);
  const folder = path.split("/").slice(0, -1).join("/");
  totals.set(folder, (totals.get(folder) ?? 0) + lines);
}
for (const [folder, lines] of totals) console.log(`${String(lines).padStart(7)}  ${folder}/`);
console.log(`${String(Array.from(totals.values()).reduce((sum, lines) => sum + lines, 0)).padStart(7)}  in all`);
