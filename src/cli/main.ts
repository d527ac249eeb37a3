/** The command line: which command is meant, what it is given, and how it ends. */
import { strangerWarning } from "../names/file-resource.ts";
import { checkWords, globalFlags, nearest, readLine } from "./arguments.ts";
import type { Call, Command, Environment } from "./command.ts";
import { allCommands, commandsUnder } from "./commands.ts";
import { connect, nowhere, readAddress } from "./connection.ts";
import { exitCodes } from "./exit-codes.ts";
import { Output } from "./output.ts";
import { UsageProblem } from "./problem.ts";
import { resourceName } from "./resource-names.ts";

/** Runs the line to its end, and ends the process with its code. */
export async function main(args: readonly string[], environment: Environment): Promise<never> {
  // The reader of our output may close it early: `leasehold ls | head`.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  const code = await runLine(args, environment);
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  process.exit(code);
}

async function runLine(args: readonly string[], environment: Environment): Promise<number> {
  const own = args.slice(0, args.includes("--") ? args.indexOf("--") : args.length);
  const isJson = own.includes("--json");
  const out = new Output(environment, isJson);
  let url: string | null = null;
  try {
    const found = await findCommand(args.length === 0 ? ["start"] : args);
    if (found === null) return (await helpFor(args, out)) ?? exitCodes.done;
    const { command, rest } = found;
    const flags = rest.slice(0, rest.includes("--") ? rest.indexOf("--") : rest.length);
    if (flags.includes("--help") || flags.includes("-h")) {
      out.print((await import("./help.ts")).commandHelp(command, out.paint));
      return exitCodes.done;
    }
    if (flags.includes("--version")) return await printVersion(out);
    const cwd = process.cwd();
    const line = readLine(command, rest);
    checkWords(command, line.words);
    const address = command.offline === true ? nowhere : readAddress(line, environment, cwd);
    ({ url } = address);
    let client: ReturnType<typeof connect> | null = null;
    const call: Call = {
      ...line,
      environment,
      cwd,
      out,
      url,
      key: address.key,
      address,
      resource: (name) => {
        const found = resourceName(name, cwd);
        const warning = strangerWarning(found, cwd);
        if (warning !== null) out.note(warning);
        return found;
      },
      connect: () => {
        client ??= connect(address);
        return client;
      },
      commands: (first) => (first === undefined ? allCommands() : commandsUnder(first)),
      ask: async (name, input, options) => {
        const asked = (await call.connect()).call(name, input, options);
        return notingSilence(asked, () => out.note(`waits for ${url} to answer`));
      },
    };
    try {
      return (await command.run(call)) ?? exitCodes.done;
    } finally {
      await (await (client as ReturnType<typeof connect> | null))?.close();
    }
  } catch (error) {
    const { describeFailure } = await import("./failure.ts");
    const { line, code, body } = describeFailure(error, url);
    if (isJson && body !== null && typeof body === "object") out.json(body);
    out.note(line);
    return code;
  }
}

const silenceMs = 2_000;

/** Shows a person at a terminal what takes so long. */
async function notingSilence<T>(work: Promise<T>, note: () => void): Promise<T> {
  if (process.stderr.isTTY !== true) return work;
  const timer = setTimeout(note, silenceMs);
  return work.finally(() => clearTimeout(timer));
}

/** The longest name that the line begins with: "tasks add" before "tasks". Flags of all commands may stand before it. */
async function findCommand(
  args: readonly string[],
): Promise<{ readonly command: Command; readonly rest: readonly string[] } | null> {
  const before = leadingFlags(args);
  const [first = "", ...behind] = args.slice(before);
  if (first === "help") return null;
  const under = await commandsUnder(first);
  const between = leadingFlags(behind);
  const named = under.find((one) => one.name === `${first} ${behind[between]}`);
  if (named !== undefined) {
    const flags = [...args.slice(0, before), ...behind.slice(0, between)];
    return { command: named, rest: [...flags, ...behind.slice(between + 1)] };
  }
  const alone = under.find((one) => one.name === first);
  return alone === undefined ? null : { command: alone, rest: [...args.slice(0, before), ...behind] };
}

/** How many words at the beginning are flags of all commands, with their values. */
function leadingFlags(args: readonly string[]): number {
  let at = 0;
  for (;;) {
    const arg = args[at] ?? "";
    const flag = Object.entries(globalFlags).find(([name]) => arg === `--${name}` || arg.startsWith(`--${name}=`));
    if (flag === undefined) return at;
    const [, { sign }] = flag;
    at += sign !== undefined && !arg.includes("=") ? 2 : 1;
  }
}

/** No command was found: prints help where it was asked for, or says what was probably meant. */
async function helpFor(args: readonly string[], out: Output): Promise<number | undefined> {
  const words = args.slice(leadingFlags(args)).filter((arg) => !arg.startsWith("-"));
  const topics = words[0] === "help" ? words.slice(1) : [...words];
  const flag = args.find((arg) => arg.startsWith("-") && !knownAlone.includes(arg));
  if (flag !== undefined && words.length === 0) {
    throw new UsageProblem(`there is no flag ${flag} without a command; \`leasehold help\` lists the commands`);
  }
  if (args.some((arg) => ["--version", "-V", "-v"].includes(arg))) return printVersion(out);
  if (words[0] === "help" && topics.length === 0 && args.length > 1) topics.push("help");
  const { overview, commandHelp, groupHelp } = await import("./help.ts");
  if (topics.length === 0) return void out.print(await overview(out.paint));
  const [first = ""] = topics;
  const under = await commandsUnder(first);
  const exact = under.find(({ name }) => name === topics.slice(0, 2).join(" ") || name === first);
  if (words[0] === "help" && exact !== undefined) return void out.print(commandHelp(exact, out.paint));
  if (under.length > 0) {
    const wantsHelp = words[0] === "help" || args.includes("--help") || args.includes("-h");
    if (wantsHelp) return void out.print(groupHelp(first, under, out.paint));
    const names = under.map(({ name }) => name.slice(first.length + 1)).join(", ");
    throw new UsageProblem(`\`leasehold ${first}\` takes one of ${names}; see \`leasehold ${first} --help\``);
  }
  const known = (await allCommands()).flatMap(({ name }) => [name, name.split(" ")[0] ?? ""]);
  const near = nearest(first, known);
  throw new UsageProblem(
    `unknown command "${first}"${near === null ? "" : `; did you mean ${near}?`}; \`leasehold help\` lists the commands`,
  );
}

const knownAlone = [...Object.entries(globalFlags).flatMap(([name, { short }]) => [`--${name}`, `-${short}`]), "-v"];

async function printVersion(out: Output): Promise<number> {
  const { version } = await import("../server/config/version.ts");
  out.print(`${version}\n`);
  return exitCodes.done;
}
