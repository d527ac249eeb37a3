/**
 * All commands, by the first word of their names, in the groups and the order in which help shows them. A module is
 * loaded when one of its commands is run, and help loads all of them.
 */
import type { Command } from "./command.ts";

type Modules = Readonly<Record<string, () => Promise<{ readonly commands: readonly Command[] }>>>;

const leases = () => import("./commands/leases.ts");
const receipts = () => import("./commands/receipts.ts");
const agents = () => import("./commands/agents.ts");
const backup = () => import("./commands/backup.ts");
const artifacts = () => import("./commands/artifacts.ts");
const start = () => import("./commands/start.ts");
const help = () => import("./commands/help.ts");

export const groups: Readonly<Record<string, Modules>> = {
  "Work under a lease": {
    run: () => import("./commands/run.ts"),
    work: () => import("./commands/work.ts"),
    limit: () => import("./commands/limit.ts"),
    next: () => import("./commands/next.ts"),
    port: () => import("./commands/port.ts"),
  },
  Leases: {
    wait: () => import("./commands/wait.ts"),
    acquire: () => import("./commands/acquire.ts"),
    renew: leases,
    release: leases,
    transfer: leases,
    verify: () => import("./commands/verify.ts"),
    revoke: leases,
  },
  "State of the fleet": {
    ls: () => import("./commands/ls.ts"),
    top: () => import("./commands/top.ts"),
    agents,
    digest: agents,
    resources: () => import("./commands/resources.ts"),
    events: () => import("./commands/events.ts"),
    open: () => import("./commands/open.ts"),
  },
  "Tasks and receipts": {
    tasks: () => import("./commands/tasks.ts"),
    receipts,
    inbox: receipts,
    ledger: () => import("./commands/ledger.ts"),
    artifacts,
  },
  "Cells and tokens": {
    cell: () => import("./commands/cell.ts"),
    cells: () => import("./commands/cells.ts"),
    token: () => import("./commands/token.ts"),
  },
  "Coding agents": {
    init: () => import("./commands/init.ts"),
    guard: () => import("./commands/guard.ts"),
    mcp: () => import("./commands/mcp.ts"),
  },
  "Running a server": {
    start,
    demo: () => import("./commands/demo.ts"),
    status: start,
    serve: () => import("./commands/serve.ts"),
    doctor: () => import("./commands/doctor.ts"),
    migrate: () => import("./commands/migrate.ts"),
    cluster: () => import("./commands/cluster.ts"),
    dev: () => import("./commands/dev.ts"),
    keys: () => import("./commands/keys.ts"),
    policy: () => import("./commands/policy.ts"),
    tenants: () => import("./commands/tenants.ts"),
    usage: artifacts,
    audit: () => import("./commands/audit.ts"),
    backup,
    restore: backup,
  },
  "This command line": { profiles: () => import("./commands/profiles.ts"), version: start, completion: help, help },
};

const modules = new Map(Object.values(groups).flatMap((group) => Object.entries(group)));

/** The commands whose names begin with this word; none where there is no such word. */
export async function commandsUnder(word: string): Promise<readonly Command[]> {
  const module = await modules.get(word)?.();
  return (module?.commands ?? []).filter(({ name }) => name === word || name.startsWith(`${word} `));
}

export async function commandsOf(group: Modules): Promise<readonly Command[]> {
  return (await Promise.all(Object.keys(group).map(commandsUnder))).flat();
}

export function allCommands(): Promise<readonly Command[]> {
  return commandsOf(Object.fromEntries(modules));
}
