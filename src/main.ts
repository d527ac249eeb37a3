/**
 * `npm start`: the command line, with `serve` as the command where none is named. `keys` works on the data unless a
 * server is named, because the first key is made before there is a server.
 */
import { enableCompileCache } from "node:module";
import { fileURLToPath } from "node:url";

// The cache is code that will be run, so it lies beside the code, where others cannot write.
enableCompileCache(fileURLToPath(new URL("../node_modules/.cache/leasehold", import.meta.url)));

const { main } = await import("./cli/main.ts");
await main(lineOf(process.argv.slice(2)), process.env);

/** As `leasehold` takes it, with the data of this checkout in ./data, which git ignores. */
function lineOf(args: readonly string[]): readonly string[] {
  const [first = "serve"] = args;
  const line = first.startsWith("-") || args.length === 0 ? ["serve", ...args] : args;
  const says = (name: string) => args.some((arg) => arg === name || arg.startsWith(`${name}=`));
  const { LEASEHOLD_DATA, LEASEHOLD_CONFIG } = process.env;
  if (says("--data") || says("--config") || LEASEHOLD_DATA || LEASEHOLD_CONFIG) return line;
  if (["serve", "restore", "ledger"].includes(line[0] ?? "")) process.env["LEASEHOLD_DATA"] = "./data";
  const isOnData = line[0] === "keys" && !says("--url") && !says("--profile") && !says("--help");
  return isOnData ? [...line, "--data", "./data"] : line;
}
