/** Builds the page of a copy of the sources, as its servers show it. */
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Mutant } from "./planted.ts";

export function isOfPage({ file }: Mutant): boolean {
  return file.startsWith("../../dashboard/");
}

/** Whether it could be built: a fault that cannot is not one that a test found. */
export function buildPageOf(copy: string): Promise<boolean> {
  const folder = join(copy, "dashboard");
  const vite = [join(folder, "node_modules/vite/bin/vite.js"), "build", "--logLevel", "error"];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, vite, { cwd: folder, stdio: ["ignore", "ignore", "inherit"] });
    child.once("error", reject);
    child.once("close", (code) => {
      // Without its stamp a server takes the page for missing.
      if (code === 0) writeFileSync(join(folder, "dist/built-from"), "");
      resolve(code === 0);
    });
  });
}
