/** Keys: of a running server, or with --data on the data itself while no server runs on it. */
import { roles } from "../../protocol/schema/vocabulary.ts";
import type { Key } from "../../sdk/wire.ts";
import { loadConfig } from "../../server/config/config.ts";
import type { Call, Command, Flag } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { limitFlag, limitOf, listAll, moreLine } from "../pages.ts";
import { UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const dataFlag: Flag = { sign: "DIR", words: "work on this data, while no server runs on it" };

const columns: readonly Column<Key>[] = [
  { title: "KEY", cell: ({ key_id: id }) => id },
  { title: "ROLE", cell: ({ role }) => role },
  { title: "TENANT", cell: ({ tenant_id: tenant }) => tenant },
  { title: "LABEL", cell: ({ label }) => label ?? "", gives: "end" },
  { title: "SINCE", cell: ({ created_at: at }) => at },
];

/** The server's own command, for those without a server: the first key comes to be so. */
function offline(call: Call): { readonly config: ReturnType<typeof loadConfig> } | null {
  const data = call.text("data");
  if (data === null) return null;
  process.umask(0o077);
  return { config: loadConfig({ data }, call.environment) };
}

const onData = () => import("../../server/commands/keys.ts");

export const keysCreateCommand: Command = {
  name: "keys create",
  summary: "makes a key and shows it, once",
  usage: "--role ROLE [--tenant ID] [--label TEXT] [--data DIR]",
  words: [0, 0],
  about: `Make an operator's key first: from then on every request needs one. With --data it is made on the data itself; this
is how the first key comes to be on a machine whose server listens beyond loopback.`,
  flags: {
    role: { sign: "ROLE", words: `one of ${roles.join(", ")}` },
    label: { sign: "TEXT", words: "what it is for" },
    data: dataFlag,
  },
  examples: [
    ["leasehold keys create --role operator --data /var/lib/leasehold", "the first one"],
    ['leasehold keys create --role supervisor --tenant acme --label "acme\'s CI"', "for a tenant"],
  ],
  run: async (call) => {
    const { out } = call;
    const role = call.choice("role", roles);
    const tenant = call.text("tenant");
    const label = call.text("label");
    if (role === null) throw new UsageProblem(`keys create takes --role with one of ${roles.join(", ")}`);
    const data = offline(call);
    if (data !== null) {
      const secret = await (await onData()).createKey(data.config, { role, tenant, label });
      out.show({ key: secret.trim(), role, tenant_id: tenant ?? "default", label }, () => secret);
      return exitCodes.done;
    }
    const client = await call.connect();
    const key = await client.call("create_key", {
      role,
      ...(tenant !== null && { tenant_id: tenant }),
      ...(label !== null && { label }),
    });
    out.show(key, () => key.key);
    return exitCodes.done;
  },
};

export const keysListCommand: Command = {
  name: "keys list",
  summary: "lists keys, without their secrets",
  usage: "[--tenant ID] [--role ROLE] [--data DIR]",
  words: [0, 0],
  flags: { role: { sign: "ROLE", words: "only of this role" }, limit: limitFlag, data: dataFlag },
  examples: [["leasehold keys list", "who may come in"]],
  run: async (call) => {
    const { out } = call;
    const tenant = call.text("tenant");
    const role = call.choice("role", roles);
    const limit = limitOf(call);
    const data = offline(call);
    if (data !== null) {
      if (out.isJson) throw new UsageProblem("keys list --data has no --json; ask a running server");
      out.print(await (await onData()).listKeys(data.config));
      return exitCodes.done;
    }
    const client = await call.connect();
    const { items, hasMore } = await listAll(
      limit,
      (page) =>
        client.call("list_keys", {
          ...page,
          ...(tenant !== null && { tenant_id: tenant }),
          ...(role !== null && { role }),
        }),
      (page) => page.keys,
    );
    out.show(
      { keys: items, has_more: hasMore },
      () => `${out.table(items, columns, "There are no keys.")}${out.isTerminal ? moreLine(hasMore) : ""}`,
    );
    return exitCodes.done;
  },
};

export const keysDeleteCommand: Command = {
  name: "keys delete",
  summary: "deletes a key: from then on it opens nothing",
  usage: "KEY_ID [--data DIR]",
  words: [1, 1],
  flags: { data: dataFlag },
  examples: [["leasehold keys delete key_01jcs8qp7x9z1c3e", "by its id, not its secret"]],
  run: async (call) => {
    const { out } = call;
    const id = call.words[0] ?? "";
    const data = offline(call);
    if (data !== null) {
      const line = await (await onData()).deleteKey(data.config, id);
      out.show({ key_id: id }, () => line);
      return exitCodes.done;
    }
    const key = await (await call.connect()).call("delete_key", { key_id: id });
    out.show(key, () => `${key.key_id} is deleted.`);
    return exitCodes.done;
  },
};
