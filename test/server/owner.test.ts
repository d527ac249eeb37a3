import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createGate } from "../../src/server/http/edge.ts";
import { startServer } from "../../src/server/start.ts";
import { createMemoryDisk, createMemoryStore } from "../../src/store/memory.ts";
import { challengeHeader, findOwner, newChallenge, proofHeader, proofOf } from "../../src/trust/owner-token.ts";
import { serve } from "./harness.ts";

const state = mkdtempSync(join(tmpdir(), "leasehold-owner-"));
process.env["LEASEHOLD_STATE"] = state;
after(() => rmSync(state, { recursive: true, force: true }));

test("S5: with --owner-only a request on loopback needs the token in the owner's file", async (t) => {
  const { get, address } = await serve(t, { ownerOnly: true });
  const refused = await get("/v1/leases");
  assert.equal(refused.status, 401);
  assert.match(refused.body.detail ?? "", /its owner's alone.*owner\/127\.0\.0\.1-\d+\.json/);
  assert.equal((await get("/healthz")).status, 200);

  const owner = findOwner(address.url, process.env);
  assert.ok(owner !== null);
  assert.equal(statSync(owner.file).mode & 0o777, 0o600);
  assert.equal((await get("/v1/keys", { key: owner.token })).status, 200, "it is the operator's");
  assert.equal((await get("/v1/keys", { key: `${owner.token}x` })).status, 401);
});

test("S5: the owner's token survives a restart on the same data, and its file goes with the server", async () => {
  const disk = createMemoryDisk();
  const tokens: string[] = [];
  for (let round = 0; round < 2; round++) {
    const server = await startServer({ port: 0, store: createMemoryStore(disk), ownerOnly: true });
    const owner = findOwner(server.address.url, process.env);
    assert.ok(owner !== null);
    tokens.push(owner.token);
    await server.close();
    assert.equal(existsSync(owner.file), false);
  }
  assert.equal(tokens[0], tokens[1]);
  assert.deepEqual(readdirSync(join(state, "owner")), []);
});

test("M6: a server proves that it knows the owner's token, for its own address only", async (t) => {
  const { get, address } = await serve(t, { ownerOnly: true });
  const owner = findOwner(address.url, process.env);
  assert.ok(owner !== null);
  const challenge = newChallenge();
  const { headers } = await get("/healthz", { headers: { [challengeHeader]: challenge } });
  assert.equal(headers.get(proofHeader), proofOf(owner, challenge));
  const elsewhere = proofOf({ ...owner, url: "http://127.0.0.1:1" }, challenge);
  assert.notEqual(headers.get(proofHeader), elsewhere, "a proof that is passed on is of no use");
  const without = await serve(t);
  assert.equal(
    (await without.get("/healthz", { headers: { [challengeHeader]: challenge } })).headers.has(proofHeader),
    false,
  );
});

test("S5: a server without --owner-only removes the file that a crash has left for its address", async (t) => {
  const crashed = await serve(t, { ownerOnly: true });
  const { file } = findOwner(crashed.address.url, process.env) ?? { file: "" };
  const text = readFileSync(file, "utf8");
  await crashed.close();
  const { writeFileSync } = await import("node:fs");
  writeFileSync(file, text, { mode: 0o600 });
  await serve(t, { port: crashed.address.port });
  assert.equal(existsSync(file), false);
});

test("S5: --owner-only beyond loopback is refused", async () => {
  const options = { host: "0.0.0.0", behindProxy: ["10.0.0.5"], ownerOnly: true, port: 0, store: "memory" } as const;
  await assert.rejects(startServer(options), /--owner-only is for loopback, and 0\.0\.0\.0 is not/);
});

test("M6: without keys, a request that a proxy has passed on is not the operator's", async (t) => {
  const { get } = await serve(t);
  assert.equal((await get("/v1/keys")).status, 200);
  const added = ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via"];
  for (const header of added) {
    const { status, body } = await get("/v1/keys", { headers: { [header]: "203.0.113.7" } });
    assert.deepEqual([header, status, body.error], [header, 401, "unauthorized"]);
    assert.match(body.detail ?? "", /came through a proxy.*create a key/);
  }
});

test("M6: with --behind-proxy a server needs keys, on loopback too", async () => {
  const start = startServer({ port: 0, store: "memory", behindProxy: ["127.0.0.1"] });
  await assert.rejects(start, /^NoKeys: a proxy lets others in, and there are no keys yet/);
});

test("S5: behind a proxy only that proxy and this machine are let in, and only what came over TLS", () => {
  const gate = createGate({
    host: "0.0.0.0",
    allowedHosts: ["*"],
    allowedOrigins: [],
    behindProxy: ["10.0.0.0/24", "fd00::5"],
  });
  const at = (remoteAddress: string, proto?: string): string => {
    const headers = { host: "x", ...(proto !== undefined && { "x-forwarded-proto": proto }) };
    const request = {
      headers,
      url: "/",
      method: "GET",
      httpVersionMajor: 1,
      httpVersionMinor: 1,
      socket: { remoteAddress },
    };
    return gate.check(request as unknown as IncomingMessage)?.code ?? "in";
  };
  assert.equal(at("10.0.0.5"), "in");
  assert.equal(at("::ffff:10.0.0.5", "https"), "in");
  assert.equal(at("fd00::5", "https"), "in");
  assert.equal(at("127.0.0.1"), "in");
  assert.equal(at("10.0.0.5", "http"), "tls_required");
  assert.equal(at("10.0.0.5", "https, http"), "tls_required");
  assert.equal(at("10.0.1.5", "https"), "tls_required", "another machine's word is not believed");
  assert.equal(at("fd00::6"), "tls_required");
});
