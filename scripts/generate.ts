/**
 * Writes what is generated from src/kernel/contract and src/protocol, and the files that others install Leasehold from. A
 * test runs it and compares.
 *
 *   npm run generate               writes the files
 *   npm run generate -- --check    exits with 1 where one of them differs
 */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { codecText } from "./generate/codec.ts";
import { distribution } from "./generate/distribution.ts";
import { httpPageText } from "./generate/http-page.ts";
import { inputsText } from "./generate/inputs.ts";
import { pageReceiptText } from "./generate/page-receipt.ts";
import { receiptText } from "./generate/receipt.ts";
import { wireText } from "./generate/sdk-wire.ts";
import { sumsText } from "./generate/sums.ts";

const generated: Readonly<Record<string, () => string>> = {
  "src/kernel/contract/inputs.gen.ts": inputsText,
  "src/kernel/names/sums.gen.ts": sumsText,
  "src/engine/codec/records.gen.ts": codecText,
  "src/ledger/receipt-members.gen.ts": receiptText,
  "src/sdk/wire.ts": wireText,
  "dashboard/src/ledger/receipt-members.gen.ts": pageReceiptText,
  "docs/http.md": httpPageText,
  ...distribution,
};

/** The generated files that differ from what is there. */
export function findStale(): readonly { readonly path: string; readonly text: string }[] {
  return Object.entries(generated)
    .map(([path, write]) => ({ path, text: path.endsWith(".md") ? write() : formatted(path, write()) }))
    .filter(({ path, text }) => text !== current(path));
}

function current(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function formatted(path: string, text: string): string {
  const biome = ["node_modules/@biomejs/biome/bin/biome", "check", "--write", `--stdin-file-path=${path}`];
  const { stdout, stderr } = spawnSync(process.execPath, biome, { input: text, encoding: "utf8" });
  if (stdout === "") throw new Error(`Biome could not format ${path}: ${stderr}\n${text}`);
  return stdout;
}

if (import.meta.main) {
  const stale = findStale();
  const isCheck = process.argv.includes("--check");
  for (const { path, text } of stale) {
    console.error(isCheck ? `${path} is stale; run npm run generate` : `wrote ${path}`);
    if (isCheck) continue;
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  if (isCheck && stale.length > 0) process.exitCode = 1;
}
