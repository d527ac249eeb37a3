/** Of the package, which is the one place that has it. */
import { readFileSync } from "node:fs";
export const version: string = (
  JSON.parse(readFileSync(new URL("../../../package.json", import.meta.url), "utf8")) as { readonly version: string }
).version;
