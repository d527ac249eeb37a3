import assert from "node:assert/strict";
import { test } from "node:test";
import { follow } from "./event-client.ts";
import { type Client, mutates, serve, until } from "./harness.ts";

interface Activity {
  readonly agent_id: string;
  readonly activity: string;
  readonly paused_for?: string;
  readonly retry_in_ms?: number;
  readonly leases: readonly { readonly resource: string }[];
  readonly leases_total: number;
  readonly requests: readonly { readonly state: string }[];
}
interface Activities {
  readonly agents: readonly Activity[];
  readonly sequence: number;
  readonly next_cursor: string | null;
}
interface Wait {
  readonly waiter: string;
  readonly agent_id?: string;
  readonly task_id?: string;
  readonly request_id?: string;
  readonly reason: string;
  readonly ends_in_ms?: number;
  readonly resources: readonly string[];
  readonly blocked_by: readonly { readonly agent_id: string; readonly expires_in_ms?: number }[];
  readonly blocked_by_total: number;
  readonly waits_for_tasks?: readonly string[];
}
interface Waits {
  readonly waits: readonly Wait[];
  readonly next_cursor: string | null;
}
interface Overview {
  readonly sequence: number;
  readonly agents: Readonly<Record<string, number>>;
  readonly leases: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly tasks: Readonly<Record<string, number>>;
  readonly resources: Readonly<Record<string, number>>;
}

/** One agent in each of the five, and one more that stands by. */
async function fleetOf({ register, grant, post }: Client): Promise<void> {
  for (const id of ["oldest", "holder", "young", "younger", "fenced", "idle", "gone"]) await register(id);
  await grant("holder", "FILE:/a", { ttl_ms: 200_000 });
  await post("/v1/acquire", { agent_id: "oldest", intents: mutates("FILE:/a"), wait_timeout_ms: 60_000 });
  await post("/v1/acquire", { agent_id: "young", intents: mutates("FILE:/a") });
  await post("/v1/acquire", { agent_id: "younger", intents: mutates("FILE:/a"), standby_ms: 50_000 });
  await post("/v1/resources/fence", { resource: "GPU:/0", reason: "dirty" });
  await post("/v1/acquire", { agent_id: "fenced", intents: mutates("GPU:/0") });
  await grant("gone", "FILE:/short", { ttl_ms: 100 });
}

test("each of the five activities is what the agent's leases, requests and last verdict say", async (t) => {
  const server = await serve(t);
  await fleetOf(server);
  const { agents } = await until(async () => {
    const { body } = await server.get<Activities>("/v1/activity");
    return body.agents.find(({ agent_id }) => agent_id === "gone")?.activity === "lost" ? body : null;
  }, "the lease of the one that is gone has expired");
  const shown = Object.fromEntries(agents.map((one) => [one.agent_id, [one.activity, one.paused_for ?? null]]));
  assert.deepEqual(shown, {
    fenced: ["waiting_for_person", "paused"],
    gone: ["lost", "lost"],
    holder: ["working", null],
    idle: ["idle", null],
    oldest: ["blocked", "wait"],
    young: ["blocked", "die"],
    younger: ["blocked", "wait"],
  });
  const byId = new Map(agents.map((one) => [one.agent_id, one]));
  assert.deepEqual(
    byId.get("holder")?.leases.map(({ resource }) => resource),
    ["FILE:/a"],
  );
  assert.equal(byId.get("holder")?.leases_total, 1);
  assert.equal(byId.get("younger")?.requests[0]?.state, "STANDBY");
  assert.ok((byId.get("young")?.retry_in_ms ?? -1) >= 0, "it knows when to ask again");
  const { status, text } = await server.post("/v1/agents/idle/pause");
  assert.equal(status, 200, text);
  const paused = await server.get<Activities>("/v1/activity?activity=waiting_for_person");
  assert.deepEqual(
    paused.body.agents.map(({ agent_id }) => agent_id),
    ["fenced", "idle"],
  );
});

test("activity is listed by pages, and found by id, label and word", async (t) => {
  const { get, post, register } = await serve(t);
  for (const id of ["a", "b", "c"]) await register(id);
  await post("/v1/agents", { agent_id: "d", labels: { team: "Search" } });
  const first = await get<Activities>("/v1/activity?limit=3");
  assert.deepEqual(
    first.body.agents.map(({ agent_id }) => agent_id),
    ["a", "b", "c"],
  );
  const second = await get<Activities>(`/v1/activity?limit=3&cursor=${first.body.next_cursor}`);
  assert.deepEqual(
    second.body.agents.map(({ agent_id }) => agent_id),
    ["d"],
  );
  assert.equal(second.body.next_cursor, null);
  assert.equal((await get<Activities>("/v1/activity?search=team%3Dsearch")).body.agents[0]?.agent_id, "d");
  assert.equal((await get<Activities>("/v1/activity?agent_id=b")).body.agents.length, 1);
  assert.equal((await get("/v1/activity?activity=dancing")).status, 400);
});

test("who waits for whom is one call: requests, standbys, agents that come back after DIE, and tasks", async (t) => {
  const server = await serve(t);
  const { get, post } = server;
  await fleetOf(server);
  const isGone = async () =>
    (await get<Activities>("/v1/activity?activity=lost")).body.agents.length === 1 ? true : null;
  await until(isGone, "the short lease has expired");
  const task = { task_type: "build", principal_ai: "planner", intents: mutates("FILE:/a") };
  const { body: created } = await post<{ task_id: string }>("/v1/tasks", task);
  const after = { task_type: "build", principal_ai: "planner", depends_on: [created.task_id] };
  const { body: next } = await post<{ task_id: string }>("/v1/tasks", after);
  const { body } = await get<Waits>("/v1/waits");
  const shown = body.waits.map((one) => [one.waiter, one.agent_id ?? one.task_id, one.reason]);
  for (const wanted of [
    ["request", "oldest", "wait"],
    ["request", "younger", "standby"],
    ["agent", "young", "die"],
    ["agent", "fenced", "paused"],
    ["task", created.task_id, "resource"],
    ["task", next.task_id, "dependency"],
  ])
    assert.ok(
      shown.some((one) => one.join() === wanted.join()),
      `${wanted} in ${JSON.stringify(shown)}`,
    );
  const [first] = body.waits;
  assert.equal(first?.blocked_by[0]?.agent_id, "holder");
  assert.ok(
    (first?.blocked_by[0]?.expires_in_ms ?? 0) > 0 && (first?.ends_in_ms ?? 0) > 0,
    "each edge has a time left",
  );
  const died = body.waits.find(({ agent_id }) => agent_id === "young");
  assert.deepEqual([died?.resources, died?.blocked_by[0]?.agent_id], [["FILE:/a"], "holder"]);
  assert.deepEqual(body.waits.find(({ task_id }) => task_id === next.task_id)?.waits_for_tasks, [created.task_id]);
  const pages: string[] = [];
  for (let cursor: string | null = ""; cursor !== null; ) {
    const page: { body: Waits } = await get<Waits>(`/v1/waits?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`);
    for (const one of page.body.waits) pages.push(one.agent_id ?? one.task_id ?? "");
    cursor = page.body.next_cursor;
  }
  assert.deepEqual(
    pages,
    body.waits.map(({ agent_id, task_id }) => agent_id ?? task_id ?? ""),
  );
  const onGpu = await get<Waits>("/v1/waits?resource=GPU%3A%2F%2A%2A");
  assert.deepEqual(
    onGpu.body.waits.map(({ agent_id }) => agent_id),
    ["fenced"],
  );
  assert.equal((await get<Waits>("/v1/waits?waiter=task")).body.waits.length, 2);
  assert.equal((await get<Waits>("/v1/waits?agent_id=oldest")).body.waits.length, 1);
});

test("the overview counts what the lists show", async (t) => {
  const server = await serve(t);
  await fleetOf(server);
  await server.post("/v1/tasks", { task_type: "build", principal_ai: "planner" });
  const { body } = await until(async () => {
    const answer = await server.get<Overview>("/v1/overview");
    return answer.body.agents["lost"] === 1 ? answer : null;
  }, "the short lease has expired and was counted");
  assert.deepEqual(body.agents, { working: 1, blocked: 3, waiting_for_person: 1, idle: 1, lost: 1 });
  assert.deepEqual(body.requests, { WAITING: 1, STANDBY: 1, BINDING: 0 });
  assert.equal(body.leases, 1);
  assert.equal(body.tasks["queued"], 1);
  assert.deepEqual(body.resources, { READY: 0, FENCED: 1, WITHDRAWN: 0 });
});

test("a list and the events since its sequence have no gap, whatever happens in between", async (t) => {
  const server = await serve(t);
  const { get, post, register, grant } = server;
  await register("a");
  await grant("a", "FILE:/before");
  const { body } = await get<{ leases: { id: string }[]; sequence: number }>("/v1/leases");
  const known = new Set(body.leases.map(({ id }) => id));
  const later = await grant("a", "FILE:/after");
  const [before] = known;
  await post(`/v1/leases/${before}/release`);
  const following = await follow(server.address.url, { query: `?since=${body.sequence}` });
  t.after(() => following.stop());
  await until(() => (following.events.some(({ type }) => type === "lease.released") ? true : null), "both are seen");
  for (const { type, data } of following.events) {
    if (type === "lease.granted" && data.lease !== undefined) known.add(data.lease.id);
    if (type === "lease.released" && data.lease !== undefined) known.delete(data.lease.id);
  }
  const { body: now } = await get<{ leases: { id: string }[] }>("/v1/leases");
  assert.deepEqual([...known], [later.id]);
  assert.deepEqual(
    [...known],
    now.leases.map(({ id }) => id),
  );
  assert.ok(following.events.every(({ id }) => id > body.sequence));
});

test("another tenant's agents, waits and figures are not shown, and a worker's key may not ask", async (t) => {
  const server = await serve(t);
  await fleetOf(server);
  const { body: operator } = await server.post<{ key: string }>("/v1/keys", { role: "operator" });
  await server.post("/v1/tenants", { tenant_id: "other" }, { key: operator.key });
  const keyFor = async (role: string): Promise<string> =>
    (await server.post<{ key: string }>("/v1/keys", { role, tenant_id: "other" }, { key: operator.key })).body.key;
  const key = await keyFor("reader");
  assert.deepEqual((await server.get<Activities>("/v1/activity", { key })).body.agents, []);
  assert.deepEqual((await server.get<Waits>("/v1/waits", { key })).body.waits, []);
  assert.equal((await server.get<Overview>("/v1/overview", { key })).body.leases, 0);
  const worker = await keyFor("worker");
  for (const path of ["/v1/activity", "/v1/waits", "/v1/overview"])
    assert.equal((await server.get(path, { key: worker })).status, 403, path);
});
