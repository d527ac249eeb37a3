/** Help, made of the same tables that the line is read by. */
import { globalFlags } from "./arguments.ts";
import type { Command, Flags } from "./command.ts";
import { type ExitName, exitCodes, exitMeanings } from "./exit-codes.ts";
import type { Paint } from "./paint.ts";

interface Group {
  readonly title: string;
  readonly names: readonly string[];
}

const groups: readonly Group[] = [
  { title: "Work under a lease", names: ["run", "work"] },
  { title: "Leases", names: ["acquire", "renew", "release", "transfer", "verify", "revoke"] },
  { title: "Looking", names: ["ls", "top", "agents", "digest", "resources", "events"] },
  { title: "Tasks and receipts", names: ["tasks", "receipts", "inbox", "ledger"] },
  { title: "Running a server", names: ["serve", "doctor", "keys", "tenants", "backup", "restore"] },
];

export function overview(commands: readonly Command[], version: string, paint: Paint): string {
  const shown = new Set<string>();
  const section = (title: string, names: readonly string[]) => {
    const lines = names.flatMap((name) => {
      const found = commands.filter((command) => command.name === name || command.name.startsWith(`${name} `));
      for (const command of found) shown.add(command.name);
      return found.map(({ name: full, summary }) => `  ${full.padEnd(20)}${summary}`);
    });
    return lines.length === 0 ? [] : [`${paint.bold(title)}\n${lines.join("\n")}`];
  };
  const known = groups.flatMap(({ title, names }) => section(title, names));
  const rest = commands.filter(({ name }) => !shown.has(name)).map(({ name }) => name.split(" ")[0] ?? name);
  return `${[
    `Leasehold ${version}: time-bounded leases for fleets of AI agents and workers`,
    `${paint.bold("Usage")}\n  leasehold COMMAND [flags]     leasehold COMMAND --help has the rest`,
    ...known,
    ...section("More", [...new Set(rest)]),
    `${paint.bold("Flags of all commands")}\n${flagLines(globalFlags)}`,
    `${paint.bold("Examples")}\n${[
      "  leasehold serve",
      "  leasehold run -x src/auth.ts -s src/types/ -- npm run build",
      "  leasehold ls",
      "  leasehold top",
    ].join("\n")}`,
    `${paint.bold("Exit codes")}\n${exitLines(["done", "failed", "usage", "notGranted", "leaseLost"])}\n  docs/cli.md has them all.`,
  ].join("\n\n")}\n`;
}

export function commandHelp(command: Command, paint: Paint): string {
  const { name, usage, summary, about, flags, examples } = command;
  const parts = [
    `${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`,
    `${paint.bold("Usage")}\n  leasehold ${`${name} ${usage}`.trim()}`,
    ...(about === undefined ? [] : [about]),
    ...(Object.keys(flags).length === 0 ? [] : [`${paint.bold("Flags")}\n${flagLines(flags)}`]),
    `${paint.bold("Flags of all commands")}\n${flagLines(globalFlags)}`,
    `${paint.bold("Examples")}\n${examples.map(([line, what]) => `  ${line}\n      ${paint.dim(what)}`).join("\n")}`,
  ];
  return `${parts.join("\n\n")}\n`;
}

/** For a name that several commands begin with: "tasks". */
export function groupHelp(name: string, commands: readonly Command[], paint: Paint): string {
  const lines = commands.map(
    ({ name: full, usage, summary }) => `  ${`leasehold ${full} ${usage}`.trim()}\n      ${summary}`,
  );
  const examples = commands.flatMap((command) => command.examples.slice(0, 1).map(([line]) => `  ${line}`));
  return `${[
    `${paint.bold("Usage")}\n  leasehold ${name} COMMAND [flags]     with --help behind it for the rest`,
    `${paint.bold("Commands")}\n${lines.join("\n")}`,
    `${paint.bold("Examples")}\n${examples.join("\n")}`,
  ].join("\n\n")}\n`;
}

function flagLines(flags: Flags): string {
  return Object.entries(flags)
    .map(([name, { sign, short, words, many }]) => {
      const shown = `${short === undefined ? "    " : `-${short}, `}--${name}${sign === undefined ? "" : ` ${sign}`}`;
      return `  ${shown.padEnd(26)}${words}${many === true ? "; may be given again" : ""}`;
    })
    .join("\n");
}

function exitLines(names: readonly ExitName[]): string {
  return names.map((name) => `  ${String(exitCodes[name]).padEnd(5)}${exitMeanings[name]}`).join("\n");
}
