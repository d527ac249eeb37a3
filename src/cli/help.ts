/** Help, generated from the tables that the line is parsed by. */
import { version } from "../server/config/version.ts";
import { globalFlags, sharedFlags } from "./arguments.ts";
import type { Command, Flags } from "./command.ts";
import { commandsOf, groups } from "./commands.ts";
import { type ExitName, exitCodes, exitMeaning } from "./exit-codes.ts";
import type { Paint } from "./paint.ts";
import { wrap } from "./wrapping.ts";

export async function overview(paint: Paint): Promise<string> {
  const sections = Object.entries(groups).map(async ([title, group]) => {
    const lines = (await commandsOf(group)).map(({ name, summary }) => `  ${name.padEnd(20)}${summary}`);
    return `${paint.bold(title)}\n${lines.join("\n")}`;
  });
  return `${[
    `Leasehold ${version}: time-bounded leases for fleets of AI agents and workers`,
    `${paint.bold("Usage")}\n  leasehold COMMAND [flags]     leasehold COMMAND --help has the rest`,
    ...(await Promise.all(sections)),
    `${paint.bold("Flags of all commands")}\n${flagLines(globalFlags)}`,
    `${paint.bold("Examples")}\n${[
      "  leasehold",
      "  leasehold run -x src/auth.ts -s src/types/ -- npm run build",
      "  leasehold ls",
      "  leasehold top",
    ].join("\n")}`,
    `${paint.bold("Exit codes")}\n${exitLines(["done", "failed", "usage", "notGranted", "leaseLost"])}\n  docs/cli.md of the package has them all.`,
  ].join("\n\n")}\n`;
}

export function commandHelp(command: Command, paint: Paint): string {
  const { name, usage = "", summary, about, flags = {}, examples } = command;
  const parts = [
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    `${paint.bold("Usage")}\n  leasehold ${`${name} ${usage}`.trim()}`,
    ...(about === undefined ? [] : [reflow(about)]),
    ...(/\bRES\b/.test(usage) ? [reflow(resourceWords)] : []),
    ...(Object.keys(flags).length === 0 ? [] : [`${paint.bold("Flags")}\n${flagLines(flags)}`]),
    `${paint.bold("Flags of all commands")}\n${flagLines(sharedFlags(command))}`,
    `${paint.bold("Examples")}\n${examples.map(([line, what]) => `  ${line}\n      ${paint.dim(what)}`).join("\n")}`,
  ];
  return `${parts.join("\n\n")}\n`;
}

const resourceWords =
  "RES is a name with a type in capital letters, such as GPU:/rack-1/a100, or a path: src/auth.ts is " +
  "FILE:/<repository>/src/auth.ts from every folder of the repository, and src/ with its slash is all that is below it.";

/** For a word that several commands begin with: "tasks". */
export function groupHelp(name: string, commands: readonly Command[], paint: Paint): string {
  const lines = commands.map(
    ({ name: full, usage = "", summary }) => `  ${`leasehold ${full} ${usage}`.trim()}\n      ${summary}`,
  );
  const examples = commands.flatMap((command) => command.examples.slice(0, 1).map(([line]) => `  ${line}`));
  return `${[
    `${paint.bold("Usage")}\n  leasehold ${name} COMMAND [flags]     leasehold ${name} COMMAND --help has the rest`,
    `${paint.bold("Commands")}\n${lines.join("\n")}`,
    `${paint.bold("Examples")}\n${examples.join("\n")}`,
  ].join("\n\n")}\n`;
}

function flagLines(flags: Flags): string {
  const rows = Object.entries(flags).map(([name, { sign, short, words, many }]) => ({
    shown: `${short === undefined ? "    " : `-${short}, `}--${name}${sign === undefined ? "" : ` ${sign}`}`,
    words: `${words}${many === true ? "; may be repeated" : ""}`,
  }));
  const width = Math.max(26, ...rows.map(({ shown }) => shown.length + 2));
  return rows.map(({ shown, words }) => wrap(`  ${shown.padEnd(width)}`, words, width + 2)).join("\n");
}

/** Paragraphs are written for the source's width, and shown in the terminal's. */
function reflow(text: string): string {
  return text
    .split("\n\n")
    .map((paragraph) => wrap("", paragraph.replaceAll("\n", " "), 0))
    .join("\n\n");
}

function exitLines(names: readonly ExitName[]): string {
  return names.map((name) => `  ${String(exitCodes[name]).padEnd(5)}${exitMeaning(name)}`).join("\n");
}
