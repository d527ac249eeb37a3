/** Tenants: isolated worlds on one server. */
import { strategies } from "../../protocol/schema/vocabulary.ts";
import type { Tenant } from "../../sdk/wire.ts";
import type { Call, Command, Flags } from "../command.ts";
import { showDuration } from "../durations.ts";
import { limitFlag, showList } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<Tenant>[] = [
  { title: "TENANT", cell: ({ tenant_id: id }) => id },
  {
    title: "STATE",
    cell: ({ suspended, reason }) => (suspended ? `suspended: ${reason ?? ""}` : "active"),
    gives: "end",
  },
  { title: "STRATEGY", cell: ({ settings }) => settings.strategy },
  {
    title: "TTL",
    cell: ({ settings: s }) => `${showDuration(s.ttl_ms_default)}, at most ${showDuration(s.ttl_ms_max)}`,
  },
  { title: "LEASES", cell: ({ quotas }) => `at most ${quotas.leases_max}` },
  { title: "SINCE", cell: ({ created_at: at }) => at },
];

const tenantsListCommand: Command = {
  name: "tenants list",
  summary: "lists tenants, with their settings and quotas",
  flags: { limit: limitFlag },
  examples: [["leasehold tenants list --json", "everything about them"]],
  run: (call) => showList(call, "tenants", columns, "There are no tenants.", (page) => call.ask("list_tenants", page)),
};

const tenantsCreateCommand: Command = {
  name: "tenants create",
  summary: "creates a tenant",
  usage: "ID",
  words: [1, 1],
  examples: [["leasehold tenants create acme", "nothing in it meets anything of another"]],
  run: async (call) => call.out.row(await call.ask("create_tenant", { tenant_id: call.word }), columns),
};

const tenantsSuspendCommand: Command = {
  name: "tenants suspend",
  summary: "suspends a tenant: all that it holds ends",
  usage: "ID [--reason TEXT]",
  words: [1, 1],
  flags: { reason: { sign: "TEXT", words: "why, for its agents" } },
  examples: [["leasehold tenants suspend acme --reason unpaid", "until it is resumed"]],
  run: async (call) => {
    const input = { tenant_id: call.word, reason: call.text("reason") };
    call.out.row(await call.ask("suspend_tenant", input), columns);
  },
};

const tenantsResumeCommand: Command = {
  name: "tenants resume",
  summary: "ends a tenant's suspension",
  usage: "ID",
  words: [1, 1],
  examples: [["leasehold tenants resume acme", "go on"]],
  run: async (call) => call.out.row(await call.ask("resume_tenant", { tenant_id: call.word }), columns),
};

/** Each flag with the field that it sets, and its words; a duration's sign is TIME. */
const settingFlags = {
  "ttl-default": ["ttl_ms_default", "TIME", "a lease's ttl where none is asked for"],
  "ttl-max": ["ttl_ms_max", "TIME", "what a ttl is capped at"],
  "wait-default": ["wait_timeout_ms_default", "TIME", "how long a request waits where nothing is asked for"],
  "wait-max": ["wait_timeout_ms_max", "TIME", "what a wait is capped at"],
  "claim-within": ["claim_within_ms", "TIME", "how soon a grant that ended a wait must be collected"],
} as const;
const quotaFlags = {
  "leases-max": ["leases_max", "N", "live leases"],
  "waiters-max": ["waiters_max", "N", "waiting requests"],
  "agents-max": ["agents_max", "N", "registered agents"],
  "resources-max": ["resources_max", "N", "declared resources"],
  "patterns-max": ["patterns_max", "N", "live leases on patterns"],
  "tasks-max": ["tasks_max", "N", "tasks"],
  "lease-time-max": ["lease_time_ms_max", "TIME", "the longest that one lease may live"],
} as const;

type FieldFlags = Readonly<Record<string, readonly [field: string, sign: "TIME" | "N", words: string]>>;

function flagsOf(table: FieldFlags): Flags {
  return Object.fromEntries(Object.entries(table).map(([flag, [, sign, words]]) => [flag, { sign, words }]));
}

/** The fields whose flags were given. */
function fieldsIn(call: Call, table: FieldFlags): Readonly<Record<string, number>> {
  const given = Object.entries(table).flatMap(([flag, [field, sign]]) => {
    const value = sign === "TIME" ? call.durationMs(flag) : call.integer(flag);
    return value === null ? [] : [[field, value] as const];
  });
  return Object.fromEntries(given);
}

const tenantsSetCommand: Command = {
  name: "tenants set",
  summary: "changes a tenant's settings and quotas; the others stay as they are",
  usage: "ID [--strategy S] [--ttl-max TIME] [--leases-max N] …",
  words: [1, 1],
  flags: {
    strategy: { sign: "S", words: `one of ${strategies.join(", ")}; switched only while no request waits` },
    ...flagsOf(settingFlags),
    ...flagsOf(quotaFlags),
  },
  examples: [
    ["leasehold tenants set acme --leases-max 10000 --ttl-max 2m", "less of both"],
    ["leasehold tenants set acme --strategy wound_wait", "older work takes from younger"],
  ],
  run: async (call) => {
    const tenant_id = call.word;
    const strategy = call.choice("strategy", strategies);
    const settings = { ...fieldsIn(call, settingFlags), ...(strategy !== null && { strategy }) };
    const quotas = fieldsIn(call, quotaFlags);
    let tenant: Tenant | null = null;
    if (Object.keys(settings).length > 0) tenant = await call.ask("set_tenant_settings", { tenant_id, ...settings });
    if (Object.keys(quotas).length > 0) tenant = await call.ask("set_tenant_quotas", { tenant_id, ...quotas });
    if (tenant === null) throw new UsageProblem("say what to change; `leasehold tenants set --help` lists the flags");
    call.out.row(tenant, columns);
  },
};

export const commands: readonly Command[] = [
  tenantsListCommand,
  tenantsCreateCommand,
  tenantsSuspendCommand,
  tenantsResumeCommand,
  tenantsSetCommand,
];
