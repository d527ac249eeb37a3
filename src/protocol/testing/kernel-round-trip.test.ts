import assert from "node:assert/strict";
import { test } from "node:test";
import type { Actor, Command } from "../../kernel/contract/commands.ts";
import { apply, createState } from "../../kernel/kernel.ts";
import type { QueryReply } from "../answers/queries.ts";
import type { Input } from "../operation.ts";
import { findOperation, operations } from "../operations.ts";
import { eventTypes } from "../schema/vocabulary.ts";
import { eventText } from "../watching/event-json.ts";
import { findAnswerFault } from "./conformance.ts";
import { sampleBody } from "./sample-answers.ts";

const operator: Actor = { role: "operator", agentId: null, epoch: null };

/** What the tests below look at. */
interface Body {
  readonly verdict?: string;
  readonly request_id?: string | null;
  readonly leases?: readonly { readonly id: string }[];
  readonly warnings?: readonly string[];
  readonly task_id?: string;
  readonly lease_id?: string;
  readonly receipt_id?: string;
  readonly status?: string;
}

/** The real kernel behind the wire: input is checked, decoded, decided, encoded, and held to what is declared. */
function createService() {
  const state = createState();
  const used = new Set<string>();
  let now = Date.UTC(2026, 10, 15);
  let draws = 1;
  const ask = (name: string, input: Input) => {
    const operation = findOperation(name);
    assert.ok(operation?.kind === "command", name);
    used.add(name);
    const checked = operation.check(JSON.parse(JSON.stringify(input)));
    assert.ok(checked.ok, `${name}: ${JSON.stringify(checked)}`);
    draws++;
    const command = operation.decode(checked.value, {
      tenant: "acme",
      actor: operator,
      entropy: [draws, draws * 7],
    });
    if (
      command.type === "rotate_token_keys" ||
      command.type === "create_tasks" ||
      command.type === "submit_receipts" ||
      command.type === "heartbeat_tasks" ||
      command.type === "bulk_tasks"
    )
      throw new TypeError("not a command of the kernel");
    const { reply, events } = apply(state, stamped(command, draws), now);
    for (const event of events)
      assert.ok(eventTypes.includes((JSON.parse(eventText(event)) as { type: typeof event.type }).type));
    const shown: QueryReply =
      reply.type === "receipt"
        ? {
            type: "stored_receipt",
            stored: { receipt: reply.receipt, hash: "0".repeat(64), previousHash: "0".repeat(64) },
            created: true,
          }
        : reply;
    const answer = operation.encode(shown, {
      now,
      agentToken: { token: "token", expiresInMs: 1 },
      keySecret: "secret",
    });
    const { status } = answer;
    const body = sampleBody(answer);
    assert.equal(findAnswerFault(operation, { status, body }), null, `${name} ${body}`);
    return { status, body: (body === "" ? {} : JSON.parse(body)) as Body };
  };
  const wait = (ms: number) => {
    now += ms;
  };
  return { ask, wait, used };
}

test("every command of the wire goes through the kernel and back, and answers what its operation declares", () => {
  const { ask, wait, used } = createService();
  const statusOf = (name: string, input: Input) => ask(name, input).status;
  const write = (agent_id: string, resource: string, over: Input = {}) =>
    ask("acquire", { agent_id, intents: [{ predicate: "MUTATES", resource }], ...over });
  const leaseOf = ({ body }: { readonly body: Body }) => body.leases?.[0]?.id ?? "";

  assert.equal(statusOf("create_tenant", { tenant_id: "acme" }), 201);
  assert.equal(statusOf("create_tenant", { tenant_id: "acme" }), 409);
  assert.equal(statusOf("set_tenant_settings", { tenant_id: "acme", ttl_ms_max: 120_000 }), 200);
  assert.equal(statusOf("set_tenant_quotas", { tenant_id: "acme", leases_max: 100, lease_time_ms_max: null }), 200);
  assert.equal(statusOf("create_key", { role: "agent", tenant_id: "acme" }), 201);
  assert.equal(statusOf("delete_key", { key_id: "key_absent" }), 404);
  assert.equal(statusOf("rotate_key", { key_id: "key_absent", expires_at: "2099-01-01T00:00:00Z" }), 404);
  assert.equal(statusOf("assign_name", { key_id: "key_absent", agent_id: "old" }), 404);

  assert.equal(statusOf("register_agent", { agent_id: "old", labels: { host: "a" } }), 201);
  wait(5);
  assert.equal(statusOf("register_agent", { agent_id: "young" }), 201);
  assert.equal(statusOf("register_agent", { agent_id: "no spaces" }), 400);
  assert.equal(statusOf("transition_agent", { agent_id: "old", to: "VERIFYING" }), 409);
  assert.equal(statusOf("renew_agent_token", { agent_id: "old" }), 200);
  assert.equal(statusOf("pause_agent", { agent_id: "young" }), 200);
  assert.equal(write("young", "FILE:/a").status, 423);
  assert.equal(statusOf("unpause_agent", { agent_id: "young" }), 200);

  const young = leaseOf(write("young", "FILE:/a", { ttl_ms: 200_000, purpose: "y" }));
  assert.equal(write("old", "FILE:/a", { wait_timeout_ms: 0 }).status, 409);
  const waiting = write("old", "FILE:/a", { request_id: "k" });
  assert.equal(waiting.status, 202);
  assert.equal(write("old", "FILE:/b", { request_id: "k" }).status, 422);
  const request_id = waiting.body.request_id;
  assert.equal(statusOf("get_request", { request_id }), 202);
  assert.equal(statusOf("heartbeat", { lease_id: young, activity: true }), 200);
  assert.equal(statusOf("heartbeat_all", { agent_id: "young" }), 200);
  assert.equal(statusOf("renew_lease", { lease_id: young, generation: 7 }), 409);
  assert.equal(statusOf("renew_lease", { lease_id: young }), 200);
  assert.equal(statusOf("release_lease", { lease_id: young, version: "v2" }), 200);
  const granted = ask("get_request", { request_id });
  assert.equal(granted.status, 200);
  assert.equal(write("young", "FILE:/a").status, 409);
  assert.equal(statusOf("cancel_request", { request_id }), 200);

  assert.equal(statusOf("downgrade_lease", { lease_id: leaseOf(granted), predicate: "CONSUMES" }), 200);
  assert.equal(statusOf("downgrade_lease", { lease_id: leaseOf(granted), predicate: "DELETES" }), 409);
  const violated = { lease_id: leaseOf(granted), agent_id: "young" };
  assert.equal(statusOf("report_violation", { ...violated, resource: "FILE:/a" }), 200);
  assert.equal(statusOf("report_violation", { ...violated, resource: "FILE:/elsewhere" }), 400);
  assert.equal(statusOf("transfer_lease", { lease_id: leaseOf(granted), to_agent_id: "young" }), 200);
  assert.equal(statusOf("restart_agent", { agent_id: "young" }), 200);
  assert.equal(statusOf("verify_all", { agent_id: "young", lease_ids: [leaseOf(granted), "lse_never"] }), 200);
  const digest = { agent_id: "young", checkpoint_id: "c1", resume_point: "here", context: { deep: [1] } };
  assert.equal(statusOf("save_digest", digest), 200);
  assert.equal(
    statusOf("resume_agent", { agent_id: "young", assumptions: [{ resource: "FILE:/a", version: "v2" }] }),
    200,
  );
  assert.equal(statusOf("resume_agent", { agent_id: "old" }), 404);
  assert.equal(statusOf("release_all", { agent_id: "young", versions: { "FILE:/a": "v3" } }), 200);

  assert.equal(statusOf("declare_resource", { resource: "GPU:/a", capacity: 2 }), 201);
  assert.equal(
    ask("acquire", { agent_id: "old", intents: [{ predicate: "CONSUMES", resource: "GPU:/a", units: 3 }] }).status,
    403,
  );
  assert.equal(statusOf("fence_resource", { resource: "GPU:/a", reason: "hot" }), 200);
  assert.equal(statusOf("reset_resource", { resource: "GPU:/a" }), 200);
  assert.equal(statusOf("withdraw_resource", { resource: "GPU:/a", revoke: true }), 200);
  assert.equal(statusOf("withdraw_resource", { cell: "lab-1" }), 404);
  assert.equal(statusOf("readmit_cell", { cell: "lab-1" }), 404);
  write("old", "FILE:/z");
  assert.deepEqual(ask("revoke", { resource_prefix: "FILE:/", reason: "over" }).body, { revoked: 1 });
  assert.equal(statusOf("heartbeat", { lease_id: "lse_never" }), 404);

  const task = { task_type: "t", principal_ai: "p", lease_duration_ms: 1_000, requeue_delay_ms: 0, max_attempts: 1 };
  const { body: created } = ask("create_task", { ...task, idempotency_key: "once" });
  assert.equal(statusOf("create_task", { ...task, idempotency_key: "once" }), 200);
  assert.equal(statusOf("create_task", { ...task, depends_on: ["T-never"] }), 404);
  assert.equal(statusOf("set_task_type", { task_type: "t", max_attempts: 2 }), 200);
  const poll = () => ask("poll_tasks", { worker_id: "w.1" });
  const offered = poll().body;
  assert.equal(offered.task_id, undefined, "an offer has its task inside");
  assert.equal(statusOf("poll_tasks", { worker_id: "w.1" }), 204);
  assert.equal(statusOf("poll_tasks", { worker_id: "odd" }), 400);
  const { lease_id } = offered;
  assert.equal(statusOf("heartbeat_task", { lease_id, progress: { percent: 1 } }), 200);
  assert.equal(statusOf("release_task", { lease_id }), 200);
  const again = poll().body.lease_id;
  assert.equal(statusOf("submit_receipt", { phase: "complete", status: "success", lease_id: again }), 409);
  assert.equal(statusOf("submit_receipt", { phase: "accepted", lease_id: again, status: "success" }), 422);
  assert.equal(statusOf("submit_receipt", { phase: "accepted", lease_id: again }), 201);
  assert.equal(statusOf("redrive_task", { task_id: created.task_id }), 409);
  wait(1_001);
  const obligation_id = `obl_${String(created.task_id).slice(2)}-1`;
  const recovery = { obligation_id, custodian: "boss", reason: "gone" };
  assert.equal(statusOf("recover_obligation", recovery), 200);
  assert.equal(statusOf("recover_obligation", recovery), 409);
  assert.equal(ask("redrive_task", { task_id: created.task_id }).body.status, "queued");
  assert.equal(ask("cancel_task", { task_id: created.task_id }).body.status, "canceled");

  const rules = [{ effect: "deny", actions: ["lease"], resources: ["FILE:/secret/**"] }];
  assert.equal(statusOf("set_policy", { policy_id: "secrets", rules }), 201);
  assert.equal(statusOf("set_policy", { policy_id: "secrets", roles: ["agent"], rules }), 200);
  assert.equal(statusOf("set_policy", { policy_id: "Secrets", rules }), 400);
  assert.equal(statusOf("delete_policy", { policy_id: "secrets" }), 200);
  assert.equal(statusOf("delete_policy", { policy_id: "secrets" }), 404);

  assert.equal(statusOf("suspend_tenant", { tenant_id: "acme", reason: "unpaid" }), 200);
  assert.equal(statusOf("resume_tenant", { tenant_id: "acme" }), 200);

  // Several at once are several commands of the kernel, and of the keys of tokens it knows nothing.
  const others = [
    "create_tasks",
    "submit_receipts",
    "heartbeat_tasks",
    "cancel_tasks",
    "redrive_tasks",
    "rotate_token_keys",
  ];
  const isOne = (name: string) => !others.includes(name);
  const commands = operations
    .filter(({ kind }) => kind === "command")
    .map(({ name }) => name)
    .filter(isOne);
  assert.deepEqual([...used].toSorted(), commands.toSorted());
});

test("a dry run has no request that could be asked for (W12)", () => {
  const { ask } = createService();
  ask("create_tenant", { tenant_id: "acme" });
  ask("register_agent", { agent_id: "a" });
  const { status, body } = ask("acquire", {
    agent_id: "a",
    intents: [{ predicate: "MUTATES", resource: "FILE:/a" }],
    dry_run: true,
  });
  assert.deepEqual([status, body.verdict, body.request_id], [200, "GRANTED", null]);
});

test("a TTL over the cap is capped, and the reply says so (L2)", () => {
  const { ask } = createService();
  ask("create_tenant", { tenant_id: "acme" });
  ask("register_agent", { agent_id: "a" });
  const { body } = ask("acquire", {
    agent_id: "a",
    intents: [{ predicate: "MUTATES", resource: "FILE:/a" }],
    ttl_ms: 9_000_000,
  });
  assert.equal(body.warnings?.length, 1);
});

/** What the server adds to a new key. */
function stamped(command: Command, draw: number): Command {
  if (command.type !== "create_key") return command;
  return { ...command, key: { ...command.key, id: `key_${draw}`, hash: "hash" } };
}
