import assert from "node:assert/strict";
import { test } from "node:test";
import { serve, until } from "./harness.ts";

interface Operation {
  readonly operation_id: string;
  readonly state: string;
  readonly matched: number;
  readonly done: number;
  readonly failed: number;
}
interface Tasks {
  readonly tasks: readonly { readonly task_id: string; readonly status: string }[];
  readonly next_cursor: string | null;
}
type Server = Awaited<ReturnType<typeof serve>>;

const create = ({ post }: Server, task_type: string, more: object = {}) =>
  post<{ task_id: string }>("/v1/tasks", { task_type, principal_ai: "planner", ...more });

async function ended({ get, post }: Server, path: string, body: object): Promise<Operation> {
  const begun = await post<Operation>(path, body);
  assert.equal(begun.status, 202, begun.text);
  return until(async () => {
    const { body: shown } = await get<Operation>(`/v1/operations/${begun.body.operation_id}`);
    return shown.state === "done" || shown.state === "failed" ? shown : null;
  }, "the operation has ended");
}

test("L14: all tasks that match are canceled on the server, and no others", async (t) => {
  const server = await serve(t);
  const tasks = Array.from({ length: 100 }, () => ({ task_type: "build", principal_ai: "planner" }));
  await server.post("/v1/tasks/batch", { tasks });
  await create(server, "deploy");
  const filter = { task_type: "build" };
  const counted = await ended(server, "/v1/tasks/cancel", { filter, dry_run: true });
  assert.deepEqual([counted.state, counted.matched, counted.done], ["done", 100, 0]);
  assert.equal((await server.get<Tasks>("/v1/tasks?status=canceled")).body.tasks.length, 0);
  const { state, matched, done, failed } = await ended(server, "/v1/tasks/cancel", { filter, reason: "not needed" });
  assert.deepEqual([state, matched, done, failed], ["done", 100, 100, 0]);
  const { body: left } = await server.get<Tasks>("/v1/tasks?status=queued");
  assert.equal(left.tasks.length, 1);
  const { body: audit } = await server.get<{ entries: { action: string }[] }>("/v1/audit?action=cancel_tasks");
  assert.equal(audit.entries.length, 2);
});

test("T5: dead letters that match are redriven", async (t) => {
  const server = await serve(t);
  const { body: made } = await create(server, "build", { max_offers: 1 });
  const { body: offer } = await server.post<{ lease_id: string }>("/v1/lease", { worker_id: "w.1", capabilities: [] });
  await server.post(`/v1/lease/${offer.lease_id}/release`);
  await until(async () => {
    const { body } = await server.get<Tasks>("/v1/tasks?status=dead");
    return body.tasks.length === 1 ? true : null;
  }, "it is dead");
  const { matched, done } = await ended(server, "/v1/tasks/redrive", { filter: { task_type: "build" } });
  assert.deepEqual([matched, done], [1, 1]);
  const { body } = await server.get<{ status: string }>(`/v1/tasks/${made.task_id}`);
  assert.equal(body.status, "queued");
});

test("tasks are found by principal, time and what is in their inputs, alive or ended", async (t) => {
  const server = await serve(t);
  const { body: one } = await create(server, "build", { inputs: { branch: "Needle-7" } });
  await create(server, "build", { inputs: { branch: "hay" } });
  const { body: other } = await create(server, "build", { principal_ai: "critic", task_summary: "find the NEEDLE" });
  const found = async (query: string) =>
    (await server.get<Tasks>(`/v1/tasks?${query}`)).body.tasks.map(({ task_id }) => task_id);
  assert.deepEqual(await found("search=needle"), [one.task_id, other.task_id]);
  assert.deepEqual(await found("principal_ai=critic"), [other.task_id]);
  assert.deepEqual(await found("created_before=2001-01-01T00:00:00Z"), []);
  assert.equal((await server.get("/v1/tasks?created_after=soon")).status, 400);
  const { done } = await ended(server, "/v1/tasks/cancel", { filter: { search: "needle-7" } });
  assert.equal(done, 1);
  assert.deepEqual(await found("search=needle-7&status=canceled"), [one.task_id]);
});

test("S4, S8: a page of a search reads a megabyte of bodies at most, and its cursor goes on behind them", async (t) => {
  const server = await serve(t);
  const hay = "x".repeat(90_000);
  for (let count = 0; count < 25; count++) await create(server, "build", { task_body: hay });
  const { body: one } = await create(server, "build", { task_body: `${hay} needle` });
  const walk = async (query: string) => {
    const pages: string[][] = [];
    let cursor: string | null = "";
    while (cursor !== null) {
      const path: string = `/v1/tasks?${query}&limit=1000${cursor === "" ? "" : `&cursor=${cursor}`}`;
      const { tasks, next_cursor }: Tasks = (await server.get<Tasks>(path)).body;
      pages.push(tasks.map(({ task_id }) => task_id));
      cursor = next_cursor;
    }
    return pages;
  };
  const alive = await walk("search=needle&status=queued");
  assert.deepEqual([alive.flat(), alive.length], [[one.task_id], 3]);
  // What is found without its body is not read.
  assert.equal((await walk(`search=${one.task_id.slice(0, 3)}&status=queued`)).length, 1);
  await ended(server, "/v1/tasks/cancel", { filter: { task_type: "build" } });
  const over = await walk("search=needle&status=canceled");
  assert.deepEqual([over.flat(), over.length], [[one.task_id], 3]);
});

test("an empty filter, an unknown operation, another tenant's and a worker's key are refused", async (t) => {
  const server = await serve(t);
  const { status, body } = await server.post("/v1/tasks/cancel", { filter: {} });
  assert.deepEqual([status, body.error, body.field], [400, "invalid_request", "filter"]);
  const time = await server.post("/v1/tasks/cancel", { filter: { created_before: "soon" } });
  assert.deepEqual([time.status, time.body.field], [400, "filter.created_before"]);
  assert.equal((await server.get("/v1/operations/opr_never")).body.error, "operation_unknown");
  const { operation_id } = await ended(server, "/v1/tasks/cancel", { filter: { status: "queued" } });
  const { body: operator } = await server.post<{ key: string }>("/v1/keys", { role: "operator" });
  await server.post("/v1/tenants", { tenant_id: "other" }, { key: operator.key });
  const keyOf = async (role: string): Promise<string> =>
    (await server.post<{ key: string }>("/v1/keys", { role, tenant_id: "other" }, { key: operator.key })).body.key;
  const key = await keyOf("reader");
  assert.equal((await server.get(`/v1/operations/${operation_id}`, { key })).status, 404);
  const worker = await keyOf("worker");
  assert.equal((await server.post("/v1/tasks/cancel", { filter: { status: "queued" } }, { key: worker })).status, 403);
});

test("S5: an operation ends with the key that began it, and says so", async (t) => {
  const server = await serve(t);
  const { body: operator } = await server.post<{ key: string }>("/v1/keys", { role: "operator" });
  const as = { key: operator.key };
  const tasks = Array.from({ length: 5_000 }, () => ({ task_type: "build", principal_ai: "planner" }));
  for (let n = 0; n < 2; n++) await server.post("/v1/tasks/batch", { tasks }, as);
  const { body: supervisor } = await server.post<{ key: string; key_id: string }>(
    "/v1/keys",
    { role: "supervisor" },
    as,
  );
  const filter = { task_type: "build" };
  const begun = await server.post<Operation>("/v1/tasks/cancel", { filter }, { key: supervisor.key });
  await server.call("DELETE", `/v1/keys/${supervisor.key_id}`, undefined, as);
  const { state, detail, done } = await until(async () => {
    const { body } = await server.get<Operation & { detail: string | null }>(
      `/v1/operations/${begun.body.operation_id}`,
      as,
    );
    return body.state === "done" || body.state === "failed" ? body : null;
  }, "the operation has ended");
  assert.equal(state, "failed");
  assert.match(detail ?? "", /key was deleted/);
  assert.ok(done < 10_000, `${done} were canceled`);
  assert.notEqual((await server.get<Tasks>("/v1/tasks?status=queued", as)).body.tasks.length, 0);
});

test("S4: a tenant's operations push out its own oldest, and no other tenant's", async (t) => {
  const server = await serve(t);
  await server.post("/v1/tenants", { tenant_id: "other" });
  const body = { filter: { status: "queued" }, dry_run: true };
  const wanted = await server.post<Operation>("/v1/tasks/cancel", body, { tenant: "other" });
  const own: string[] = [];
  while (own.length < 1_100) {
    const { status, body: begun } = await server.post<Operation>("/v1/tasks/cancel", body);
    if (status === 202) own.push(begun.operation_id);
  }
  const known = async (id: string | undefined, tenant = "default") =>
    (await server.get(`/v1/operations/${id}`, { tenant })).status;
  assert.equal(await known(wanted.body.operation_id, "other"), 200);
  assert.deepEqual([await known(own[0]), await known(own.at(-1))], [404, 200]);
});
