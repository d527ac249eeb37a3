/** Tenants: isolated worlds on one server. */
import { strategies } from "../../protocol/schema/vocabulary.ts";
import type { Tenant } from "../../sdk/wire.ts";
import type { Command, Flags } from "../command.ts";
import { confirmWithoutKey, yesFlag } from "../confirming.ts";
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

const settingFlags: Flags = {
  strategy: {
    sign: "S",
    words: `one of ${strategies.join(", ")}; switched only while no request waits`,
    choices: strategies,
    field: "strategy",
  },
  "ttl-default": { sign: "TIME", words: "a lease's ttl where none is asked for", field: "ttl_ms_default" },
  "ttl-max": { sign: "TIME", words: "what a ttl is capped at", field: "ttl_ms_max" },
  "wait-default": {
    sign: "TIME",
    words: "how long a request waits where nothing is asked for",
    field: "wait_timeout_ms_default",
  },
  "wait-max": { sign: "TIME", words: "what a wait is capped at", field: "wait_timeout_ms_max" },
  "claim-within": {
    sign: "TIME",
    words: "how soon a grant that ended a wait must be collected",
    field: "claim_within_ms",
  },
};

const quotaFlags: Flags = {
  "leases-max": { sign: "N", words: "live leases", field: "leases_max" },
  "waiters-max": { sign: "N", words: "waiting requests", field: "waiters_max" },
  "agents-max": { sign: "N", words: "registered agents", field: "agents_max" },
  "resources-max": { sign: "N", words: "declared resources", field: "resources_max" },
  "patterns-max": { sign: "N", words: "live leases on patterns", field: "patterns_max" },
  "tasks-max": { sign: "N", words: "tasks", field: "tasks_max" },
  "connections-max": { sign: "N", words: "connections at once", field: "connections_max" },
  "subscriptions-max": { sign: "N", words: "subscriptions to events at once", field: "subscriptions_max" },
  "held-max": { sign: "N", words: "answers held for a long poll at once", field: "held_max" },
  "unread-bytes-max": { sign: "N", words: "bytes that wait for slow readers", field: "unread_bytes_max" },
  "artifacts-max": { sign: "N", words: "stored artifacts", field: "artifacts_max" },
  "artifact-bytes-max": { sign: "N", words: "their size together", field: "artifact_bytes_max" },
  "lease-time-max": { sign: "TIME", words: "the longest that one lease may live", field: "lease_time_ms_max" },
};

export const commands: readonly Command[] = [
  {
    name: "tenants list",
    summary: "lists tenants, with their settings and quotas",
    flags: { limit: limitFlag },
    examples: [["leasehold tenants list --json", "everything about them"]],
    run: (call) =>
      showList(call, "tenants", columns, "There are no tenants.", (page) => call.ask("list_tenants", page)),
  },
  {
    name: "tenants create",
    summary: "creates a tenant",
    usage: "ID",
    examples: [["leasehold tenants create acme", "nothing in it meets anything of another"]],
    run: async (call) => call.out.row(await call.ask("create_tenant", { tenant_id: call.word }), columns),
  },
  {
    name: "tenants suspend",
    summary: "suspends a tenant: all that it holds ends",
    names: "tenant",
    usage: "ID [--reason TEXT]",
    flags: { reason: { sign: "TEXT", words: "why, for its agents", field: "reason" }, yes: yesFlag },
    examples: [["leasehold tenants suspend acme --reason unpaid", "until it is resumed"]],
    run: async (call) => {
      const input = { tenant_id: call.word, reason: call.text("reason") };
      await confirmWithoutKey(
        call,
        `all that the tenant ${call.word} holds ends, and it gets nothing until it is resumed`,
      );
      call.out.row(await call.ask("suspend_tenant", input), columns);
    },
  },
  {
    name: "tenants resume",
    summary: "ends a tenant's suspension",
    names: "tenant",
    usage: "ID",
    examples: [["leasehold tenants resume acme", "go on"]],
    run: async (call) => call.out.row(await call.ask("resume_tenant", { tenant_id: call.word }), columns),
  },
  {
    name: "tenants set",
    summary: "changes a tenant's settings and quotas; the others stay as they are",
    names: "tenant",
    usage: "ID [--strategy S] [--ttl-max TIME] [--leases-max N] …",
    flags: { ...settingFlags, ...quotaFlags },
    examples: [
      ["leasehold tenants set acme --leases-max 10000 --ttl-max 2m", "less of both"],
      ["leasehold tenants set acme --strategy wound_wait", "older work takes from younger"],
    ],
    run: async (call) => {
      const tenant_id = call.word;
      const settings = call.fields(settingFlags);
      const quotas = call.fields(quotaFlags);
      let tenant: Tenant | null = null;
      if (Object.keys(settings).length > 0) tenant = await call.ask("set_tenant_settings", { tenant_id, ...settings });
      if (Object.keys(quotas).length > 0) tenant = await call.ask("set_tenant_quotas", { tenant_id, ...quotas });
      if (tenant === null) throw new UsageProblem("say what to change; `leasehold tenants set --help` lists the flags");
      call.out.row(tenant, columns);
    },
  },
];
