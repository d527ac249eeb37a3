/**
 * All commands, by the first word of their names, in the groups and the order in which help shows them. A module is
 * loaded when one of its commands is run, and help loads all of them.
 */
import type { Command, CommandModule } from "./command.ts";

export interface Group {
  readonly title: string;
  readonly modules: Readonly<Record<string, () => Promise<CommandModule>>>;
}

const leases = () => import("./commands/leases.ts");
const receipts = () => import("./commands/receipts.ts");
const agents = () => import("./commands/agents.ts");
const backup = () => import("./commands/backup.ts");
const help = () => import("./commands/help.ts");

export const groups: readonly Group[] = [
  {
    title: "Work under a lease",
    modules: { run: () => import("./commands/run.ts"), work: () => import("./commands/work.ts") },
  },
  {
    title: "Leases",
    modules: {
      acquire: () => import("./commands/acquire.ts"),
      renew: leases,
      release: leases,
      transfer: leases,
      verify: () => import("./commands/verify.ts"),
      revoke: leases,
    },
  },
  {
    title: "State of the fleet",
    modules: {
      ls: () => import("./commands/ls.ts"),
      top: () => import("./commands/top.ts"),
      agents,
      digest: agents,
      resources: () => import("./commands/resources.ts"),
      events: () => import("./commands/events.ts"),
    },
  },
  {
    title: "Tasks and receipts",
    modules: {
      tasks: () => import("./commands/tasks.ts"),
      receipts,
      inbox: receipts,
      ledger: () => import("./commands/ledger.ts"),
    },
  },
  {
    title: "Cells and tokens",
    modules: {
      cell: () => import("./commands/cell.ts"),
      cells: () => import("./commands/cells.ts"),
      token: () => import("./commands/token.ts"),
    },
  },
  {
    title: "Coding agents",
    modules: {
      init: () => import("./commands/init.ts"),
      guard: () => import("./commands/guard.ts"),
      mcp: () => import("./commands/mcp.ts"),
    },
  },
  {
    title: "Running a server",
    modules: {
      serve: () => import("./commands/serve.ts"),
      doctor: () => import("./commands/doctor.ts"),
      keys: () => import("./commands/keys.ts"),
      tenants: () => import("./commands/tenants.ts"),
      backup,
      restore: backup,
    },
  },
  { title: "This command line", modules: { completion: help, help } },
];

/** The commands whose names begin with this word; none where there is no such word. */
export async function commandsUnder(word: string): Promise<readonly Command[]> {
  const group = groups.find(({ modules }) => Object.hasOwn(modules, word));
  const { commands } = (await group?.modules[word]?.()) ?? { commands: [] };
  return commands.filter(({ name }) => name === word || name.startsWith(`${word} `));
}

export async function commandsOf({ modules }: Group): Promise<readonly Command[]> {
  return (await Promise.all(Object.keys(modules).map(commandsUnder))).flat();
}

export async function allCommands(): Promise<readonly Command[]> {
  return (await Promise.all(groups.map(commandsOf))).flat();
}
