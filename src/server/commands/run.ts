/** Which command is meant, and what it is given. */
import { ConfigProblem, type Environment, loadConfig } from "../config/config.ts";
import { readFlags } from "../config/flags.ts";
import { helpText } from "../config/help.ts";
import { version } from "../config/version.ts";
import { exitCodes } from "./failure.ts";

/** Flags that only some commands take. */
const ownFlags: Readonly<Record<string, Readonly<Record<string, "string" | "boolean">>>> = {
  "keys create": { role: "string", tenant: "string", label: "string" },
  backup: { url: "string", key: "string" },
  restore: { force: "boolean" },
  "ledger verify": { file: "string", anchor: "string", tenant: "string" },
  "ledger export": { tenant: "string", out: "string" },
};

export async function runCommand(args: readonly string[], environment: Environment): Promise<number> {
  const name = commandOf(args);
  const { values, positionals } = readFlags(args.slice(name === "" ? 0 : name.split(" ").length), ownFlags[name]);
  const { help: wantsHelp, version: wantsVersion, force } = values;
  if (wantsHelp === true || name === "help") return print(helpText(version));
  if (wantsVersion === true) return print(`${version}\n`);
  const config = loadConfig(values, environment);
  const textOf = (flag: string): string | null => {
    const value = values[flag];
    return typeof value === "string" && value !== "" ? value : null;
  };
  const one = (what: string): string => {
    const [value, ...rest] = positionals;
    if (value === undefined || rest.length > 0) throw new ConfigProblem(`${name} takes ${what}; see --help`);
    return value;
  };
  // What a command needs is loaded when it is run: help, and a word on what is wrong, come at once.
  const keys = () => import("./keys.ts");
  switch (name) {
    case "":
    case "serve":
      if (positionals.length > 0) throw new ConfigProblem(`"${positionals[0]}" is no command; --help lists them`);
      return (await import("./serve.ts")).serve(config);
    case "keys create":
      return print(
        await (await keys()).createKey(config, {
          role: textOf("role"),
          tenant: textOf("tenant"),
          label: textOf("label"),
        }),
      );
    case "keys list":
      return print(await (await keys()).listKeys(config));
    case "keys delete":
      return print(await (await keys()).deleteKey(config, one("the id of one key")));
    case "backup": {
      const { LEASEHOLD_URL, LEASEHOLD_KEY } = environment;
      const target = { url: textOf("url") ?? LEASEHOLD_URL, key: textOf("key") ?? LEASEHOLD_KEY };
      const { fetchBackup } = await import("./backup.ts");
      return print(await fetchBackup(one("the name of one file to write"), config, target));
    }
    case "restore": {
      const { restoreBackup } = await import("./restore.ts");
      return print(restoreBackup(one("the name of one backup"), config, force === true));
    }
    case "ledger verify": {
      if (positionals.length > 0)
        throw new ConfigProblem("ledger verify takes flags only; an export is named by --file");
      const { verifyLedger } = await import("./ledger.ts");
      const wish = { data: config.data, file: textOf("file"), anchor: textOf("anchor"), tenant: textOf("tenant") };
      const { isWhole, text } = verifyLedger(wish);
      return print(text, isWhole ? exitCodes.done : exitCodes.failed);
    }
    case "ledger export": {
      if (positionals.length > 0) throw new ConfigProblem("ledger export takes flags only; the file is named by --out");
      const { exportLedger } = await import("./ledger.ts");
      return print((await exportLedger({ data: config.data, tenant: textOf("tenant"), out: textOf("out") })) ?? "");
    }
    default:
      throw new ConfigProblem(`"${name}" is no command; --help lists them`);
  }
}

/** The words before the first flag; "" where there is none. */
function commandOf([first, second]: readonly string[]): string {
  if (first === undefined || first.startsWith("-")) return "";
  const hasTwo = first === "keys" || first === "ledger";
  return hasTwo && second !== undefined && !second.startsWith("-") ? `${first} ${second}` : first;
}

function print(text: string, code: number = exitCodes.done): number {
  process.stdout.write(text);
  return code;
}
