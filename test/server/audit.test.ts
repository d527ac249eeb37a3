import assert from "node:assert/strict";
import { test } from "node:test";
import { findFault } from "../../src/cli/commands/audit.ts";
import type { OperationAnswers } from "../../src/sdk/wire.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { type CallOptions, type Client, serve } from "./harness.ts";
import type { WireKey } from "./wire-types.ts";

type Page = OperationAnswers["list_audit"];

const auditOf = async ({ get }: Client, query = "", options: CallOptions = {}) =>
  (await get<Page>(`/v1/audit${query}`, options)).body.entries;

test("S7, M12: keys, quotas, revocations, rotations and backups leave who did it, when and from where", async (t) => {
  const server = await serve(t);
  const { post, call, register } = server;
  await register("alice");
  const first = await post<WireKey & { key: string }>("/v1/keys", { role: "operator", label: "root" });
  const root = { key: first.body.key };
  const second = await post<WireKey & { key: string }>("/v1/keys", { role: "supervisor", label: "night" }, root);
  await call("PUT", "/v1/tenants/default/quotas", { leases_max: 7 }, root);
  await post("/v1/revoke", { agent_id: "alice", reason: "incident 4711" }, { key: second.body.key });
  await post("/v1/token-keys/rotate", {}, root);
  await call("DELETE", `/v1/keys/${second.body.key_id}`, undefined, root);
  const entries = await auditOf(server, "", root);
  assert.deepEqual(
    entries.map(({ actor, role, action }) => [actor, role, action]),
    [
      ["keyless", "operator", "create_key"],
      [first.body.key_id, "operator", "create_key"],
      [first.body.key_id, "operator", "set_tenant_quotas"],
      [second.body.key_id, "supervisor", "revoke"],
      [first.body.key_id, "operator", "rotate_token_keys"],
      [first.body.key_id, "operator", "delete_key"],
    ],
  );
  assert.deepEqual(new Set(entries.slice(0, 4).map(({ address }) => address)), new Set(["127.0.0.1"]));
  assert.equal(findFault(entries), null);
  assert.deepEqual(
    (await auditOf(server, "?action=revoke", root)).map(({ target, detail }) => [target, detail]),
    [["alice", { agent_id: "alice", reason: "incident 4711" }]],
  );
  assert.equal((await auditOf(server, `?actor=${second.body.key_id}`, root)).length, 1);
  assert.deepEqual(await auditOf(server, "?since=2999-01-01T00:00:00Z", root), []);
  assert.equal((await server.get("/v1/audit?since=soon", root)).body.field, "since");
});

test("S7: an entry that was changed, removed or swapped is found", async (t) => {
  const server = await serve(t);
  for (const capacity of [1, 2, 3]) await server.call("PUT", "/v1/resources", { resource: "GPU:/0", capacity });
  const entries = await auditOf(server);
  const [one, two, three] = entries;
  assert.ok(one && two && three);
  assert.equal(findFault(entries), null);
  assert.equal(findFault([one, { ...two, actor: "key_other" }, three]), "entry 2 was changed");
  assert.equal(findFault([one, three]), "entry 2 is missing");
  assert.equal(findFault([one, { ...three, sequence: 2 }]), "entry 2 does not follow from the one before");
});

test("S7: the chain goes on after a restart, and each tenant has its own", async (t) => {
  const disk = createMemoryDisk();
  const open = () => serve(t, { store: createMemoryStore(disk) });
  const before = await open();
  await before.post("/v1/tenants", { tenant_id: "acme" });
  await before.post("/v1/resources/fence", { resource: "GPU:/0", reason: "smoke" });
  await before.close();
  const after = await open();
  await after.post("/v1/resources/reset", { resource: "GPU:/0" });
  await after.post("/v1/tenants/acme/suspend", { reason: "unpaid" });
  for (const tenant of ["default", "acme"]) {
    const entries = await auditOf(after, "", { tenant });
    assert.equal(findFault(entries), null);
    assert.equal(entries.length, 2, tenant);
  }
});

test("S7: the log is for operators and supervisors, in the list and among the events", async (t) => {
  const server = await serve(t);
  const { post, get } = server;
  const root = { key: (await post<{ key: string }>("/v1/keys", { role: "operator" })).body.key };
  const reader = { key: (await post<{ key: string }>("/v1/keys", { role: "reader" }, root)).body.key };
  await post("/v1/resources/fence", { resource: "GPU:/0", reason: "smoke" }, root);
  assert.equal((await get("/v1/audit", reader)).body.error, "forbidden");
  const eventsFor = async (options: CallOptions) => (await get("/v1/events?since=0&follow=false", options)).text;
  assert.match(await eventsFor(root), /"type":"audit.recorded"/);
  const seen = await eventsFor(reader);
  assert.match(seen, /"type":"resource.fenced"/);
  assert.doesNotMatch(seen, /"type":"audit.recorded"/);
});
