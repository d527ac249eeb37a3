/**
 * `npm start`: the command line, with `serve` as the command where none is named. `keys` works on the data unless a
 * server is named, because the first key is made before there is a server.
 */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// The cache is code that will be run, so it lies beside the code, where others cannot write.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/leasehold", import.meta.url)));

const { main } = await import("./cli/main.ts");
await main(await lineOf(process.argv.slice(2)), process.env);

async function lineOf(args: readonly string[]): Promise<readonly string[]> {
  const [first] = args;
  if (first === undefined || first.startsWith("-")) return ["serve", ...args];
  if (first !== "keys" || args.some((arg) => /^--(data|url|help)\b/.test(arg))) return args;
  const { loadConfig } = await import("./server/config/config.ts");
  return [...args, "--data", loadConfig({}, process.env).data];
}
