import assert from "node:assert/strict";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { test } from "node:test";
import type { CellLease } from "../binding.ts";
import type { Bound } from "../core.ts";
import {
  atEnd,
  eventually,
  failsWith,
  makeCell,
  narrowed,
  newLease,
  renewed,
  type TestCell,
} from "../testing/test-cell.ts";

const resource = "NET:/lab/voice";

/** Answers every datagram with itself. */
const echo = await openSocket();
const heard: string[] = [];
echo.on("message", (datagram, { port, address }) => {
  heard.push(String(datagram));
  echo.send(datagram, port, address);
});

async function openSocket(): Promise<Socket> {
  const socket = createSocket("udp4");
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  atEnd(() => new Promise<void>((resolve) => socket.close(() => resolve())));
  return socket;
}

function makeUdpCell(options: object = {}): TestCell {
  const target = `127.0.0.1:${echo.address().port}`;
  return makeCell([{ resource, driver: "udp", options: { target, ...options } }]);
}

async function boundTo(cell: TestCell, ttlMs?: number, change: Partial<CellLease> = {}) {
  const lease = newLease(resource, ttlMs, change);
  return { lease, ...(await cell.core.bind(lease)) };
}

interface Flow {
  readonly status: number;
  /** Parsed lines of the answer so far. */
  readonly lines: readonly Record<string, unknown>[];
  readonly socket: Socket;
  readonly received: string[];
  readonly ended: Promise<unknown>;
  readonly send: (text: string) => void;
  readonly leave: () => void;
}

/** Opens a flow; joins it unless told otherwise. */
async function openFlow({ coordinate, token }: Bound, joins = true): Promise<Flow> {
  const url = `${coordinate.replace("udp:", "http:")}/flows`;
  const asked = request(url, { method: "POST", headers: { authorization: `Bearer ${token}` } }).end();
  asked.on("error", () => {});
  const [response] = (await once(asked, "response")) as [IncomingMessage];
  const lines: Record<string, unknown>[] = [];
  let rest = "";
  response.setEncoding("utf8").on("data", (text: string) => {
    const parts = (rest + text).split("\n");
    rest = parts.pop() ?? "";
    lines.push(...parts.map((line) => JSON.parse(line) as Record<string, unknown>));
  });
  const ended = new Promise((resolve) => response.on("close", resolve));
  if (response.statusCode !== 200) await ended.then(() => lines.push(JSON.parse(rest) as Record<string, unknown>));
  const socket = await openSocket();
  const received: string[] = [];
  socket.on("message", (datagram) => received.push(String(datagram)));
  const { port } = new URL(coordinate);
  const send = (text: string): void => socket.send(text, Number(port), "127.0.0.1");
  if (joins && response.statusCode === 200) {
    await eventually(() => lines.length > 0);
    assert.equal(lines[0]?.["udp"], `127.0.0.1:${port}`);
    send(String(lines[0]?.["key"]));
    await eventually(() => lines.length > 1);
    assert.deepEqual(lines[1], { joined: true });
  }
  return { status: response.statusCode ?? 0, lines, socket, received, ended, send, leave: () => asked.destroy() };
}

/** Datagrams may be lost, so each is sent until its echo came. */
async function passes({ send, received }: Flow, text: string): Promise<void> {
  await eventually(() => {
    if (!received.includes(text)) send(text);
    return received.includes(text);
  });
}

async function refusal(bound: Bound): Promise<string> {
  const { lines } = await openFlow(bound);
  return String(lines[0]?.["error"]);
}

test("G5: a flow that has shown the token passes datagrams both ways, and only from the address that has joined", async () => {
  const cell = makeUdpCell();
  const bound = await boundTo(cell);
  const [one, other] = [await openFlow(bound), await openFlow(bound)];
  await passes(one, "from one");
  await passes(other, "from the other");
  assert(!one.received.includes("from the other"));
  const stranger = await openSocket();
  const { port } = new URL(bound.coordinate);
  const answers: string[] = [];
  stranger.on("message", (datagram) => answers.push(String(datagram)));
  // A key serves once, and without one there is not even an answer.
  for (const text of ["stranger", String(one.lines[0]?.["key"]), "stranger"])
    stranger.send(text, Number(port), "127.0.0.1");
  await passes(one, "after the stranger");
  assert(!heard.includes("stranger"));
  assert.deepEqual(answers, []);
  assert(!heard.includes(String(one.lines[0]?.["key"])));
  assert((cell.core.bindings()[0]?.bytes.out ?? 0) > 0);
});

test("G9: a wrong or missing token, another path and a narrowed-away operation are typed refusals", async () => {
  const cell = makeUdpCell();
  const { coordinate, token } = await boundTo(cell);
  assert.equal(await refusal({ coordinate, token: "lht1.AAAA" }), "token_invalid");
  assert.equal(
    await refusal({ coordinate, token: narrowed(token, { type: "operations", operations: ["read"] }) }),
    "caveat_failed",
  );
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(coordinate.replace("udp:", "http:"), { headers });
  assert.deepEqual([response.status, ((await response.json()) as { error: string }).error], [404, "not_found"]);
  await eventually(() => cell.core.bindings()[0]?.inFlight === 0);
});

test("G6, G11: at the end of the lease the flow is cut with the typed code, and nothing reaches the target any more", async () => {
  const cell = makeUdpCell();
  for (const end of ["lease_expired", "lease_revoked", "lease_released", "resource_fenced"] as const) {
    const bound = await boundTo(cell, end === "lease_expired" ? 3_000 : undefined);
    const flow = await openFlow(bound);
    await passes(flow, `before ${end}`);
    if (end !== "lease_expired") await cell.core.teardown(bound.lease.id, end);
    await flow.ended;
    assert.equal(flow.lines.at(-1)?.["error"], end);
    await eventually(() => cell.core.bindings().length === 0);
    flow.send(`after ${end}`);
    assert.equal(await refusal(bound), end);
    const next = await boundTo(cell);
    await passes(await openFlow(next), `next after ${end}`);
    assert(!heard.includes(`after ${end}`));
    await cell.core.teardown(next.lease.id);
  }
  assert.deepEqual(await cell.core.probe(resource), { clean: true, detail: "no flow is open" });
});

test("G8: a flow outlives a renewal; the old token opens no other", async () => {
  const cell = makeUdpCell();
  const bound = await boundTo(cell);
  const flow = await openFlow(bound);
  await passes(flow, "before the renewal");
  const { token } = await cell.core.renew(renewed(bound.lease));
  assert.equal(await refusal(bound), "stale_token");
  await passes(flow, "after the renewal");
  await passes(await openFlow({ ...bound, token }), "with the new token");
});

test("G4: a lease that only reads opens no flow unless the configuration says that flows read; a downgrade cuts", async () => {
  const reader = { predicate: "CONSUMES" } as const;
  assert.equal(await refusal(await boundTo(makeUdpCell(), undefined, reader)), "caveat_failed");
  const reads = makeUdpCell({ reads: ["connect"] });
  await passes(await openFlow(await boundTo(reads, undefined, reader)), "read");
  const cell = makeUdpCell();
  const bound = await boundTo(cell);
  const flow = await openFlow(bound);
  await cell.core.renew({ ...bound.lease, ...reader });
  await flow.ended;
  assert.deepEqual([flow.lines.at(-1)?.["error"], flow.lines.at(-1)?.["caveat"]], ["caveat_failed", "predicate"]);
});

test("G4: a budget of bytes counts both directions, and ends the flow before the datagram that exceeds it", async () => {
  const cell = makeUdpCell();
  const { coordinate, token } = await boundTo(cell);
  const flow = await openFlow({ coordinate, token: narrowed(token, { type: "bytes", bytesMax: 100 }) });
  const text = "x".repeat(40);
  flow.send(text);
  await eventually(() => flow.received.length > 0 || flow.lines.length > 2);
  flow.send("y".repeat(40));
  await flow.ended;
  assert.deepEqual([flow.lines.at(-1)?.["error"], flow.lines.at(-1)?.["caveat"]], ["caveat_failed", "bytes"]);
  assert(!heard.includes("y".repeat(40)));
  const { bytes } = cell.core.bindings()[0] ?? { bytes: { in: 999, out: 0 } };
  assert.deepEqual(bytes, { in: 40, out: 40 });
});

test("a flow ends with its HTTP request, and then its address is nobody's", async () => {
  const cell = makeUdpCell();
  const bound = await boundTo(cell);
  const flow = await openFlow(bound);
  await passes(flow, "open");
  flow.leave();
  await eventually(() => cell.core.bindings()[0]?.inFlight === 0);
  flow.send("too late");
  await passes(await openFlow(bound), "another");
  assert(!heard.includes("too late"));
});

test("G7: while a flow is open the resource is not clean; a reset ends it", async () => {
  const cell = makeUdpCell();
  const bound = await boundTo(cell);
  const flow = await openFlow(bound);
  assert.deepEqual(await cell.core.probe(resource), { clean: false, detail: "1 flows are open" });
  assert.equal((await cell.core.reset(resource)).clean, true);
  await flow.ended;
  await failsWith("lease_revoked", cell.core.bind(bound.lease));
});

test("G9: a target whose name has no address is a typed failure", async () => {
  const cell = makeUdpCell({ target: "nowhere.invalid:9" });
  assert.equal(await refusal(await boundTo(cell)), "upstream_failed");
});

test("a UDP port that is taken is one line about that resource", async () => {
  const taken = await openSocket();
  const { port } = taken.address();
  const cell = makeUdpCell({ listen: `127.0.0.1:${port}` });
  assert.match((await cell.core.start()).join(), /^NET:\/lab\/voice cannot be used: .*EADDRINUSE/);
});
