import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ServerOptions } from "../../src/server/start.ts";
import { temporaryFolder } from "../temporary-folder.ts";
import { serve, until } from "./harness.ts";

interface Put {
  readonly pointer: string;
  readonly sha256: string;
  readonly size: number;
  readonly error?: string;
}

async function serveArtifacts(t: TestContext, options: ServerOptions = {}) {
  const server = await serve(t, options);
  const url = `${server.address.url}/v1/artifacts`;
  const put = async (body: Buffer | string, headers: Readonly<Record<string, string>> = {}) => {
    const response = await fetch(url, { method: "PUT", body: new Uint8Array(Buffer.from(body)), headers });
    return { status: response.status, body: (await response.json()) as Put };
  };
  const fetched = (sha256: string, headers = {}) => fetch(`${url}/${sha256}`, { headers });
  return { ...server, put, fetched, url };
}

const sha256Of = (bytes: Buffer | string) => createHash("sha256").update(bytes).digest("hex");

test("an artifact is stored under its checksum, and comes back byte for byte", async (t) => {
  const { put, fetched } = await serveArtifacts(t);
  for (const bytes of [randomBytes(300_000), Buffer.alloc(0), Buffer.from('{"json": "is bytes too"}')]) {
    const { status, body } = await put(bytes, { "content-type": "text/x-python" });
    const sha256 = sha256Of(bytes);
    assert.deepEqual([status, body], [201, { pointer: `leasehold://artifacts/${sha256}`, sha256, size: bytes.length }]);
    const response = await fetched(sha256);
    assert.deepEqual([response.status, response.headers.get("content-length")], [200, String(bytes.length)]);
    assert.ok(Buffer.from(await response.arrayBuffer()).equals(bytes));
  }
});

test("the same content twice is one file, in the data folder, and survives a restart", async (t) => {
  const data = temporaryFolder("leasehold-artifacts-");
  const first = await serveArtifacts(t, { store: "sqlite", data });
  const { body } = await first.put("twice");
  assert.deepEqual((await first.put("twice")).body, body);
  const files = readdirSync(join(data, "artifacts"), { recursive: true, withFileTypes: true }).filter((one) =>
    one.isFile(),
  );
  assert.deepEqual(
    files.map(({ parentPath, name }) => join(parentPath, name)),
    [join(data, "artifacts", "default", body.sha256.slice(0, 2), body.sha256.slice(2))],
  );
  await first.close();
  const second = await serveArtifacts(t, { store: "sqlite", data });
  assert.equal(await (await second.fetched(body.sha256)).text(), "twice");
});

test("an artifact that is too large is 413 and leaves no file, with or without a content length", async (t) => {
  const server = await serveArtifacts(t, { artifactBytesMax: 1_000 });
  const declared = await server.put(randomBytes(1_001));
  assert.deepEqual([declared.status, declared.body.error], [413, "artifact_too_large"]);
  const stream = new ReadableStream({
    start(controller) {
      for (let count = 0; count < 5; count++) controller.enqueue(new Uint8Array(400));
      controller.close();
    },
  });
  const chunked = await fetch(server.url, { method: "PUT", body: stream, duplex: "half" } as RequestInit);
  assert.deepEqual([chunked.status, ((await chunked.json()) as Put).error], [413, "artifact_too_large"]);
  assert.equal((await server.put(randomBytes(1_000))).status, 201);
});

test("all artifacts together have a size limit, to which refused ones do not count", async (t) => {
  const { put } = await serveArtifacts(t, { artifactsTotalBytesMax: 10_000 });
  assert.equal((await put("a".repeat(5_900))).status, 201);
  const full = await put("b".repeat(6_000));
  assert.deepEqual([full.status, full.body.error], [507, "artifact_space_exhausted"]);
  assert.equal((await put("a".repeat(6_000))).status, 507, "there is no room to look at it");
  assert.equal((await put("c".repeat(400))).status, 201);
  assert.equal((await put("d")).status, 507, "one byte counts as a block");
});

test("an artifact whose checksum does not match its bytes is refused", async (t) => {
  const { put } = await serveArtifacts(t);
  const good = await put("right", { "leasehold-sha256": sha256Of("right") });
  assert.equal(good.status, 201);
  const wrong = await put("wrong", { "leasehold-sha256": sha256Of("right") });
  assert.deepEqual([wrong.status, wrong.body.error], [422, "artifact_mismatch"]);
  const odd = await put("x", { "leasehold-sha256": "ABC" });
  assert.deepEqual([odd.status, odd.body.error], [400, "invalid_request"]);
});

test("another tenant's artifact is unknown, and an artifact's name is never used as a path", async (t) => {
  const server = await serveArtifacts(t);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const { body } = await server.put("mine");
  const there = await server.fetched(body.sha256, { "leasehold-tenant": "acme" });
  const never = await server.fetched(sha256Of("never"), { "leasehold-tenant": "acme" });
  assert.deepEqual([there.status, await there.text()], [404, await never.text()]);
  for (const name of [
    "..%2f..%2fleasehold.sqlite",
    ".".repeat(64),
    "%2e%2e%2f".repeat(20),
    body.sha256.toUpperCase(),
    "short",
  ]) {
    const { status } = await server.fetched(name);
    assert.ok(status === 404 || status === 400, `${name} ${status}`);
  }
  const nowhere = await server.fetched(body.sha256, { "leasehold-tenant": "nowhere" });
  assert.equal(nowhere.status, 404);
});

test("a client that disconnects during an upload leaves no file", async (t) => {
  const server = await serveArtifacts(t, { artifactsTotalBytesMax: 5_000 });
  for (let count = 0; count < 3; count++) {
    const gone = new AbortController();
    let sent = 0;
    const stream = new ReadableStream({
      pull(controller) {
        if (sent++ < 2) controller.enqueue(new Uint8Array(1_000));
        else gone.abort();
        return sent > 2 ? new Promise<void>(() => undefined) : undefined;
      },
    });
    await assert.rejects(
      fetch(server.url, { method: "PUT", body: stream, duplex: "half", signal: gone.signal } as RequestInit),
    );
  }
  for (;;) {
    const { status } = await server.put("x".repeat(4_500));
    if (status === 201) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});

test("M8: a tenant's artifacts have quotas in number and bytes, and another tenant still has room", async (t) => {
  const server = await serveArtifacts(t);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  await server.call("PUT", "/v1/tenants/default/quotas", { artifacts_max: 3, artifact_bytes_max: 20_000 });
  for (const one of ["a", "b", "c"]) assert.equal((await server.put(one)).status, 201);
  const fourth = await server.put("d");
  assert.deepEqual(
    [fourth.status, fourth.body],
    [403, { ...fourth.body, error: "quota_exceeded", quota: "artifacts_max", used: 3, limit: 3 }],
  );
  assert.equal((await server.put("d", { "leasehold-tenant": "acme" })).status, 201);
  await server.call("PUT", "/v1/tenants/default/quotas", { artifacts_max: 10 });
  const large = await server.put("e".repeat(9_000));
  assert.deepEqual(
    [large.status, large.body],
    [403, { ...large.body, error: "quota_exceeded", quota: "artifact_bytes_max", used: 3 * 4_096, limit: 20_000 }],
  );
});

test("M8: artifacts can be deleted, by those above and by the credential that stored them, and room comes back", async (t) => {
  const server = await serveArtifacts(t);
  const keyOf = async (role: string, key?: string) =>
    (await server.post<{ key: string }>("/v1/keys", { role }, { key })).body.key;
  const operator = await keyOf("operator");
  const [worker, other, reader] = await Promise.all(
    ["worker", "worker", "reader"].map((role) => keyOf(role, operator)),
  );
  const by = (key = "") => ({ authorization: `Bearer ${key}` });
  await server.call("PUT", "/v1/tenants/default/quotas", { artifacts_max: 1 }, { key: operator });
  const { sha256 } = (await server.put("mine", by(worker))).body;
  const remove = (key = "") => server.call<Put>("DELETE", `/v1/artifacts/${sha256}`, undefined, { key });
  assert.deepEqual([(await remove(other)).status, (await remove(reader)).status], [403, 403]);
  assert.equal((await server.put("next", by(worker))).status, 403);
  assert.equal((await remove(worker)).status, 200);
  assert.equal((await remove(operator)).status, 404);
  assert.equal((await server.fetched(sha256, by(operator))).status, 404);
  const next = (await server.put("next", by(worker))).body;
  assert.equal((await server.call("DELETE", `/v1/artifacts/${next.sha256}`, undefined, { key: operator })).status, 200);
});

test("M8: what nothing points to is deleted after its time; what a task or a receipt points to stays", async (t) => {
  const server = await serveArtifacts(t);
  const { artifacts } = server.service;
  const [task, receipt] = [
    (await server.put("for a task")).body.pointer,
    (await server.put("for a receipt")).body.pointer,
  ];
  const created = await server.post<{ task_id: string }>("/v1/tasks", {
    task_type: "a",
    principal_ai: "p",
    payload_pointer: task,
  });
  assert.equal(created.status, 201);
  const offer = (await server.post<{ lease_id: string }>("/lease", { worker_id: "w.1", capabilities: [] })).body;
  const said = { lease_id: offer.lease_id, source_system: "w.1" };
  await server.post("/v1/receipts", { ...said, phase: "accepted" });
  const done = await server.post("/v1/receipts", {
    ...said,
    phase: "complete",
    status: "success",
    outcome_kind: "artifact_pointer",
    artifact_location: "leasehold",
    artifact_pointer: receipt,
    artifact_mime: "text/plain",
  });
  assert.equal(done.status, 201, done.text);
  const lost = (await server.put("for nobody")).body;
  assert.equal(await artifacts.sweep(Date.now() - 60_000), 0, "it is not old yet");
  assert.equal(await artifacts.sweep(Date.now() + 60_000), 1);
  assert.equal(await artifacts.find("default", lost.sha256), null);
  const { body } = await server.get<{ artifacts: readonly { referenced: boolean }[]; next_cursor: string | null }>(
    "/v1/artifacts?limit=1",
  );
  assert.deepEqual(
    body.artifacts.map(({ referenced }) => referenced),
    [true],
  );
  const second = await server.get<typeof body>(`/v1/artifacts?limit=1&cursor=${body.next_cursor}`);
  assert.deepEqual([second.body.artifacts.length, second.body.next_cursor], [1, null]);
});

test("M8: files that are deleted by hand are noticed by the next count", async (t) => {
  const data = temporaryFolder("leasehold-artifacts-");
  const server = await serveArtifacts(t, {
    store: "sqlite",
    data,
    artifactsSweepMs: 100,
    artifactsTotalBytesMax: 8_192,
  });
  await server.put("a");
  await server.put("b");
  assert.equal((await server.put("c")).status, 507);
  rmSync(join(data, "artifacts", "default"), { recursive: true });
  await until(async () => ((await server.put("c")).status === 201 ? true : null), "there is room again");
});

test("M8: a suspended tenant cannot upload", async (t) => {
  const server = await serveArtifacts(t);
  await server.post("/v1/tenants/default/suspend", { reason: "unpaid" });
  const { status, body } = await server.put("more");
  assert.deepEqual([status, body.error], [423, "tenant_suspended"]);
});

test("S4: usage has a row for each quota, with what is used and its limit; operators name the tenant", async (t) => {
  interface Usage {
    readonly tenant_id: string;
    readonly usage: readonly { quota: string; unit: string; used: number | null; limit: number | null }[];
  }
  const server = await serveArtifacts(t);
  const { body: tenants } = await server.get<{ tenants: readonly { quotas: object }[] }>("/v1/tenants");
  await server.register("alice");
  await server.grant("alice", "FILE:/src/**");
  await server.put("x".repeat(5_000));
  await server.post("/v1/tasks", { task_type: "a", principal_ai: "p" });
  await server.call("PUT", "/v1/tenants/default/quotas", { kinds: { GPU: 4 } });
  const { body } = await server.get<Usage>("/v1/usage");
  const names = body.usage.map(({ quota }) => quota);
  const expected = Object.keys(tenants.tenants[0]?.quotas ?? {}).filter((name) => name !== "kinds");
  assert.deepEqual(names, [...expected, "kinds.GPU"]);
  const rowOf = (name: string) => body.usage.find(({ quota }) => quota === name);
  const used = ["leases_max", "agents_max", "patterns_max", "tasks_max", "artifacts_max"].map(
    (name) => rowOf(name)?.used,
  );
  assert.deepEqual(used, [1, 1, 1, 1, 1]);
  assert.deepEqual(rowOf("artifact_bytes_max"), {
    quota: "artifact_bytes_max",
    unit: "bytes",
    used: 5_000,
    limit: 10 * 2 ** 30,
  });
  assert.deepEqual([rowOf("lease_time_ms_max")?.used, rowOf("kinds.GPU")?.limit], [null, 4]);
  await server.post("/v1/tenants", { tenant_id: "acme" });
  const other = await server.get<Usage>("/v1/usage", { tenant: "acme" });
  assert.deepEqual(
    [other.body.tenant_id, other.body.usage.find(({ quota }) => quota === "tasks_max")?.used],
    ["acme", 0],
  );
});
