/** Attacks on a server that passes requests on to the leader, through sockets, with a leader that records what it gets. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { type TestContext, test } from "node:test";
import { createPassOn } from "../../src/server/cluster/pass-on.ts";
import { parserOptions } from "../../src/server/compose.ts";
import { createGate } from "../../src/server/http/edge.ts";
import { HandOver } from "../../src/server/http/hand-over.ts";
import { until } from "./harness.ts";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
  /** The leader's side of the connection: the port that it came from. */
  readonly from: number | undefined;
  /** The client's address, as the leader takes it. */
  readonly address: string | undefined;
}

type Answering = (request: IncomingMessage, response: ServerResponse) => void;

async function passOnTo(t: TestContext, answer: Answering = (_request, response) => response.end("fine")) {
  const seen: Seen[] = [];
  const handOver = new HandOver(Buffer.alloc(32, 1));
  const leaderGate = createGate({ ...gateOptions, handOver });
  const leader = createServer(parserOptions, async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const { method = "", url = "", headers, socket } = request;
    seen.push({ method, url, headers, body, from: socket.remotePort, address: leaderGate.addressOf(request) });
    answer(request, response);
  });
  leader.on("upgrade", ({ method = "", url = "", headers }, socket) => {
    seen.push({ method, url, headers, body: "", from: undefined, address: undefined });
    socket.end("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
  });
  let open = 0;
  leader.on("connection", (socket) => {
    open++;
    socket.on("close", () => open--);
  });
  leader.listen(0, "127.0.0.1");
  await once(leader, "listening");
  const leaderUrl = { current: `http://127.0.0.1:${(leader.address() as AddressInfo).port}` };
  const gate = createGate(gateOptions);
  const passOn = createPassOn({
    leaderUrl: () => leaderUrl.current,
    gate,
    server: parserOptions,
    ca: null,
    handOver,
    route: () => 0,
  });
  passOn.server.listen(0, "127.0.0.1");
  await once(passOn.server, "listening");
  t.after(() => {
    passOn.close();
    passOn.server.close();
    leader.close();
    leader.closeAllConnections();
  });
  const { port } = passOn.server.address() as AddressInfo;
  return { seen, port, leaderUrl, leaderPort: (leader.address() as AddressInfo).port, open: () => open };
}

const gateOptions = {
  host: "127.0.0.1",
  allowedHosts: [],
  allowedOrigins: ["https://ops.example.com"],
  behindProxy: [],
};

/** All that comes back on one connection until it is closed, by the last of these requests or by the server. */
async function talk(port: number, bytes: string, localAddress = "127.0.0.1"): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", localAddress });
  socket.write(bytes);
  let received = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    received += chunk;
  });
  await once(socket, "close");
  return received;
}

const last = "GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const smuggled = "POST /v1/keys HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n";
const chunk = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
const withBody = ["GET", "DELETE", "OPTIONS", "HEAD", "TRACE", "POST", "PUT", "PATCH"] as const;
const framings = {
  chunked: `Transfer-Encoding: chunked\r\n\r\n${chunk}`,
  "content-length": `Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  "content-length that Connection names": `Connection: content-length\r\nContent-Length: ${smuggled.length}\r\n\r\n${smuggled}`,
  "transfer-encoding that Connection names": `Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${chunk}`,
};

for (const [framing, rest] of Object.entries(framings))
  test(`H1: a body with ${framing} is a body at the leader too, whatever the method`, async (t) => {
    const { seen, port } = await passOnTo(t);
    for (const method of withBody) {
      seen.length = 0;
      await talk(port, `${method} /v1/x HTTP/1.1\r\nHost: localhost\r\n${rest}${last}`);
      assert.deepEqual(
        seen.map((one) => [one.method, one.url, one.body]),
        [
          [method, "/v1/x", smuggled],
          ["GET", "/last", ""],
        ],
        method,
      );
    }
  });

test("H1: what two framings, an odd length or a half body say is never a second request", async (t) => {
  const { seen, port } = await passOnTo(t);
  const length = `Content-Length: ${smuggled.length}\r\n`;
  const odd = [
    `${length}Transfer-Encoding: chunked\r\n\r\n${chunk}`,
    `${length}Content-Length: 0\r\n\r\n${smuggled}`,
    `Transfer-Encoding: gzip\r\n\r\n${smuggled}`,
    `Transfer-Encoding : chunked\r\n\r\n${chunk}`,
    `Content-Length: +5\r\n\r\n${smuggled}`,
    `Transfer-Encoding: chunked\r\n\r\n${smuggled}`,
  ];
  for (const rest of odd) await talk(port, `GET /v1/x HTTP/1.1\r\nHost: localhost\r\n${rest}${last}`);
  assert.deepEqual(
    seen.filter(({ url }) => url === "/v1/keys"),
    [],
  );
});

test("S4: a client's connection is one to the leader, which no other client's requests come on, and ends with it", async (t) => {
  const { seen, port, open } = await passOnTo(t);
  const one = "GET /one HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const first = connect(port, "127.0.0.1");
  t.after(() => first.destroy());
  first.write(one.repeat(3));
  await until(() => seen[2] ?? null, "all three have come");
  await talk(port, last);
  const [mine, again, third, other] = seen.map(({ from }) => from);
  assert.deepEqual([again, third], [mine, mine]);
  assert.notEqual(other, mine);
  first.destroy();
  await until(() => (open() === 0 ? true : null), "nothing is open at the leader");
});

test("N5: requests that are pipelined beyond the limit are refused, and the connection ends", async (t) => {
  const held: ServerResponse[] = [];
  let isHeld = true;
  const { seen, port } = await passOnTo(
    t,
    (_request, response) => void (isHeld ? held.push(response) : response.end()),
  );
  const answered = talk(port, "GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n".repeat(40));
  await until(() => held[0] ?? null, "a request is held");
  isHeld = false;
  for (const response of held) response.end();
  const statuses = [...(await answered).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
  assert.deepEqual(statuses, [...new Array(32).fill("200"), "429"]);
  assert.equal(seen.length, 32);
});

test("a header that says a request was passed on gets its sender nowhere, and Host and Origin are checked first", async (t) => {
  const { seen, port } = await passOnTo(t);
  const ask = async (headers: string): Promise<string> =>
    (await talk(port, `GET /v1/leases HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`)).slice(9, 12);
  assert.equal(await ask("Host: localhost\r\nLeasehold-Passed-On: 1\r\n"), "503");
  assert.equal(await ask("Host: evil.example\r\nLeasehold-Passed-On: 1\r\n"), "403");
  assert.equal(await ask("Host: localhost\r\nOrigin: https://evil.example\r\n"), "403");
  assert.equal(await ask("Host: localhost\r\nSec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\n"), "403");
  assert.equal(seen.length, 0);
  // A page of an allowed origin stays one at the leader, where it has no session; this server's own page is not named.
  assert.equal(await ask("Host: localhost\r\nOrigin: https://ops.example.com\r\n"), "200");
  assert.equal(await ask("Host: localhost\r\nOrigin: http://localhost\r\nSec-Fetch-Site: same-origin\r\n"), "200");
  assert.deepEqual(
    seen.map(({ headers }) => headers.origin),
    ["https://ops.example.com", undefined],
  );
});

test("H1: an upgrade with a body has none at the leader", async (t) => {
  const { seen, port } = await passOnTo(t);
  const head = "GET /v1/stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n";
  const answer = await talk(port, `${head}Content-Length: ${smuggled.length}\r\n\r\n${smuggled}`);
  assert.match(answer, /^HTTP\/1\.1 101 /);
  assert.deepEqual(
    seen.map(({ url, headers }) => [url, headers["content-length"]]),
    [["/v1/stream", undefined]],
  );
});

test("S2: where the leader is gone before it answers, the outcome is unknown; where it was not reached, nobody leads", async (t) => {
  const { seen, port, leaderUrl } = await passOnTo(t, (request, response) =>
    request.url === "/v1/fine" ? void response.end() : void request.socket.destroy(),
  );
  const ask = async (method: string, path = "/v1/tasks"): Promise<string> =>
    (
      await talk(
        port,
        `${method} ${path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}`,
      )
    )
      .split("\r\n\r\n")
      .at(-1) ?? "";
  assert.match(await ask("POST"), /"database_unavailable".*"retry_after_ms":1000/);
  assert.match(await ask("DELETE"), /"database_unavailable"/);
  assert.match(await ask("GET"), /"no_leader"/, "it has changed nothing");
  // The same on a connection that was used before.
  const one = "POST /v1/fine HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
  assert.match(
    await talk(port, `${one}${one.replace("/fine", "/odd").replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")}`),
    /"database_unavailable"/,
  );
  const count = seen.length;
  leaderUrl.current = "http://127.0.0.1:1";
  assert.match(await ask("POST"), /"no_leader"/);
  assert.equal(seen.length, count);
});

test("what is under way to a leader that another one has followed ends, though the former is silent: answers, streams, upgrades", async (t) => {
  const silent = createServer((request, response) => {
    if (request.url === "/v1/events") response.flushHeaders();
  });
  silent.on("upgrade", (_request, socket) =>
    socket.write("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"),
  );
  silent.listen(0, "127.0.0.1");
  await once(silent, "listening");
  t.after(() => {
    silent.close();
    silent.closeAllConnections();
  });
  const { port, leaderUrl } = await passOnTo(t);
  const next = leaderUrl.current;
  leaderUrl.current = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const host = "Host: localhost\r\n";
  const held = talk(port, `POST /v1/acquire HTTP/1.1\r\n${host}Content-Length: 0\r\nConnection: close\r\n\r\n`);
  const events = talk(port, `GET /v1/events HTTP/1.1\r\n${host}\r\n`);
  const stream = talk(port, `GET /v1/stream HTTP/1.1\r\n${host}Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n`);
  await until(async () => {
    const count = await new Promise<number>((resolve) => silent.getConnections((_error, open) => resolve(open)));
    return count === 3 ? true : null;
  }, "all three have reached it");
  leaderUrl.current = next;
  assert.match(await held, /"database_unavailable"/);
  assert.match(await events, /^HTTP\/1\.1 200 /);
  assert.match(await stream, /^HTTP\/1\.1 101 /);
  assert.match(await talk(port, last), /fine/);
});

test("S7: the word of a server for its client's address fits no other request, and nobody can write it", async (t) => {
  const { seen, port, leaderPort } = await passOnTo(t);
  const head = (target: string, credential: string, more = "") =>
    `GET ${target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n${more}Connection: close\r\n\r\n`;
  await talk(port, head("/v1/leases", "lhk_own"), "127.0.0.9");
  const said = String(seen[0]?.headers["leasehold-passed-on"]);
  const copied = `Leasehold-Passed-On: ${said}\r\n`;
  await talk(leaderPort, head("/v1/leases", "lhk_own", copied));
  await talk(leaderPort, head("/v1/keys", "lhk_own", copied));
  await talk(leaderPort, head("/v1/leases", "lhk_other", copied));
  await talk(leaderPort, head("/v1/leases", "lhk_own", copied.replace("127.0.0.9", "127.0.0.8")));
  await talk(leaderPort, head("/v1/leases", "lhk_own", "Leasehold-Passed-On: 127.0.0.9\r\n"));
  assert.deepEqual(
    seen.map(({ address }) => address),
    ["127.0.0.9", "127.0.0.9", ...new Array(4).fill("127.0.0.1")],
  );
});
