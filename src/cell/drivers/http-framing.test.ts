/** Attacks on the http gateway, byte by byte, with a real service behind it that records what it has parsed. */
import assert from "node:assert/strict";
import type { IncomingHttpHeaders } from "node:http";
import { test } from "node:test";
import fc from "fast-check";
import { isWithin } from "../../token/index.ts";
import { HttpListener } from "../http-listener.ts";
import { readTarget } from "../request-target.ts";
import { exchange, statusOf } from "../testing/raw-http.ts";
import { atEnd, eventually, makeCell, narrowed, newLease, startHttp, type TestCell } from "../testing/test-cell.ts";

const resource = "API:/svc";

interface Seen {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  readonly port: number | undefined;
}

const seen: Seen[] = [];
const service = await startHttp((request, response) => {
  const { method = "", url = "", headers, socket } = request;
  const port = socket.remotePort;
  let body = "";
  request.setEncoding("latin1").on("data", (chunk: string) => {
    body += chunk;
  });
  request.on("end", () => {
    seen.push({ method, url, headers, body, port });
    response.end(`answer to ${url}`);
  });
});
service.server.on("upgrade", (request, socket) => {
  seen.push({ method: "UPGRADE", url: request.url ?? "", headers: request.headers, body: "", port: undefined });
  socket.end("HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n");
});

function gateway(path = "", options: object = {}): TestCell {
  return makeCell([{ resource, driver: "http", options: { target: `http://${service.address}${path}`, ...options } }]);
}

async function bound(cell = gateway()): Promise<{ coordinate: string; token: string }> {
  return await cell.core.bind(newLease(resource));
}

const readPublic = (token: string): string =>
  narrowed(token, { type: "operations", operations: ["read"] }, { type: "path", path: "/public" });

const smuggled =
  "DELETE /admin/all HTTP/1.1\r\nHost: svc\r\nLeasehold-Tenant: other\r\nLeasehold-Lease: lse_forged\r\n" +
  "Leasehold-Fence: 9007199254740991\r\nContent-Length: 0\r\n\r\n";

const methods = ["GET", "HEAD", "OPTIONS", "TRACE", "DELETE", "POST", "PUT", "PATCH", "PROPFIND"] as const;

for (const method of methods) {
  test(`G14: ${method} cannot carry a second request to the service, whatever its Connection header names`, async () => {
    const { coordinate, token } = await bound();
    const length = `Content-Length: ${smuggled.length}`;
    const chunked = `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
    const variants = [
      `Connection: content-length\r\n${length}\r\n\r\n${smuggled}`,
      `Connection: Content-Length, keep-alive\r\n${length}\r\n\r\n${smuggled}`,
      `Connection: close, content-length\r\n${length}\r\n\r\n${smuggled}`,
      `Connection: keep-alive\r\nConnection: content-length\r\n${length}\r\n\r\n${smuggled}`,
      `Connection: transfer-encoding\r\nTransfer-Encoding: chunked\r\n\r\n${chunked}`,
      `Connection: leasehold-fence\r\n${length}\r\n\r\n${smuggled}`,
      `Transfer-Encoding: gzip, chunked\r\n\r\n${chunked}`,
      `${length}\r\n\r\n${smuggled}`,
      `Transfer-Encoding: chunked\r\n\r\n${chunked}`,
    ];
    for (const shown of [token, readPublic(token)]) {
      for (const variant of variants) {
        const head = `${method} /public/x HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${shown}\r\n`;
        // What follows on the same connection is a request of its own, and shows that the first one was read whole.
        const last = "GET /last HTTP/1.1\r\nHost: gw\r\nConnection: close\r\n\r\n";
        const { answer, socket } = await exchange(coordinate, head + variant + last);
        socket.destroy();
        assert.match(answer, /^HTTP\/1\.1 \d{3} /, variant);
        assert.doesNotMatch(answer, /admin/);
      }
    }
    assert.deepEqual(
      seen.filter(({ url, headers }) => url !== "/public/x" || headers["leasehold-tenant"] !== "acme"),
      [],
      "the service has seen what nobody was allowed to send",
    );
    // What was forwarded had its body, whole and as a body; the forms that are not valid were not forwarded.
    const bodies = seen.splice(0).map(({ body }) => body);
    const reads = method === "GET" || method === "HEAD" || method === "OPTIONS";
    const forwarded = method === "TRACE" ? 0 : reads ? 4 : 2;
    assert.deepEqual(bodies, Array(forwarded).fill(smuggled));
  });
}

test("G14: leases do not share connections to the service, and a request with an unusual body has one of its own", async () => {
  seen.length = 0;
  const cell = makeCell([{ resource, driver: "http", capacity: 2, options: { target: `http://${service.address}` } }]);
  const holders = await Promise.all([cell.core.bind(newLease(resource)), cell.core.bind(newLease(resource))]);
  const send = async (holder: number, path: string, init: string): Promise<void> => {
    const { coordinate, token } = holders[holder] ?? assert.fail();
    const head = `${init.split(" ")[0]} ${path} HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${token}\r\n`;
    const { answer, socket } = await exchange(coordinate, `${head}${init.split(" ")[1] ?? ""}\r\n`, (text) =>
      text.includes(`answer to ${path}`),
    );
    assert(answer.includes(`answer to ${path}`), answer);
    socket.destroy();
  };
  for (let round = 0; round < 3; round++) {
    await send(0, "/first", "GET");
    await send(1, "/second", "GET");
    await send(0, "/odd", "GET Content-Length:4\r\n\r\nbody");
  }
  const ports = (path: string): Set<number | undefined> =>
    new Set(seen.filter(({ url }) => url === path).map(({ port }) => port));
  assert.equal(ports("/odd").size, 3, "each on a connection of its own");
  for (const [a, b] of [
    ["/first", "/second"],
    ["/first", "/odd"],
    ["/second", "/odd"],
  ] as const) {
    assert(ports(a).isDisjointFrom(ports(b)), `${a} and ${b} shared a connection`);
  }
  assert(ports("/first").size < 3, "usual requests of one lease reuse theirs");
});

test("G14: a client cannot speak for the gateway in any spelling that a service could read", async () => {
  seen.length = 0;
  const { coordinate, token } = await bound();
  const said = [
    ...["Leasehold_Fence", "leasehold-fence", "LEASEHOLD_TENANT", "Leasehold.Lease", "Leasehold~Lease"],
    ...["Transfer_Encoding", "Content_Length", "Proxy_Connection", "Keep_Alive", "Proxy", "TE", "Trailer"],
    ...["Forwarded", "X-Forwarded-For", "X_Forwarded_For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP"],
    ...["X_Real_IP", "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "HTTP2-Settings"],
  ];
  const head = `GET /a HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${token}\r\nAuthorization: Bearer ${token}\r\n`;
  const lines = said.map((name) => `${name}: 9007199254740991\r\n`).join("");
  assert.equal(await statusOf(coordinate, `${head}X_Own: kept\r\n${lines}Connection: close\r\n\r\n`), 200);
  const { headers } = seen[0] ?? assert.fail();
  const { "leasehold-fence": fence, "leasehold-tenant": tenant, "x-forwarded-for": from, x_own: own } = headers;
  assert.deepEqual([tenant, from, own], ["acme", "127.0.0.1", "kept"]);
  assert.match(fence as string, /^\d{1,6}$/);
  assert(!JSON.stringify(headers).includes("9007199254740991"), JSON.stringify(headers));
  assert(!JSON.stringify(headers).includes("lht1."), JSON.stringify(headers));
});

test("G14: targets that a service could take for another path are refused, with and without a base path", async () => {
  const astray = [
    ...["/public/../admin", "/public/%2e%2e/admin", "/public/.%2E/admin", "/public/..;/admin", "/public/..;x=1/admin"],
    ...["/public/%2e%2e;/admin", "/public/..%2fadmin", "/public/..%5cadmin", "/public/..\\admin", "/public\\admin"],
    ...["/public/%252e%252e/admin", "/public/%25252e%25252e%252fadmin", "/public/%c0%ae%c0%ae/admin", "/public/."],
    ...["/public/%00/admin", "/public/x%0d%0aX:1", "/public/%zz", "/public/..", "/public/..%20/admin", "/public/x#y"],
    ...["//other.host/x", "http://other.host/public/x", "*", "public/x", "/../x", "/%2e%2e/x", "/..;/x"],
  ];
  for (const base of ["", "/base"]) {
    const cell = gateway(base);
    const { coordinate, token } = await bound(cell);
    for (const shown of [token, readPublic(token)]) {
      seen.length = 0;
      for (const target of astray) {
        const text = `GET ${target} HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${shown}\r\nConnection: close\r\n\r\n`;
        const status = await statusOf(coordinate, text);
        assert(status === 400 || status === 403, `${target}: ${status}`);
      }
      assert.deepEqual(seen, []);
    }
  }
});

test("G14: what was checked is what is forwarded: one normal form, below the base path", async () => {
  const { coordinate, token } = await bound(gateway("/base"));
  const cases = [
    ["/public/x", "/base/public/x"],
    ["/public/%78%7e?q=%2e%2e/..", "/base/public/x~?q=%2e%2e/.."],
    ["/public/.well-known/a;v=1", "/base/public/.well-known/a;v=1"],
    ["/public/a%2fb/", null],
    ["/public//b", null],
    ["/public/%c3%a4/", "/base/public/%C3%A4/"],
    ["/public/", "/base/public/"],
  ] as const;
  for (const [target, forwarded] of cases) {
    seen.length = 0;
    const ask = (shown: string): Promise<number> =>
      statusOf(
        coordinate,
        `GET ${target} HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${shown}\r\nConnection: close\r\n\r\n`,
      );
    assert.equal(await ask(readPublic(token)), forwarded === null ? 401 : 200, target);
    assert.equal(await ask(token), 200, target);
    if (forwarded !== null) assert.deepEqual([...new Set(seen.map(({ url }) => url))], [forwarded]);
  }
});

test("G14: for any target, the path that is forwarded lies within the path that was checked", () => {
  const piece = fc.constantFrom(
    "a",
    "b",
    "/",
    ".",
    "..",
    "%2e",
    "%2E",
    "%2f",
    "%5c",
    "%25",
    "25",
    "2e",
    ";",
    "\\",
    "%41",
    "?",
    "ä",
  );
  const target = fc.array(piece, { maxLength: 12 }).map((pieces) => `/${pieces.join("")}`);
  fc.assert(
    fc.property(target, (url) => {
      const read = readTarget(Buffer.from(url).toString("latin1"));
      if (read === null) return;
      // As services decode: once or until nothing changes, with backslashes for slashes, without parameters.
      for (let text = read.path, last = ""; text !== last; ) {
        last = text;
        const segments = text.split(/[/\\]/).map((segment) => segment.split(";")[0] ?? "");
        assert(!segments.includes("..") && !segments.includes("."), `${url} → ${text}`);
        text = unescape(text);
      }
      if (read.plain === null) return;
      assert.equal(new URL(`http://x${read.path}`).pathname, read.path);
      assert(isWithin(decodeURIComponent(read.path), read.plain), `${read.path} is not within ${read.plain}`);
    }),
    { numRuns: 2_000 },
  );
});

test("G14: only WebSockets are upgraded to; h2c, lists of protocols and upgrades with a body are refused", async () => {
  const { coordinate, token } = await bound();
  const head = `HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade`;
  const h2c = "HTTP2-Settings: AAMAAABkAAQAAP__\r\n";
  seen.length = 0;
  for (const refused of [
    `GET /a ${head}, HTTP2-Settings\r\nUpgrade: h2c\r\n${h2c}\r\n`,
    `GET /a ${head}\r\nUpgrade: h2c\r\n${h2c}\r\n`,
    `GET /a ${head}\r\nUpgrade: websocket, h2c\r\n\r\n`,
    `GET /a ${head}\r\nUpgrade: websocket\r\nUpgrade: h2c\r\n\r\n`,
    `GET /a ${head}\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nbody`,
    `POST /a ${head}\r\nUpgrade: websocket\r\n\r\n`,
    `GET /a/../b ${head}\r\nUpgrade: websocket\r\n\r\n`,
    `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`,
  ]) {
    const status = await statusOf(coordinate, refused);
    assert(status === 400 || status === 403, `${refused}: ${status}`);
  }
  assert.deepEqual(seen, []);
  assert.equal(await statusOf(coordinate, `GET /a ${head}\r\nUpgrade: WebSocket\r\n\r\n`), 101);
  const none = await bound(gateway("", { upgrades: [] }));
  const asked = `GET /a HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${none.token}\r\nConnection: Upgrade\r\n`;
  assert.equal(await statusOf(none.coordinate, `${asked}Upgrade: websocket\r\n\r\n`), 400);
});

test("G14: HTTP/2 cannot be configured as an upgrade", async () => {
  const cell = gateway("", { upgrades: ["h2c"] });
  assert.match((await cell.core.start()).join(), /upgrades has HTTP\/2, whose requests nobody would check/);
});

test("S4: a refused connection is gone, though its client keeps its own side open and silent", async () => {
  const { coordinate, token } = await bound(gateway("", { connections_max: 1 }));
  const refusals = [
    "nonsense\r\n\r\n",
    "CONNECT other.host:443 HTTP/1.1\r\nHost: other.host:443\r\n\r\n",
    "GET /a HTTP/1.1\r\nHost: gw\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    `GET /a HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${token}\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n`,
  ];
  const honest = `GET /a HTTP/1.1\r\nHost: gw\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`;
  for (const refused of refusals) {
    const { answer, socket } = await exchange(coordinate, refused);
    assert.match(answer, /^HTTP\/1\.1 4\d\d [\s\S]*"error":"/, refused);
    // There is room for one: the honest client gets in although the other has not closed.
    await eventually(async () => (await statusOf(coordinate, honest)) === 200);
    assert.equal(socket.writable || socket.destroyed, true);
    socket.destroy();
  }
});

test("S4: a connection that says nothing, or half a head, gets 408 and is gone", async () => {
  const listening = { host: "127.0.0.1", port: 0, advertise: null, connectionsMax: 100 };
  const listener = new HttpListener(listening, null, { request: (_request, response) => response.end() }, 50);
  await listener.open();
  atEnd(() => listener.close());
  for (const text of ["GET /a HTT", "GET / HTTP/1.1\r\nHost: x\r\n"]) {
    const { answer, socket } = await exchange(`http://${listener.address}`, text);
    assert.match(answer, /^HTTP\/1\.1 408 [\s\S]*"error":"request_timeout"/);
    await eventually(async () => (await connectionsOf(listener)) === 0);
    socket.destroy();
  }
});

async function connectionsOf({ server }: HttpListener): Promise<number> {
  return await new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
}
