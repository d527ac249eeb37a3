/** Keys: of a running server, or with --data on the data itself while no server runs on it. */
import { roles } from "../../protocol/schema/vocabulary.ts";
import type { Key } from "../../sdk/wire.ts";
import type { Call, Command, Flag, Flags } from "../command.ts";
import { confirmWithoutKey, yesFlag } from "../confirming.ts";
import { limitFlag, showList } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const dataFlag: Flag = { sign: "DIR", words: "work on this data, while no server runs on it" };

/** What a key is narrowed to, within its role. */
const scopeFlags: Flags = {
  "scope-resource": { sign: "RES", words: "only resources under this pattern", many: true, field: "resources" },
  "scope-predicate": { sign: "P", words: "only leases with this predicate", many: true, field: "predicates" },
  "scope-task-type": {
    sign: "TYPE",
    words: "only tasks of this type; TYPE* for a prefix",
    many: true,
    field: "task_types",
  },
  "scope-id": {
    sign: "ID",
    words: "only agents, workers or cells of this id; ID* for a prefix",
    many: true,
    field: "ids",
  },
};

const columns: readonly Column<Key>[] = [
  { title: "KEY", cell: ({ key_id: id }) => id },
  { title: "ROLE", cell: ({ role }) => role },
  { title: "TENANT", cell: ({ tenant_id: tenant }) => tenant },
  { title: "SCOPES", cell: ({ scopes }) => (scopes === null ? "" : scopesText(scopes)), gives: "end" },
  { title: "LABEL", cell: ({ label }) => label ?? "", gives: "end" },
  { title: "SINCE", cell: ({ created_at: at }) => at },
  { title: "LAST USED", cell: ({ last_used_at: at }) => at ?? "never" },
  { title: "EXPIRES", cell: ({ expires_at: at }) => at ?? "never" },
  { title: "FORMER UNTIL", cell: ({ former_until: at }) => at ?? "" },
];

/** Of the data itself, which does not say when a key was last used. */
type DataKey = Pick<Key, "key_id" | "role" | "tenant_id" | "label" | "expires_at">;
const dataColumns: readonly Column<DataKey>[] = [
  { title: "KEY", cell: ({ key_id: id }) => id },
  { title: "ROLE", cell: ({ role }) => role },
  { title: "TENANT", cell: ({ tenant_id: tenant }) => tenant },
  { title: "LABEL", cell: ({ label }) => label ?? "", gives: "end" },
  { title: "EXPIRES", cell: ({ expires_at: at }) => at ?? "never" },
];

function scopesText(scopes: object): string {
  const given = Object.entries(scopes).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  );
  return given.map(([name, value]) => `${name}=${Array.isArray(value) ? value.join(",") : value}`).join(" ");
}

const expiresFlag: Flag = { sign: "TIME", words: "how long it is good, such as 90d; without it, for ever" };
const idExample = "key_01jcs8qp7x9z1c3e";

/** The end that --expires-in names. */
function readExpiry(call: Call): number | null {
  const ms = call.durationMs("expires-in");
  return ms === null ? null : Date.now() + ms;
}

/** The keys in the data folder of --data; null where a server is asked. */
async function keysOnData(call: Call) {
  const data = call.text("data");
  if (data === null) return null;
  if (call.text("url") !== null || call.text("profile") !== null) {
    throw new UsageProblem("--data is about a folder, and --url and --profile are about a server; give one of them");
  }
  process.umask(0o077);
  return new (await import("../data-keys.ts")).DataKeys(data);
}

export const commands: readonly Command[] = [
  {
    name: "keys create",
    summary: "creates a key and shows it, once",
    usage: "--role ROLE [--tenant ID] [--label TEXT] [--expires-in TIME] [--yes] [--data DIR]",
    about: `Create an operator's key first: from then on every request needs one, so the first key of a running server is
created only with --yes, or after a question. With --data it is created in the data itself: this is how a server that
listens beyond loopback gets its first key.`,
    flags: {
      role: { sign: "ROLE", words: `one of ${roles.join(", ")}`, choices: roles },
      label: { sign: "TEXT", words: "what it is for" },
      ...scopeFlags,
      "expires-in": expiresFlag,
      data: dataFlag,
      yes: yesFlag,
    },
    examples: [
      ["leasehold keys create --role operator --data /var/lib/leasehold", "the first one"],
      ['leasehold keys create --role supervisor --tenant acme --label "acme\'s CI"', "for a tenant"],
      [
        "leasehold keys create --role agent --scope-resource 'FILE:/shop/**' --scope-id 'ci-*'",
        "for less than its role",
      ],
    ],
    run: async (call) => {
      const role = call.choice("role", roles);
      const tenant = call.text("tenant");
      const label = call.text("label");
      if (role === null) throw new UsageProblem(`keys create takes --role with one of ${roles.join(", ")}`);
      const scopes = call.fields(scopeFlags);
      const hasScopes = Object.keys(scopes).length > 0;
      const onData = await keysOnData(call);
      if (onData !== null && hasScopes)
        throw new UsageProblem("keys create --data has no scopes; ask a running server");
      const expiresAt = readExpiry(call);
      if (onData !== null) {
        const made = await onData.create(role, tenant, label, expiresAt);
        return void call.out.show(made, () => made.key);
      }
      await confirmWithoutKey(call, "with the first key, every agent, guard and tool that has none is refused");
      const key = await call.ask("create_key", {
        role,
        tenant_id: tenant,
        label,
        scopes: hasScopes ? scopes : null,
        ...expiryField(expiresAt),
      });
      for (const warning of key.warnings ?? []) call.out.note(warning);
      call.out.show(key, () => key.key);
      if (process.stderr.isTTY === true && call.key === null) call.out.note(firstKeyWords);
    },
  },
  {
    name: "keys list",
    summary: "lists keys, without their secrets",
    usage: "[--tenant ID] [--role ROLE] [--data DIR]",
    flags: { role: { sign: "ROLE", words: "only of this role", choices: roles }, limit: limitFlag, data: dataFlag },
    examples: [["leasehold keys list", "every credential"]],
    run: async (call) => {
      const filter = { tenant_id: call.text("tenant"), role: call.choice("role", roles) };
      const onData = await keysOnData(call);
      if (onData === null) {
        return showList(call, "keys", columns, "There are no keys.", (page) =>
          call.ask("list_keys", { ...page, ...filter }),
        );
      }
      const kept = (await onData.list()).filter(({ role }) => filter.role === null || role === filter.role);
      const keys = kept.map(({ id, role, tenant, label, expiresAt }) => ({
        key_id: id,
        role,
        tenant_id: tenant,
        label,
        expires_at: expiresAt === null ? null : timeText(expiresAt),
      }));
      call.out.show({ keys, has_more: false }, () => call.out.table(keys, dataColumns, "There are no keys."));
    },
  },
  {
    name: "keys rotate",
    summary: "gives a key another secret and shows it, once",
    usage: "KEY_ID [--overlap TIME] [--expires-in TIME] [--data DIR]",
    about: `It stays the same key and owns what it owned. The secret before, and agents' tokens that were drawn with it, are good
for the overlap: a day if left out. --overlap 0 ends them at once, after a theft.`,
    flags: {
      overlap: { sign: "TIME", words: "how long the former secret is good [1d]" },
      "expires-in": expiresFlag,
      data: dataFlag,
      yes: yesFlag,
    },
    examples: [
      [`leasehold keys rotate ${idExample}`, "change the secret within a day"],
      [`leasehold keys rotate ${idExample} --overlap 0`, "it was stolen"],
    ],
    run: async (call) => {
      const overlapMs = call.durationMs("overlap");
      const expiresAt = readExpiry(call);
      const onData = await keysOnData(call);
      if (onData === null) await confirmWithoutKey(call, "the key's former secret ends with its overlap");
      const key = onData
        ? await onData.rotate(call.word, overlapMs ?? dayMs, expiresAt)
        : await call.ask("rotate_key", {
            key_id: call.word,
            ...(overlapMs !== null && { overlap_ms: overlapMs }),
            ...expiryField(expiresAt),
          });
      call.out.show(key, () => key.key);
    },
  },
  {
    name: "keys assign",
    summary: "gives an agent, a worker or a cell to a key",
    usage: "KEY_ID --agent ID | --worker ID | --cell NAME",
    about: `A name belongs to the key that used it first. One whose key was deleted, or that was first used by somebody above or
before there were keys, is assigned to the key that may use it from then on.`,
    flags: {
      agent: { sign: "ID", words: "an agent", names: "agent" },
      worker: { sign: "ID", words: "a worker" },
      cell: { sign: "NAME", words: "a cell", names: "cell" },
    },
    examples: [[`leasehold keys assign ${idExample} --agent refactorer-7`, "its key was deleted"]],
    run: async (call) => {
      const names = { agent_id: call.text("agent"), worker_id: call.text("worker"), cell: call.text("cell") };
      const key = await call.ask("assign_name", { key_id: call.word, ...names });
      call.out.show(key, () => `It belongs to ${key.key_id} now.`);
    },
  },
  {
    name: "keys delete",
    summary: "deletes a key: from then on it is refused",
    usage: "KEY_ID [--data DIR]",
    flags: { data: dataFlag, yes: yesFlag },
    examples: [[`leasehold keys delete ${idExample}`, "by its id, not its secret"]],
    run: async (call) => {
      const id = call.word;
      const onData = await keysOnData(call);
      if (onData === null) await confirmWithoutKey(call, "all that use this key are refused from then on");
      const key = onData ? await onData.delete(id) : await call.ask("delete_key", { key_id: id });
      call.out.show(key, () => `${id} is deleted.`);
    },
  },
];

const dayMs = 86_400_000;
const firstKeyWords =
  "from now on every request needs a key: keep this one in a file for you alone, and name it with export LEASEHOLD_KEY_FILE=FILE";

function expiryField(expiresAt: number | null): { readonly expires_at?: string } {
  return expiresAt === null ? {} : { expires_at: timeText(expiresAt) };
}

function timeText(at: number): string {
  return new Date(at).toISOString();
}
