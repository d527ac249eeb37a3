/** For those who run it: keys, tenants, quotas, policies, and the log of what they changed. */
import { signal } from "@preact/signals";
import type { Key, NewKey, OperationAnswers, Policy, QuotaUse, Tenant } from "../../../src/sdk/wire.ts";
import { call } from "../api/client.ts";
import { isOperator, session, tenant } from "../api/session.ts";
import { changes, chooseTenant } from "../live/store.ts";
import { Badge, Json, Panel, Screen } from "../ui/bits.tsx";
import { type Action, ActionButton } from "../ui/confirm.tsx";
import { useReading } from "../ui/reading.ts";
import { hrefOf, place } from "../ui/router.ts";
import { Table } from "../ui/table.tsx";
import { Since } from "../ui/ticking.tsx";
import { bytes, count, duration, moment } from "../ui/words.ts";

const tabs = [
  ["usage", "Quotas"],
  ["keys", "Keys"],
  ["tenants", "Tenants"],
  ["policies", "Policies"],
  ["audit", "Audit"],
] as const;

export function AdminScreen() {
  const [, tab = "usage"] = place.value.path;
  return (
    <Screen title="Operating">
      <nav class="tabs" aria-label="Operating">
        {tabs.map(([name, words]) => (
          <a key={name} href={hrefOf(["operating", name])} aria-current={tab === name ? "page" : undefined}>
            {words}
          </a>
        ))}
      </nav>
      {tab === "keys" ? (
        <Keys />
      ) : tab === "tenants" ? (
        <Tenants />
      ) : tab === "policies" ? (
        <Policies />
      ) : tab === "audit" ? (
        <Audit />
      ) : (
        <Usage />
      )}
    </Screen>
  );
}

function Failure({ error }: { readonly error: string | null }) {
  return error === null ? null : <p class="error">{error}</p>;
}

function Usage() {
  const read = useReading(`usage ${tenant.value}`, () => call("get_usage", {}), changes.leases);
  return (
    <Panel title={`What ${read.value?.tenant_id ?? "the tenant"} uses`}>
      <Failure error={read.error} />
      <ul class="plain quotas">
        {(read.value?.usage ?? []).map((use) => (
          <li key={use.quota}>
            <span>{use.quota.replace(/_max$/, "").replaceAll("_", " ")}</span>
            {use.used === null || use.limit === null ? (
              <span />
            ) : (
              <meter min={0} max={use.limit} high={use.limit * 0.8} value={use.used} aria-label={use.quota} />
            )}
            <span class="quiet">
              {amountOf(use, use.used)} of {use.limit === null ? "no limit" : amountOf(use, use.limit)}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}

function amountOf({ unit }: QuotaUse, value: number | null): string {
  if (value === null) return "not counted";
  if (unit === "bytes") return bytes(value);
  return unit === "ms" ? duration(value) : count(value);
}

/** Shown once, until it is closed. */
const newKey = signal<NewKey | null>(null);

function Keys() {
  const read = useReading("keys", () => call("list_keys", { limit: 500 }), changes.audit);
  const made = newKey.value;
  return (
    <Panel title="Keys" actions={isOperator.value ? <ActionButton label="Create a key" action={createKey} /> : null}>
      <Failure error={read.error} />
      {made === null ? null : (
        <div class="secret" role="status">
          <p>The key of {made.label ?? made.key_id}. It is shown this once; keep it now.</p>
          <input
            class="mono"
            readOnly
            value={made.key}
            aria-label="The key"
            onFocus={({ currentTarget }) => currentTarget.select()}
          />
          <button type="button" class="button" onClick={() => (newKey.value = null)}>
            I have it
          </button>
        </div>
      )}
      <Table
        head={["Key", "Role", "Tenant", "For", "Used", "Ends", ""]}
        rows={(read.value?.keys ?? []).map((key) => [
          <span key="id" class="mono">
            {key.key_id}
          </span>,
          <Badge key="role" tone="idle">
            {key.role}
          </Badge>,
          key.tenant_id,
          key.label ?? "",
          key.last_used_at === null ? "never" : <Since key="used" at={key.last_used_at} />,
          key.expires_at === null ? "never" : moment(key.expires_at),
          isOperator.value ? (
            <span key="actions" class="actions">
              <ActionButton label="Rotate" action={rotateKey(key)} />
              <ActionButton label="Delete" action={deleteKey(key)} />
            </span>
          ) : null,
        ])}
      />
    </Panel>
  );
}

const createKey: Action = {
  title: "Create the key",
  consequence:
    "It is shown once. The first key ends the time without keys: from then on every request needs one, this page too.",
  fields: [
    { name: "role", label: "Role", options: ["reader", "agent", "worker", "cell", "supervisor", "operator"] },
    { name: "label", label: "What it is for" },
    { name: "tenant_id", label: "Tenant", isOptional: true },
  ],
  run: async ({ role = "reader", label = "", tenant_id = "" }) => {
    newKey.value = await call("create_key", {
      role: role as Key["role"],
      label,
      tenant_id: tenant_id === "" ? null : tenant_id,
    });
    changes.audit.value++;
    return "The key was created.";
  },
};

function rotateKey({ key_id, label }: Key): Action {
  return {
    title: "Rotate the key",
    consequence: `${label ?? key_id} gets a new secret, shown once. The old one is good for an hour more, and sessions that were made with it too.`,
    run: async () => {
      newKey.value = await call("rotate_key", { key_id, overlap_ms: 3_600_000 });
      return "The key has a new secret.";
    },
  };
}

function deleteKey({ key_id, label }: Key): Action {
  return {
    title: "Delete the key",
    consequence: `Everything that shows ${label ?? key_id} is refused from now on: its agents' tokens and its sessions too.`,
    isDangerous: true,
    run: async () => {
      await call("delete_key", { key_id });
      changes.audit.value++;
      return undefined;
    },
  };
}

function Tenants() {
  const read = useReading("tenants", () => call("list_tenants", { limit: 500 }), changes.audit);
  const current = tenant.value ?? session.value?.tenant_id;
  return (
    <Panel
      title="Tenants"
      actions={isOperator.value ? <ActionButton label="Create a tenant" action={createTenant} /> : null}
    >
      <Failure error={read.error} />
      <Table
        head={["Tenant", "State", "Strategy", "TTL", "Created", ""]}
        rows={(read.value?.tenants ?? []).map((one) => [
          <b key="id">{one.tenant_id}</b>,
          <Badge key="state" tone={one.suspended ? "lost" : "working"}>
            {one.suspended ? "suspended" : "active"}
          </Badge>,
          one.settings.strategy.replace("_", " "),
          duration(one.settings.ttl_ms_default),
          moment(one.created_at),
          isOperator.value ? (
            <span key="actions" class="actions">
              <button
                type="button"
                class="button"
                disabled={one.tenant_id === current}
                onClick={() => chooseTenant(one.tenant_id)}
              >
                {one.tenant_id === current ? "Shown" : "Show"}
              </button>
              <ActionButton label={one.suspended ? "Resume" : "Suspend"} action={suspend(one)} />
            </span>
          ) : null,
        ])}
      />
    </Panel>
  );
}

const createTenant: Action = {
  title: "Create the tenant",
  consequence: "It gets its own leases, tasks, ledger and quotas. Nothing is shared with other tenants.",
  fields: [{ name: "tenant_id", label: "Id: lower-case letters, digits, _ and -" }],
  run: async ({ tenant_id = "" }) => {
    await call("create_tenant", { tenant_id });
    changes.audit.value++;
    return undefined;
  },
};

function suspend({ tenant_id, suspended }: Tenant): Action {
  return {
    title: suspended ? "Resume the tenant" : "Suspend the tenant",
    consequence: suspended
      ? `${tenant_id} may acquire and work again.`
      : `${tenant_id} gets no new leases and offers until it is resumed. What is held runs out.`,
    isDangerous: !suspended,
    ...(!suspended && { fields: [{ name: "reason", label: "Why" }] }),
    run: async ({ reason = "" }) => {
      if (suspended) await call("resume_tenant", { tenant_id });
      else await call("suspend_tenant", { tenant_id, reason });
      changes.audit.value++;
      return undefined;
    },
  };
}

function Policies() {
  const read = useReading("policies", () => call("list_policies", { limit: 500 }), changes.audit);
  return (
    <Panel title="Policies">
      <Failure error={read.error} />
      {(read.value?.policies ?? []).map((policy: Policy) => (
        <details key={policy.policy_id}>
          <summary>
            <b>{policy.policy_id}</b>{" "}
            <span class="quiet">
              {policy.description} · {policy.rules.length} rules · {policy.roles.join(", ") || "everybody"}
            </span>
          </summary>
          <Json value={policy} />
        </details>
      ))}
    </Panel>
  );
}

type AuditEntry = OperationAnswers["list_audit"]["entries"][number];

function Audit() {
  const { query } = place.value;
  const read = useReading("audit", readAudit, changes.audit);
  const wanted = (query.get("action") ?? "").toLowerCase();
  const entries = (read.value ?? []).filter(({ action }) => action.includes(wanted)).toReversed();
  return (
    <Panel title="What operators and supervisors changed">
      <Failure error={read.error} />
      <Table
        head={["", "When", "Who", "What", "To"]}
        rows={entries.map((entry) => [
          <span key="seq" class="mono quiet">
            #{entry.sequence}
          </span>,
          <Since key="at" at={entry.at} />,
          `${entry.actor} (${entry.role})`,
          entry.action.replaceAll("_", " "),
          <details key="detail">
            <summary>{entry.target ?? "–"}</summary>
            <Json value={entry.detail} />
          </details>,
        ])}
      />
    </Panel>
  );
}

/** The last of them: the list begins with the oldest. */
const auditMax = 2_000;

async function readAudit(): Promise<readonly AuditEntry[]> {
  let all: readonly AuditEntry[] = [];
  let cursor: string | null = null;
  do {
    const page: OperationAnswers["list_audit"] = await call("list_audit", { limit: 1_000, cursor });
    all = [...all, ...page.entries].slice(-auditMax);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return all;
}
