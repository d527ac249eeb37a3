/** Policies: what roles and keys may do, shown, set from a file, and tested before they are set. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { policyActions, roles } from "../../protocol/schema/vocabulary.ts";
import type { OperationInput } from "../../sdk/client.ts";
import type { Policy } from "../../sdk/wire.ts";
import type { Call, Command } from "../command.ts";
import { exitCodes } from "../exit-codes.ts";
import { manifestFlags, readManifest } from "../manifest.ts";
import { limitFlag, showList } from "../pages.ts";
import { messageOf, UsageProblem } from "../problem.ts";
import type { Column } from "../table.ts";

const columns: readonly Column<Policy>[] = [
  { title: "POLICY", cell: ({ policy_id: id }) => id },
  { title: "TENANTS", cell: ({ tenants }) => tenants.join(" ") || "all" },
  { title: "ROLES", cell: ({ roles }) => roles.join(" ") || "all" },
  { title: "KEYS", cell: ({ key_ids: ids }) => ids.join(" ") || "all" },
  { title: "RULES", cell: ({ rules }) => String(rules.length) },
  { title: "SINCE", cell: ({ changed_at: at }) => at ?? "built in" },
  { title: "DESCRIPTION", cell: ({ description }) => description ?? "", gives: "end" },
];

type Given = Readonly<Record<string, unknown>> & { readonly policy_id?: unknown };

/** A policy as the server shows it, which can be edited and set again. */
function readPolicyFile(call: Call, file: string): Given {
  let read: unknown;
  try {
    read = JSON.parse(readFileSync(resolve(call.cwd, file), "utf8"));
  } catch (error) {
    throw new UsageProblem(`${file} is not a policy: ${messageOf(error)}`);
  }
  if (typeof read !== "object" || read === null || Array.isArray(read)) {
    throw new UsageProblem(`${file} is not a policy; write {"policy_id": "ci", "rules": [...]}`);
  }
  const { changed_at: _shown, ...policy } = read as Given & { readonly changed_at?: unknown };
  return policy;
}

function idOf({ policy_id: id }: Given, file: string): string {
  if (typeof id === "string") return id;
  throw new UsageProblem(`${file} has no "policy_id"; write one, or give --id`);
}

/** `ACTION[:WHAT]`: "create_task:build", "manage_resource:FILE:/src", "work:build". */
function readCheck(call: Call, text: string) {
  const [name = "", ...rest] = text.split(":");
  const action = policyActions.find((one) => one === name);
  if (action === undefined) {
    throw new UsageProblem(`--can is "${text}"; give ACTION:WHAT with one of ${policyActions.join(", ")}`);
  }
  const what = rest.length === 0 ? null : rest.join(":");
  const id = call.text("as");
  switch (action) {
    case "lease":
    case "manage_resource":
    case "host":
      return { action, resource: what === null ? null : call.resource(what), id };
    case "create_task":
    case "work":
      return { action, task_type: what, id };
    case "register_agent":
      return { action, id: what ?? id };
  }
}

export const commands: readonly Command[] = [
  {
    name: "policy ls",
    summary: "lists policies",
    flags: { limit: limitFlag },
    examples: [["leasehold policy ls", "the built-in one too, while it holds"]],
    run: (call) =>
      showList(call, "policies", columns, "There are no policies.", (page) => call.ask("list_policies", page)),
  },
  {
    name: "policy show",
    summary: "shows a policy, as `policy set` reads it",
    usage: "ID",
    names: "policy",
    examples: [["leasehold policy show default > default.json", "to edit it"]],
    run: async (call) => {
      const policy = await call.ask("get_policy", { policy_id: call.word });
      call.out.show(policy, () => JSON.stringify(policy, null, 2));
    },
  },
  {
    name: "policy set",
    summary: "sets a policy from a file; the whole policy is replaced",
    usage: "FILE [--id ID]",
    about: `The file is JSON: {"policy_id": "ci", "roles": ["agent"], "rules": [{"effect": "allow", "actions": ["lease"],
"resources": ["FILE:/shop/**"]}]}. Every policy that applies must allow a thing. Test it first with policy test.`,
    flags: { id: { sign: "ID", names: "policy", words: "another id than that in the file" } },
    examples: [["leasehold policy set ci.json", "new, or in the place of the one with its id"]],
    run: async (call) => {
      const policy = readPolicyFile(call, call.word);
      const input = { ...policy, policy_id: call.text("id") ?? idOf(policy, call.word) };
      // The server checks what the file holds, and names the field that is wrong.
      call.out.row(await call.ask("set_policy", input as OperationInput<"set_policy">), columns);
    },
  },
  {
    name: "policy rm",
    summary: "deletes a policy",
    usage: "ID",
    names: "policy",
    examples: [["leasehold policy rm ci", "from then on it refuses nothing"]],
    run: async (call) => {
      const policy = await call.ask("delete_policy", { policy_id: call.word });
      call.out.show(policy, () => `${policy.policy_id} is deleted.`);
    },
  },
  {
    name: "policy test",
    summary: "says what a role, a key or an agent may do, and why not",
    usage: "[-x|-s|-p P] RES… [--role ROLE | --key-id ID | --agent ID] [--can ACTION:WHAT] [--policy FILE]",
    words: [0, Number.MAX_SAFE_INTEGER],
    about: `Nothing is changed. With --policy it is tested as if the policy of that file were set. The exit code is 0 if all of
it is allowed, and ${exitCodes.notSo} if not.`,
    flags: {
      ...manifestFlags,
      role: { sign: "ROLE", words: `of a credential with this role: one of ${roles.join(", ")}`, choices: roles },
      "key-id": { sign: "ID", names: "key", words: "of this key" },
      agent: { sign: "ID", names: "agent", words: "of this agent's token" },
      can: { sign: "ACTION:WHAT", words: "another action, such as create_task:build or host:GPU:/0", many: true },
      as: { sign: "ID", words: "the agent, worker or cell that does it" },
      policy: { sign: "FILE", words: "as if this policy were set" },
    },
    examples: [
      ["leasehold policy test --role agent 'FILE:/**'", "whether agents may lease every file"],
      ["leasehold policy test --role agent --policy ci.json src/", "before it is set"],
      ["leasehold policy test --key-id key_01jcs8 --can work:build --as build.1", "what a worker's key may do"],
    ],
    run: testPolicy,
  },
];

async function testPolicy(call: Call): Promise<number | undefined> {
  const checks = call.texts("can").map((text) => readCheck(call, text));
  const file = call.text("policy");
  const policy = file === null ? null : readPolicyFile(call, file);
  const verdict = await call.ask("test_policies", {
    role: call.choice("role", roles),
    key_id: call.text("key-id"),
    agent_id: call.text("agent"),
    intents: call.words.length === 0 && checks.length > 0 ? null : readManifest(call),
    checks,
    policy:
      policy === null || file === null
        ? null
        : ({ ...policy, policy_id: idOf(policy, file) } as OperationInput<"set_policy">),
  });
  call.out.show(verdict, () => {
    const lines = verdict.results.map(({ asked, allowed, detail, ttl_ms_max: ttl }) => {
      const cap = ttl === null ? "" : ` (at most ${ttl} ms at a time)`;
      return allowed ? `allowed  ${asked}${cap}` : `refused  ${asked}\n         ${detail}`;
    });
    return [...lines, `policies: ${verdict.policies.join(", ") || "none"}`].join("\n");
  });
  return verdict.allowed ? undefined : exitCodes.notSo;
}
