import assert from "node:assert/strict";
import { readdirSync, statSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { Session } from "../../src/mcp/session.ts";
import { tools } from "../../src/mcp/tools.ts";
import { createClient } from "../../src/sdk/client.ts";
import { makeFolder } from "../cli/harness.ts";
import { proxyTo } from "../sdk/harness.ts";
import { held, pause, serve, until } from "../server/harness.ts";
import { type Body, firstLease, mutates, overStdio } from "./harness.ts";

interface Listed {
  readonly leases: readonly { readonly id: string; readonly agent_id: string }[];
}

test("the process registers, sends heartbeats and releases for its model", async (t) => {
  const { address, get, post, register, grant } = await serve(t);
  const caller = await overStdio(t, { url: address.url });
  const asked = (await caller.tools()).map(({ inputSchema }) => inputSchema);
  assert.ok(!JSON.stringify(asked).includes("agent_token"), "no token is asked for");
  const granted = await caller.do("acquire_leases", { intents: mutates("FILE:/a"), ttl_ms: 3_000 });
  const held = firstLease(granted);
  const { body: agents } = await get<{ agents: readonly { agent_id: string; labels: Body }[] }>("/v1/agents");
  const agent = agents.agents.find(({ labels }) => labels.tool === "mcp");
  assert.ok(agent?.agent_id.startsWith("mcp_"));

  const { body: task } = await post<{ task_id: string }>("/v1/tasks", { task_type: "code.x", principal_ai: "boss" });
  const { offers } = await caller.do("lease_next");
  await caller.do("accept_task", { lease_id: (offers as readonly Body[])[0]?.lease_id });
  // It is older than the holder that it waits for.
  await register("younger");
  await grant("younger", "FILE:/b");
  await caller.do("acquire_leases", { intents: mutates("FILE:/b"), hold_ms: 0 });

  const endOf = async () => (await get<{ expires_at: string }>(`/v1/leases/${held.id}`)).body.expires_at;
  const end = await endOf();
  await until(async () => ((await endOf()) > end ? true : null), "it is extended without a call");

  await caller.close();
  const waits = async () => (await get<{ requests: readonly unknown[] }>("/v1/requests")).body.requests.length;
  await until(async () => ((await waits()) === 0 ? true : null), "nothing waits");
  const ended = await until(async () => {
    const { body } = await get<{ state: string }>(`/v1/leases/${held.id}`);
    return body.state === "ACTIVE" ? null : body.state;
  }, "the lease ends");
  assert.equal(ended, "RELEASED");
  const { body: left } = await get<{ status: string }>(`/v1/tasks/${task.task_id}`);
  assert.equal(left.status, "queued", "the task is given back");
});

test("the leases of a killed process end within the TTL", async (t) => {
  const { address, get } = await serve(t);
  const caller = await overStdio(t, { url: address.url, args: ["--agent", "mortal"] });
  const { id } = firstLease(await caller.do("acquire_leases", { intents: mutates("FILE:/a"), ttl_ms: 600 }));
  process.kill(caller.pid, "SIGKILL");
  const state = await until(async () => {
    const { body } = await get<{ state: string }>(`/v1/leases/${id}`);
    return body.state === "ACTIVE" ? null : body.state;
  }, "it ends");
  assert.equal(state, "EXPIRED");
});

test("another process can take up the agent with its leases, and the first one learns that it lost them", async (t) => {
  const { address, get, post } = await serve(t);
  const args = ["--agent", "refactorer", "--toolsets", "leases"];
  const [first, second] = await Promise.all([
    overStdio(t, { url: address.url, args }),
    overStdio(t, { url: address.url, args }),
  ]);
  assert.ok((await first.tools()).every(({ name }) => name !== "lease_next"));
  const { id } = firstLease(await first.do("acquire_leases", { intents: mutates("FILE:/a"), ttl_ms: 6_000 }));
  await second.do("checkpoint", { checkpoint_id: "c", resume_point: "half way" });
  const news = await until(async () => {
    await pause(200);
    const { text } = await first.call("who_holds", { resource: "FILE:/a" });
    return text.startsWith("LOST: agent refactorer is no longer yours (stale_epoch)") ? text : null;
  }, "the first is notified");
  assert.match(news, /stop work/);
  await first.close();
  const { body: kept } = await get<Listed>("/v1/leases");
  assert.deepEqual(
    kept.leases.map((lease) => lease.id),
    [id],
    "its end took nothing away from the second",
  );

  await post("/v1/revoke", { lease_id: id, reason: "the folder is being deleted" });
  const lost = await until(async () => {
    await pause(200);
    const { text } = await second.call("who_holds", { resource: "FILE:/a" });
    return text.startsWith("LOST") ? text : null;
  }, "the second learns of the revocation");
  assert.match(lost, /FILE:\/a \(lse_\w+\) is REVOKED; stop work on it/);
});

test("without a server one is started, others use it, and replace it when it ends", async (t) => {
  const folder = makeFolder();
  t.after(() => folder.remove());
  const url = `http://127.0.0.1:${await freePort()}`;
  const args = ["--data", folder.path];
  // Both at once: one gets the address, and the other uses it.
  const [first, second] = await Promise.all([
    overStdio(t, { url, args }),
    overStdio(t, { url, args: [...args, "--agent", "second"] }),
  ]);
  await first.do("acquire_leases", { intents: mutates("FILE:/first") });
  await second.do("acquire_leases", { intents: mutates("FILE:/second") });
  const seen = await second.do("list_leases");
  assert.equal((seen.leases as readonly unknown[]).length, 2, "one server for both");
  const open = readdirSync(folder.path).filter((name) => (statSync(join(folder.path, name)).mode & 0o077) !== 0);
  assert.deepEqual(open, [], "its data is for this user alone");
  await first.close();
  const left = await until(async () => {
    const { isError, body } = await second.call("list_leases");
    return isError ? null : (body.leases as readonly Body[]).map(({ resource }) => resource);
  }, "the second has taken over");
  assert.deepEqual(left, ["FILE:/second"], "what the first held was let go of, and nothing else was lost");
});

test("a server that does not answer is reported to the model with advice, and tried again at each call", async (t) => {
  const client = createClient({ url: `http://127.0.0.1:${await freePort()}`, retries: 0 });
  let asked = 0;
  const session = new Session({ client, agentId: null, labels: {}, ensureServer: async () => void asked++ });
  t.after(() => session.end());
  const look = tools.find(({ name }) => name === "who_holds");
  const { isError, body, sentence } = (await look?.run({ resource: "FILE:/a" }, session, t.signal)) ?? noTool;
  assert.deepEqual([isError, body.error, asked], [true, "unreachable", 1]);
  assert.match(sentence, /is the server running/);
});

test("A7: out of reach of the server past the TTL, the model learns of it at its next call that its lease is lost", async (t) => {
  const server = await serve(t);
  const { get } = server;
  const proxy = await proxyTo(t, server);
  const client = createClient({ url: proxy.url, retries: 0, timeoutMs: 200 });
  const session = new Session({ client, agentId: "cut", labels: {}, ensureServer: async () => undefined, beatMs: 50 });
  t.after(() => session.end());
  const use = (name: string, args: object) => tools.find((one) => one.name === name)?.run(args, session, t.signal);
  const granted = await use("acquire_leases", { intents: mutates("FILE:/a"), ttl_ms: 1_000 });
  const { id } = firstLease(granted?.body ?? {});
  proxy.hush();
  const notice = await until(async () => {
    await use("who_holds", { resource: "FILE:/a" });
    return session.notices()[0] ?? null;
  }, "it learns of it");
  assert.match(notice, new RegExp(`^LOST: FILE:/a \\(${id}\\), the server could not be reached before its end`));
  proxy.heal();
  const state = await until(async () => {
    const { body } = await get<{ state: string }>(`/v1/leases/${id}`);
    return body.state === "ACTIVE" ? null : body.state;
  }, "what the model knows as lost does not live on");
  assert.ok(state === "RELEASED" || state === "EXPIRED", state);
});

test("W8: the process collects the grant that ended a wait when it has the answer, and the model sees nothing of it", async (t) => {
  const server = await serve(t);
  const proxy = await proxyTo(t, server);
  await server.call("PUT", "/v1/tenants/default/settings", { claim_within_ms: 1_000 });
  const client = createClient({ url: proxy.url });
  // It beats too seldom to collect anything by chance.
  const calls = { ensureServer: async () => undefined, beatMs: 60_000 };
  const session = new Session({ client, agentId: "waiter", labels: {}, ...calls });
  t.after(() => session.end());
  await session.agentId();
  await server.register("holder");
  const lease = await server.grant("holder", "FILE:/a");
  const use = (name: string, args: object) => tools.find((one) => one.name === name)?.run(args, session, t.signal);
  const waits = await use("acquire_leases", { intents: mutates("FILE:/a"), hold_ms: 0 });
  assert.equal(waits?.body["verdict"], "WAIT");
  const asked = use("await_request", { request_id: waits?.body["request_id"], hold_ms: 20_000 });
  await held(server, 1);
  proxy.loseAnswers(1);
  await server.post(`/v1/leases/${lease.id}/release`);
  const granted = (await asked)?.body ?? {};
  assert.deepEqual([granted["verdict"], "claim_within_ms" in granted], ["GRANTED", false]);
  const { id } = firstLease(granted);
  const record = server.service.engine.peek(({ tenants }) => tenants.get("default")?.leases.get(id)?.record);
  assert.deepEqual([record?.state, record?.claimBy], ["ACTIVE", null]);
  assert.deepEqual(session.notices(), []);
});

test("W5: after DIE the process holds an early attempt back until the server's hint is over", async (t) => {
  const { address, register, grant } = await serve(t);
  await register("older");
  await grant("older", "FILE:/a");
  const asked: { readonly at: number; readonly hintMs: number }[] = [];
  const listening: typeof fetch = async (url, init) => {
    const at = performance.now();
    const response = await fetch(url, init);
    if (!String(url).endsWith("/v1/acquire")) return response;
    const { retry_after_ms: hintMs } = (await response.clone().json()) as { retry_after_ms: number };
    asked.push({ at, hintMs });
    return response;
  };
  const client = createClient({ url: address.url, fetch: listening, transport: "http" });
  const session = new Session({ client, agentId: "younger", labels: {}, ensureServer: async () => undefined });
  t.after(() => session.end());
  const acquire = tools.find(({ name }) => name === "acquire_leases");
  for (let attempt = 0; attempt < 3; attempt++) {
    const { body } = (await acquire?.run({ intents: mutates("FILE:/a"), standby_ms: 0 }, session, t.signal)) ?? noTool;
    assert.equal(body.error, "die");
  }
  asked.slice(1).forEach(({ at }, index) => {
    const before = asked[index];
    assert.ok(at - (before?.at ?? 0) >= (before?.hintMs ?? 0), "not before the hint is over");
  });
  assert.equal(asked.length, 3);
});

test("L9: ended by a signal, the process announces the restart of a named agent, and the next one takes its lease up", async (t) => {
  const { address, get } = await serve(t);
  const args = ["--agent", "phoenix", "--toolsets", "leases"];
  const first = await overStdio(t, { url: address.url, args });
  const { id } = firstLease(await first.do("acquire_leases", { intents: mutates("FILE:/a"), ttl_ms: 2_000 }));
  process.kill(first.pid, "SIGTERM");
  const held = await until(async () => {
    const { body } = await get<{ state: string }>(`/v1/leases/${id}`);
    return body.state === "ACTIVE" ? null : body.state;
  }, "it runs out");
  assert.equal(held, "HELD");
  const second = await overStdio(t, { url: address.url, args });
  await second.do("heartbeat_leases");
  const { body } = await get<{ state: string }>(`/v1/leases/${id}`);
  assert.equal(body.state, "ACTIVE");
});

test("A2: at resume the model learns what the checkpoint's strategy asks of it", async (t) => {
  const { address } = await serve(t);
  const client = createClient({ url: address.url });
  const session = new Session({ client, agentId: "resuming", labels: {}, ensureServer: async () => undefined });
  t.after(() => session.end());
  const use = (name: string, args: object) => tools.find((one) => one.name === name)?.run(args, session, t.signal);
  const asked = {
    RETRY: /acquire its intent_backlog/i,
    ABORT: /transition_agent with ABORTED/,
    MERGE: /in line with what/,
  };
  for (const [strategy, words] of Object.entries(asked)) {
    await use("checkpoint", { checkpoint_id: strategy, resume_point: "half", resolution_strategy: strategy });
    assert.match((await use("resume", {}))?.sentence ?? "", words);
  }
});

const noTool = { isError: false, body: {} as Body, sentence: "" };

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
