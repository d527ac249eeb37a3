/** Tenants: worlds of their own. */
import { strategies } from "../../protocol/schema/vocabulary.ts";
import type { Tenant } from "../../sdk/wire.ts";
import type { Call, Command, Flags } from "../command.ts";
import { showDuration } from "../durations.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
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

function show(call: Call, tenant: Tenant): number {
  call.out.show(tenant, () => call.out.table([tenant], columns, ""));
  return exitCodes.done;
}

export const tenantsListCommand: Command = {
  name: "tenants list",
  summary: "lists tenants, with their settings and quotas",
  usage: "",
  words: [0, 0],
  flags: { limit: limitFlag },
  examples: [["leasehold tenants list --json", "all there is to know"]],
  run: async (call) => {
    const { out } = call;
    const limit = limitOf(call);
    const client = await call.connect();
    const { items, hasMore } = await listAll(
      limit,
      (page) => client.call("list_tenants", page),
      (page) => page.tenants,
    );
    out.show(
      { tenants: items, has_more: hasMore },
      () => `${out.table(items, columns, "There are none.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};

export const tenantsCreateCommand: Command = {
  name: "tenants create",
  summary: "creates a tenant",
  usage: "ID",
  words: [1, 1],
  flags: {},
  examples: [["leasehold tenants create acme", "nothing in it meets anything of another"]],
  run: async (call) =>
    show(call, await (await call.connect()).call("create_tenant", { tenant_id: call.words[0] ?? "" })),
};

export const tenantsSuspendCommand: Command = {
  name: "tenants suspend",
  summary: "suspends a tenant: all it has ends",
  usage: "ID [--reason TEXT]",
  words: [1, 1],
  flags: { reason: { sign: "TEXT", words: "why, for those whom it concerns" } },
  examples: [["leasehold tenants suspend acme --reason unpaid", "until it is resumed"]],
  run: async (call) => {
    const reason = call.text("reason");
    const wanted = { tenant_id: call.words[0] ?? "", ...(reason !== null && { reason }) };
    return show(call, await (await call.connect()).call("suspend_tenant", wanted));
  },
};

export const tenantsResumeCommand: Command = {
  name: "tenants resume",
  summary: "lets a suspended tenant go on",
  usage: "ID",
  words: [1, 1],
  flags: {},
  examples: [["leasehold tenants resume acme", "go on"]],
  run: async (call) =>
    show(call, await (await call.connect()).call("resume_tenant", { tenant_id: call.words[0] ?? "" })),
};

const durations = {
  "ttl-default": "ttl_ms_default",
  "ttl-max": "ttl_ms_max",
  "wait-default": "wait_timeout_ms_default",
  "wait-max": "wait_timeout_ms_max",
  "claim-within": "claim_within_ms",
} as const;
const counts = {
  "leases-max": "leases_max",
  "waiters-max": "waiters_max",
  "agents-max": "agents_max",
  "resources-max": "resources_max",
  "patterns-max": "patterns_max",
  "tasks-max": "tasks_max",
} as const;

const setFlags: Flags = {
  strategy: { sign: "S", words: `one of ${strategies.join(", ")}; switched only while nobody waits` },
  "ttl-default": { sign: "TIME", words: "a lease's ttl where none is asked for" },
  "ttl-max": { sign: "TIME", words: "what a ttl is capped at" },
  "wait-default": { sign: "TIME", words: "how long a request waits where nothing is asked for" },
  "wait-max": { sign: "TIME", words: "what a wait is capped at" },
  "claim-within": { sign: "TIME", words: "how soon a grant that ended a wait must be collected" },
  "leases-max": { sign: "N", words: "leases alive at once" },
  "waiters-max": { sign: "N", words: "requests waiting at once" },
  "agents-max": { sign: "N", words: "registered agents" },
  "resources-max": { sign: "N", words: "declared resources" },
  "patterns-max": { sign: "N", words: "leases on patterns alive at once" },
  "tasks-max": { sign: "N", words: "tasks" },
  "lease-time-max": { sign: "TIME", words: "the longest that one lease may live" },
};

export const tenantsSetCommand: Command = {
  name: "tenants set",
  summary: "changes a tenant's settings and quotas; the others stay as they are",
  usage: "ID [--strategy S] [--ttl-max TIME] [--leases-max N] …",
  words: [1, 1],
  flags: setFlags,
  examples: [
    ["leasehold tenants set acme --leases-max 10000 --ttl-max 2m", "less of both"],
    ["leasehold tenants set acme --strategy wound_wait", "older work takes from younger"],
  ],
  run: async (call) => {
    const tenantId = call.words[0] ?? "";
    const strategy = call.choice("strategy", strategies);
    const times = Object.entries(durations).flatMap(([flag, field]) => {
      const ms = call.durationMs(flag);
      return ms === null ? [] : [[field, ms] as const];
    });
    const numbers = Object.entries(counts).flatMap(([flag, field]) => {
      const count = call.integer(flag);
      return count === null ? [] : [[field, count] as const];
    });
    const leaseTime = call.durationMs("lease-time-max");
    const settings = { ...Object.fromEntries(times), ...(strategy !== null && { strategy }) };
    const quotas = { ...Object.fromEntries(numbers), ...(leaseTime !== null && { lease_time_ms_max: leaseTime }) };
    const client = await call.connect();
    let tenant: Tenant | null = null;
    if (Object.keys(settings).length > 0) {
      tenant = await client.call("set_tenant_settings", { tenant_id: tenantId, ...settings });
    }
    if (Object.keys(quotas).length > 0) {
      tenant = await client.call("set_tenant_quotas", { tenant_id: tenantId, ...quotas });
    }
    if (tenant === null)
      throw new UsageProblem("say what to change; `leasehold tenants set --help` lists what there is");
    return show(call, tenant);
  },
};
