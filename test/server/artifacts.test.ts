import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ServerOptions } from "../../src/server/start.ts";
import { serve } from "./harness.ts";

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
  const data = mkdtempSync(join(tmpdir(), "leasehold-artifacts-"));
  t.after(() => rmSync(data, { recursive: true, force: true }));
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
  const { put } = await serveArtifacts(t, { artifactsTotalBytesMax: 1_000 });
  assert.equal((await put("a".repeat(600))).status, 201);
  const full = await put("b".repeat(600));
  assert.deepEqual([full.status, full.body.error], [507, "artifact_space_exhausted"]);
  assert.equal((await put("a".repeat(600))).status, 507, "there is no room to look at it");
  assert.equal((await put("c".repeat(400))).status, 201);
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
