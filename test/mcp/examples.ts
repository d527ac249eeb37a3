/** Arguments for a call of each tool, with ids that exist. */
import type { Tool } from "../../src/mcp/tool.ts";
import { type Body, mutates } from "./harness.ts";

export type World = ReadonlyMap<string, unknown>;
type Fields = Readonly<Record<string, unknown>>;

/** A real record for each id that an example may name. */
export async function populate(run: (name: string, args?: object) => Promise<Body>): Promise<World> {
  await run("register_agent", { agent_id: "holder" });
  const other = await run("register_agent", { agent_id: "other" });
  const granted = await run("acquire_leases", { agent_id: "holder", intents: mutates("FILE:/held") });
  const [lease] = granted.leases as readonly Body[];
  const { task_id } = await run("create_task", { task_type: "code.generate", principal_ai: "boss" });
  const polled = await run("lease_next", { worker_id: "coder.1" });
  const [offer] = polled.offers as readonly Body[];
  const { receipt_id } = await run("accept_task", { lease_id: offer?.lease_id });
  await run("checkpoint", { agent_id: "holder", checkpoint_id: "c1", resume_point: "start" });
  const world = {
    agent_id: "holder",
    to_agent_id: other.agent_id,
    lease_id: lease?.id,
    lease_ids: [lease?.id],
    request_id: granted.request_id,
    task_id,
    task_lease_id: offer?.lease_id,
    receipt_id,
    tenant_id: "default",
    resource: "FILE:/held",
  };
  return new Map(Object.entries(world));
}

const taskLeaseTools: readonly string[] = [
  "accept_task",
  "report_progress",
  "complete_task",
  "escalate_task",
  "give_back_task",
];

/** The operation's own example, with ids that exist here. */
export function exampleFor({ name, operations: [operation], inputSchema }: Tool, world: World): object {
  const { properties = {} } = inputSchema as { readonly properties?: Body };
  const own: Fields = special.get(name) ?? {};
  const example: Fields = { ...operation?.example, ...own };
  const fields = Object.entries(example).filter(([field]) => field in properties);
  const known = fields.map(([field, value]) => {
    if (field === "lease_id" && taskLeaseTools.includes(name)) return [field, world.get("task_lease_id")];
    if (field === "request_id" && name === "acquire_leases") return [field, value];
    return [field, world.has(field) && !own[field] ? world.get(field) : value];
  });
  return Object.fromEntries(known);
}

/** Where the operation's example does not suit the tool. */
const special: ReadonlyMap<string, Fields> = new Map(
  Object.entries({
    who_holds: { resource: "" },
    lease_next: { hold_ms: 0 },
    read_checkpoint: { agent_id: "" },
    accept_task: { lease_id: "", task_id: null, source_system: null, dedupe_key: null },
    renew_lease: { generation: null },
    report_violation: { agent_id: "other" },
    declare_resource: { resource: "GPU:/rack-1/a100" },
    complete_task: {
      lease_id: "",
      status: "success",
      outcome_text: "done",
      task_id: null,
      source_system: null,
      dedupe_key: null,
    },
    escalate_task: {
      lease_id: "",
      task_id: null,
      source_system: null,
      dedupe_key: "e-1",
      escalation_class: "scope",
      escalation_reason: "too much",
    },
    submit_receipt: {
      phase: "progress",
      status: null,
      outcome_kind: null,
      artifact_location: null,
      source_system: "coder.1",
    },
    create_tenant: { tenant_id: "acme" },
    suspend_tenant: { tenant_id: "acme" },
    resume_tenant: { tenant_id: "acme" },
    set_tenant_settings: { tenant_id: "acme" },
    set_tenant_quotas: { tenant_id: "acme" },
    create_key: { role: "reader", tenant_id: "default", scopes: null },
    resume: { assumptions: null },
  }),
);

/** Tools that end or transfer what others still use. */
const late: readonly string[] = [
  "downgrade_lease",
  "transfer_lease",
  "complete_task",
  "escalate_task",
  "give_back_task",
  "release_lease",
  "release_leases",
  "announce_restart",
  "verify_all",
];

/** Keys last, because then calls need one; and tools that end something after those that use it. */
export function byHarm(all: readonly Tool[]): readonly Tool[] {
  const rank = ({ name, annotations }: Tool): number => {
    if (name.endsWith("_key") || name === "list_keys") return 3;
    if (late.includes(name)) return 2 + late.indexOf(name) / 100;
    if (name === "reset_resource") return 2.7;
    if (annotations.destructiveHint) return 2.5;
    if (name === "create_tenant") return 0.5;
    return annotations.readOnlyHint ? 0 : 1;
  };
  return [...all].sort((a, b) => rank(a) - rank(b));
}
