/** Reads a command's flags: those of the settings, and its own. */
import { parseArgs } from "node:util";
import { type Config, ConfigProblem, names, settings } from "./config.ts";

export function readFlags(args: readonly string[], others: Readonly<Record<string, "string" | "boolean">> = {}) {
  const options: Record<
    string,
    { readonly type: "string" | "boolean"; readonly multiple?: boolean; readonly short?: string }
  > = {
    config: { type: "string" },
    help: { type: "boolean", short: "h" },
    version: { type: "boolean", short: "v" },
  };
  for (const name of names) options[settings[name].flag] = { type: "string", multiple: isList(name) };
  for (const [name, type] of Object.entries(others)) options[name] = { type };
  try {
    return parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    const [sentence = ""] = (error instanceof Error ? error.message : String(error)).split(/[.\n]/);
    throw new ConfigProblem(`${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}; --help lists what there is`);
  }
}

function isList(name: keyof Config): boolean {
  return Array.isArray(settings[name].usual);
}
