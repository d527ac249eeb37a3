/** The command line: which command is meant, what it is given, and how it ends. */
import { checkWords, globalFlags, nearest, readLine } from "./arguments.ts";
import type { Call, Command, Environment } from "./command.ts";
import { commands } from "./commands.ts";
import { connect, readAddress } from "./connection.ts";
import { exitCodes } from "./exit-codes.ts";
import { describeFailure } from "./failure.ts";
import { commandHelp, groupHelp, overview } from "./help.ts";
import { createOutput, type Output } from "./output.ts";
import { UsageProblem } from "./problem.ts";
import { resourceName } from "./resource-names.ts";
import { version } from "./version.ts";

/** Runs the line to its end, and ends the process with its code. */
export async function main(args: readonly string[], environment: Environment): Promise<never> {
  // Whoever reads our output may have seen enough: `leasehold ls | head`.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => process.exit(error.code === "EPIPE" ? 0 : 1));
  const code = await runLine(args, environment);
  await new Promise<void>((resolve) => process.stdout.write("", () => resolve()));
  process.exit(code);
}

async function runLine(args: readonly string[], environment: Environment): Promise<number> {
  const isJson = args.slice(0, args.includes("--") ? args.indexOf("--") : args.length).includes("--json");
  const out = createOutput(process, environment, isJson);
  let url: string | null = null;
  try {
    const found = findCommand(args);
    if (found === null) return helpFor(args, out);
    const { command, rest } = found;
    const asksHelp = rest.slice(0, rest.includes("--") ? rest.indexOf("--") : rest.length);
    if (asksHelp.includes("--help") || asksHelp.includes("-h")) return say(out, commandHelp(command, out.paint));
    if (command.settings === true) return await command.run(bareCall(rest, environment, out));
    const line = readLine(command, rest);
    checkWords(command, line.words);
    const address = readAddress(line, environment);
    ({ url } = address);
    const cwd = process.cwd();
    const open: Awaited<ReturnType<typeof connect>>[] = [];
    const call: Call = {
      ...line,
      environment,
      cwd,
      out,
      url,
      resource: (name) => resourceName(name, cwd),
      connect: async () => {
        const client = await connect(address);
        open.push(client);
        return client;
      },
    };
    try {
      return await command.run(call);
    } finally {
      for (const client of open) await client.close();
    }
  } catch (error) {
    const { line, code, body } = describeFailure(error, url);
    if (isJson && body !== null && typeof body === "object") out.json(body);
    out.note(line);
    return code;
  }
}

/** The longest name that the line begins with: "tasks add" before "tasks". */
function findCommand(args: readonly string[]): { readonly command: Command; readonly rest: readonly string[] } | null {
  if (args[0] === "help") return null;
  for (const length of [2, 1]) {
    const name = args.slice(0, length).join(" ");
    const command = commands.find((one) => one.name === name);
    if (command !== undefined && args.length >= length) return { command, rest: args.slice(length) };
  }
  return null;
}

/** No command: what there is, or a word on what was probably meant. */
function helpFor(args: readonly string[], out: Output): number {
  const words = args.filter((arg) => !arg.startsWith("-"));
  const topics = words[0] === "help" ? words.slice(1) : [...words];
  const flag = args.find((arg) => arg.startsWith("-") && !knownAlone.includes(arg));
  if (flag !== undefined && words.length === 0) {
    throw new UsageProblem(`there is no flag ${flag} without a command; \`leasehold help\` lists what there is`);
  }
  if (args.includes("--version") || args.includes("-V")) return say(out, `${version}\n`);
  if (words[0] === "help" && topics.length === 0 && args.length > 1) topics.push("help");
  if (topics.length === 0) return say(out, overview(commands, version, out.paint));
  const name = topics.slice(0, 2).join(" ");
  const exact = commands.find((one) => one.name === name || one.name === topics[0]);
  if (words[0] === "help" && exact !== undefined) return say(out, commandHelp(exact, out.paint));
  const [first = ""] = topics;
  const group = commands.filter((one) => one.name.startsWith(`${first} `));
  const asked = words[0] === "help" || args.includes("--help") || args.includes("-h");
  if (group.length > 0 && asked) return say(out, groupHelp(first, group, out.paint));
  if (group.length > 0) {
    const names = group.map((one) => one.name.slice(first.length + 1)).join(", ");
    throw new UsageProblem(`\`leasehold ${first}\` takes one of ${names}; see \`leasehold ${first} --help\``);
  }
  const near = nearest(
    first,
    commands.flatMap((one) => [one.name, one.name.split(" ")[0] ?? ""]),
  );
  throw new UsageProblem(
    `"${first}" is no command${near === null ? "" : `; did you mean ${near}?`}; \`leasehold help\` lists them`,
  );
}

const knownAlone = Object.entries(globalFlags).flatMap(([name, { short }]) => [`--${name}`, `-${short}`]);

function say(out: Output, text: string): number {
  out.print(text);
  return exitCodes.done;
}

/** For a command that reads its flags itself. */
function bareCall(args: readonly string[], environment: Environment, out: Output): Call {
  const none = (): never => {
    throw new TypeError("this command reads its own flags");
  };
  const reading = { isSet: none, text: none, texts: none, durationMs: none, integer: none, choice: none };
  return {
    ...reading,
    words: args,
    tokens: [],
    behind: [],
    environment,
    cwd: process.cwd(),
    out,
    url: "",
    resource: none,
    connect: none,
  };
}
