/** Leases that only read, at every driver: the token carries the predicate, and the live lease decides (G3, G4). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { WebSocket, WebSocketServer } from "ws";
import { inspect, mint } from "../token/index.ts";
import type { CellLease } from "./binding.ts";
import {
  atEnd,
  eventually,
  failsWith,
  makeCell,
  narrowed,
  newLease,
  scratch,
  startHttp,
  startTcp,
  type TestCell,
  testCellName,
  testKeys,
} from "./testing/test-cell.ts";

const resource = "THING:/a";
const seen: string[] = [];
const service = await startHttp((request, response) => {
  seen.push(request.method ?? "");
  if (request.url === "/hang") return;
  request.resume();
  request.on("end", () => response.end("done"));
});
const sockets = new WebSocketServer({ server: service.server });
sockets.on("connection", (socket) => socket.on("message", (data) => socket.send(String(data))));
const echo = await startTcp((socket) => socket.pipe(socket));
atEnd(() => {
  for (const client of sockets.clients) client.terminate();
});
const folder = join(scratch, "area");
mkdirSync(folder);
writeFileSync(join(folder, "a.txt"), "old");

const http = (more: object = {}): TestCell => cellWith("http", { target: `http://${service.address}`, ...more });
const tcp = (more: object = {}): TestCell => cellWith("tcp", { target: echo.address, ...more });
const files = (): TestCell => cellWith("files", { folder });

function cellWith(driver: string, options: object): TestCell {
  return makeCell([{ resource, driver, options }]);
}

const readers = ["CONSUMES", "DEPENDS_ON"] as const;
const writers = ["MUTATES", "PROVIDES", "DELETES", "RENAMES"] as const;

async function ask(coordinate: string, token: string, method: string, path = "/a.txt"): Promise<string> {
  const headers = { authorization: `Bearer ${token}` };
  const body = method === "GET" ? null : "new";
  const response = await fetch(`${coordinate}${path}`, { method, headers, body });
  const text = await response.text();
  const { error, caveat } = text.startsWith("{") ? (JSON.parse(text) as { error?: string; caveat?: string }) : {};
  return error === undefined ? String(response.status) : [response.status, error, caveat].filter(Boolean).join(" ");
}

async function greet(coordinate: string, token: string): Promise<{ line: string; socket: Socket }> {
  const { hostname, port } = new URL(coordinate);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(`${token}\n`);
  const [line] = (await once(socket, "data")) as [Buffer];
  return { line: String(line), socket };
}

const refused = "401 caveat_failed predicate";

test("G3: a token names the predicate of its lease", async () => {
  for (const predicate of [...readers, ...writers]) {
    const { token } = await http().core.bind(newLease(resource, undefined, { predicate }));
    const inspected = inspect(token);
    assert(!("code" in inspected));
    assert.equal(inspected.claims.predicate, predicate);
  }
});

test("G4: a lease that only reads cannot write a file or call a method that writes", async () => {
  for (const make of [http, files]) {
    const cell = make();
    for (const predicate of readers) {
      const lease = newLease(resource, undefined, { predicate });
      const { coordinate, token } = await cell.core.bind(lease);
      assert.equal(await ask(coordinate, token, "GET"), "200");
      for (const method of ["PUT", "DELETE", "POST", "PATCH", "PROPFIND"]) {
        seen.length = 0;
        assert.equal(await ask(coordinate, token, method), refused, `${predicate} ${method}`);
        assert.deepEqual(seen, []);
      }
      const wider = narrowed(token, { type: "operations", operations: ["read", "write"] });
      assert.equal(await ask(coordinate, wider, "PUT"), refused);
      await cell.core.teardown(lease.id);
    }
  }
  assert.equal(readFileSync(join(folder, "a.txt"), "utf8"), "old");
  for (const predicate of writers) {
    const { coordinate, token } = await http().core.bind(newLease(resource, undefined, { predicate }));
    assert.equal(await ask(coordinate, token, "PUT"), "200", predicate);
  }
});

test("G4: what a cell cannot see into counts as a write, unless the configuration names it in reads", async () => {
  const reader = newLease(resource, undefined, { predicate: "CONSUMES" });
  const closed = await tcp().core.bind(reader);
  const { line, socket } = await greet(closed.coordinate, closed.token);
  assert.match(line, /"error":"caveat_failed".*"caveat":"predicate"/);
  socket.destroy();
  const open = await tcp({ reads: ["connect"] }).core.bind(reader);
  const greeted = await greet(open.coordinate, open.token);
  assert.equal(greeted.line, "ok\n");
  greeted.socket.destroy();
  const upgrade = async ({ coordinate, token }: { coordinate: string; token: string }): Promise<number> => {
    const socket = new WebSocket(coordinate.replace("http", "ws"), { headers: { authorization: `Bearer ${token}` } });
    socket.on("error", () => {});
    return await new Promise((resolve) => {
      socket.on("open", () => resolve(101));
      socket.on("unexpected-response", (_request, { statusCode = 0 }) => resolve(statusCode));
    });
  };
  assert.equal(await upgrade(await http().core.bind(reader)), 401);
  assert.equal(await upgrade(await http({ reads: ["connect"] }).core.bind(reader)), 101);
});

test("G4: a lease that only reads runs no program, and gets nothing that exec, webhook or a command set up", async () => {
  const reader = newLease(resource, undefined, { predicate: "CONSUMES" });
  const marker = join(scratch, "bound");
  const touch = ["/bin/sh", "-c", `echo "$LEASEHOLD_PREDICATE" > ${marker}; echo here`];
  const bind = { bind: touch, teardown: ["/bin/true"] };
  for (const [driver, options] of [
    ["exec", bind],
    ["webhook", { url: `http://${service.address}`, secret_file: "secret", allow_private: true }],
    ["process", { command: touch, grace_ms: 50 }],
  ] as const) {
    writeFileSync(join(scratch, "secret"), "0123456789abcdef");
    seen.length = 0;
    const cell = cellWith(driver, options);
    const { message } = await failsWith("bind_failed", cell.core.bind(reader));
    assert.match(message, /CONSUMES only reads/, driver);
    assert(!existsSync(marker) && seen.length === 0, driver);
    assert.equal(cell.core.inventory()[0]?.fenced, null);
  }
  const willing = cellWith("exec", { ...bind, reads: ["bind"] });
  assert.equal((await willing.core.bind(reader)).coordinate, "here");
  assert.equal(readFileSync(marker, "utf8"), "CONSUMES\n");
  const sh = realpathSync("/bin/sh");
  const run = async (options: object): Promise<string> => {
    const { coordinate, token } = await cellWith("process", { allow: [sh], grace_ms: 50, ...options }).core.bind(
      reader,
    );
    const headers = { authorization: `Bearer ${token}` };
    return await (await fetch(`${coordinate}/run`, { method: "POST", headers, body: `{"argv":["${sh}"]}` })).text();
  };
  assert.match(await run({}), /"error":"caveat_failed".*"caveat":"predicate"/);
  assert.match(await run({ reads: ["run"] }), /"type":"exit","code":0/);
});

test("G4: with a downgrade the token that wrote reads only, and what was being written is cut", async () => {
  const cell = http();
  const lease = newLease(resource);
  const { coordinate, token } = await cell.core.bind(lease);
  assert.equal(await ask(coordinate, token, "PUT"), "200");
  const hanging = ask(coordinate, token, "PUT", "/hang");
  const reading = ask(coordinate, token, "GET", "/hang");
  const socket = new WebSocket(coordinate.replace("http", "ws"), { headers: { authorization: `Bearer ${token}` } });
  socket.on("error", () => {});
  await once(socket, "open");
  await eventually(() => cell.core.bindings()[0]?.inFlight === 3);
  const closed = once(socket, "close");
  const fresh = await cell.core.renew({ ...lease, predicate: "CONSUMES" });
  assert.equal(await hanging, refused);
  await closed;
  assert.equal(cell.core.bindings()[0]?.inFlight, 1, "what reads goes on");
  for (const shown of [token, fresh.token]) {
    assert.equal(await ask(coordinate, shown, "PUT"), refused);
    assert.equal(await ask(coordinate, shown, "GET"), "200");
  }
  await cell.core.teardown(lease.id);
  assert.equal(await reading, "410 lease_revoked");
});

test("G4: what exec has set up for a writer is ended by a downgrade, because nobody can take the writing away", async () => {
  const torn = join(scratch, "torn");
  const cell = cellWith("exec", {
    bind: ["/bin/true"],
    teardown: ["/bin/sh", "-c", `echo torn > ${torn}`],
    reads: ["bind"],
  });
  const lease = newLease(resource);
  await cell.core.bind(lease);
  await failsWith("lease_revoked", cell.core.renew({ ...lease, predicate: "CONSUMES" }));
  await eventually(() => cell.events.length > 0);
  assert.equal(cell.events[0]?.type, "ended");
  assert(existsSync(torn));
});

test("L15: with a transfer everything that the giver has open is cut, and its token is stale", async () => {
  const cell = tcp();
  const lease = newLease(resource);
  const { coordinate, token } = await cell.core.bind(lease);
  const { socket } = await greet(coordinate, token);
  const closed = new Promise((resolve) => socket.on("close", resolve));
  const moved: CellLease = { ...lease, holder: "bob", generation: 2, fence: lease.fence + 1_000 };
  const { token: fresh } = await cell.core.renew(moved);
  await closed;
  const stale = await greet(coordinate, token);
  assert.match(stale.line, /stale_token/);
  const greeted = await greet(coordinate, fresh);
  assert.equal(greeted.line, "ok\n");
  for (const one of [stale, greeted]) one.socket.destroy();
});

test("G3: a token of version 0.1, without a predicate, may do what its lease may", async () => {
  const cell = http();
  const lease = newLease(resource);
  const { coordinate } = await cell.core.bind(lease);
  const { tenant, id, generation, fence, expiresAt } = lease;
  const claims = { tenant, cell: testCellName, resource, lease: id, generation, fence, expiresAt, predicate: null };
  const old = mint(testKeys, claims, Date.now());
  assert.equal(await ask(coordinate, old, "PUT"), "200");
  await cell.core.renew({ ...lease, predicate: "DEPENDS_ON" });
  assert.equal(await ask(coordinate, old, "PUT"), refused);
  assert.equal(await ask(coordinate, old, "GET"), "200");
});

test("G4: only what is opaque can be configured as reading", async () => {
  const faults = (await cellWith("files", { folder, reads: ["write"] }).core.start()).join();
  assert.match(faults, /reads has "write"; there is nothing; leave it out/);
  assert.match((await http({ reads: ["write"] }).core.start()).join(), /reads has "write"; there is connect/);
});

test("S4: a lease's tokens have a limited number of budgets, and none of them is forgotten", async () => {
  const cell = http();
  const { coordinate, token } = await cell.core.bind(newLease(resource));
  // As long as one answer.
  const used = narrowed(token, { type: "bytes", bytesMax: 4 });
  assert.equal(await ask(coordinate, used, "GET"), "200");
  const [binding = assert.fail()] = cell.core.bindings();
  const claims = inspect(token);
  assert(!("code" in claims));
  const narrowedTo = (id: string) => ({
    ...claims,
    caveats: [],
    caveatExpiresAt: 1e15,
    budgets: [{ id, bytesMax: 9 }],
  });
  const admitted = Array.from({ length: 1_100 }, (_, nth) => binding.admit(narrowedTo(`b${nth}`), true, () => {}));
  for (const pass of admitted) if (!("code" in pass)) pass.close();
  assert.equal(admitted.filter((pass) => !("code" in pass)).length, 999);
  assert.equal(
    await ask(coordinate, narrowed(token, { type: "bytes", bytesMax: 100 }), "GET"),
    "401 caveat_failed bytes",
  );
  assert.equal(await ask(coordinate, used, "GET"), "401 caveat_failed bytes");
  assert.equal(await ask(coordinate, token, "GET"), "200");
});

test("S4: a file that is larger than the configuration allows is not put in place", async () => {
  const { coordinate, token } = await cellWith("files", { folder, file_bytes_max: 1_000 }).core.bind(
    newLease(resource),
  );
  const put = async (path: string, size: number, isChunked: boolean): Promise<number> => {
    const chunks = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array(size));
        controller.close();
      },
    });
    const body = isChunked ? chunks : new Uint8Array(size);
    const headers = { authorization: `Bearer ${token}` };
    const asked = { method: "PUT", headers, body, duplex: "half" } as RequestInit;
    return (await fetch(`${coordinate}${path}`, asked)).status;
  };
  for (const isChunked of [false, true]) {
    assert.equal(await put("/large", 1_001, isChunked), 413);
    assert.equal(await put("/small", 1_000, isChunked), 201);
    assert.equal(await put("/small?offset=500", 501, isChunked), 413);
    assert.equal(await put("/small?offset=500", 500, isChunked), 204);
  }
  assert.equal(await put("/small?offset=9000000000", 1, false), 413);
  assert(!existsSync(join(folder, "large")));
});

test("S4: a caveat on the program is looked up once for a connection, and never in the way of others", async () => {
  const cell = http();
  const { coordinate, token } = await cell.core.bind(newLease(resource));
  const own = narrowed(token, { type: "program", program: process.execPath });
  const isLinux = process.platform === "linux";
  const expected = isLinux ? "200" : "401 caveat_failed program";
  const statuses = await Promise.all(Array.from({ length: 50 }, () => ask(coordinate, own, "GET")));
  assert.deepEqual([...new Set(statuses)], [expected]);
  assert.equal(
    await ask(coordinate, narrowed(token, { type: "program", program: "/bin/no" }), "GET"),
    "401 caveat_failed program",
  );
});

test("G5: a token that was good before is checked again: against its key, its lease and its caveats", async () => {
  const cell = http();
  const lease = newLease(resource);
  const { coordinate, token } = await cell.core.bind(lease);
  const short = narrowed(token, { type: "expiry", expiresAt: Date.now() + 300 });
  assert.equal(await ask(coordinate, short, "GET"), "200");
  assert.equal(await ask(coordinate, token, "GET"), "200");
  assert.equal(await ask(coordinate, `${token.slice(0, -2)}AA`, "GET"), "401 token_invalid");
  await eventually(async () => (await ask(coordinate, short, "GET")) === "401 caveat_failed expiry");
  const present = { id: "k1", key: new Uint8Array(32).fill(3), retiresAt: null };
  testKeys.install([{ ...present, id: "k2", key: new Uint8Array(32).fill(4) }]);
  assert.equal(await ask(coordinate, token, "GET"), "401 token_invalid", "its key is void");
  testKeys.install([{ ...present, key: new Uint8Array(32).fill(5) }]);
  assert.equal(await ask(coordinate, token, "GET"), "401 token_invalid", "another key has its name");
  testKeys.install([present]);
  assert.equal(await ask(coordinate, token, "GET"), "200");
  await cell.core.renew({ ...lease, generation: 2, fence: lease.fence + 1_000 });
  assert.equal(await ask(coordinate, token, "GET"), "401 stale_token");
});
