/**
 * Bad requests below the level of fields: bodies that are not JSON, heads that are not HTTP, and two requests in one.
 */

export interface HostileBytes {
  readonly what: string;
  readonly bytes: Buffer;
}

const host = "Host: localhost";
const json = "Content-Type: application/json";

export function post(path: string, body: string | Buffer, headers: readonly string[] = [json]): Buffer {
  const bytes = Buffer.from(body);
  const head = [`POST ${path} HTTP/1.1`, host, ...headers, `Content-Length: ${bytes.length}`, "", ""].join("\r\n");
  return Buffer.concat([Buffer.from(head, "latin1"), bytes]);
}

/** A seeded generator, so that a failure can be repeated. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0;
    return (state >>> 8) % below;
  };
}

/** Valid JSON bodies in which some bytes were changed, so that they are invalid. */
export function malformedBodies(
  path: string,
  good: string,
  count: number,
  random: (below: number) => number,
): readonly HostileBytes[] {
  const cases: HostileBytes[] = [];
  while (cases.length < count) {
    const bytes = Buffer.from(good);
    const changes = 1 + random(4);
    let broken = bytes;
    for (let change = 0; change < changes; change++) {
      const at = random(broken.length);
      switch (random(4)) {
        case 0:
          broken = broken.subarray(0, Math.max(1, at));
          break;
        case 1:
          broken = Buffer.concat([broken.subarray(0, at), broken.subarray(at + 1)]);
          break;
        case 2:
          broken = Buffer.concat([broken.subarray(0, at), Buffer.from([random(256)]), broken.subarray(at)]);
          break;
        default:
          broken = Buffer.from(broken);
          broken[at] = random(256);
      }
    }
    if (broken.length > 0 && !isJson(broken)) cases.push({ what: "malformed JSON", bytes: post(path, broken) });
  }
  return cases;
}

function isJson(bytes: Buffer): boolean {
  try {
    JSON.parse(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
    return true;
  } catch {
    return false;
  }
}

/** Odd encodings, wrong types, bodies too deep or too large. */
export function oddBodies(path: string, good: string): readonly HostileBytes[] {
  const deep = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);
  const digest = (context: string) => `{"checkpoint_id":"c","resume_point":"p","context":${context}}`;
  const types = [
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/json; charset=latin1",
    "application/json; charset=utf-16",
    "application/jsonx",
    "application/json+patch",
    "json",
    ";;;",
    "application/json, text/plain",
  ];
  const coded = ["gzip", "br", "deflate", "identity, gzip", "x"];
  return [
    ...types.map((type) => ({ what: `type ${type}`, bytes: post(path, good, [`Content-Type: ${type}`]) })),
    { what: "no type", bytes: post(path, good, []) },
    { what: "two types", bytes: post(path, good, [json, "Content-Type: text/plain"]) },
    ...coded.map((coding) => ({
      what: `coding ${coding}`,
      bytes: post(path, good, [json, `Content-Encoding: ${coding}`]),
    })),
    { what: "utf-16", bytes: post(path, Buffer.from(good, "utf16le")) },
    { what: "a byte order mark", bytes: post(path, `\ufeff${good}`) },
    { what: "overlong utf-8", bytes: post(path, Buffer.from([0x22, 0xc0, 0xaf, 0x22])) },
    { what: "a surrogate in utf-8", bytes: post(path, Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])) },
    { what: "not utf-8", bytes: post(path, Buffer.from([0x7b, 0xff, 0xfe, 0x7d])) },
    ...["null", "true", "7", '"text"', "[]", "[{}]"].map((text) => ({ what: `body ${text}`, bytes: post(path, text) })),
    ...[10, 100, 10_000, 200_000].flatMap((depth) => [
      { what: `${depth} arrays deep`, bytes: post(path, deep("[", "]", depth)) },
      { what: `${depth} objects deep`, bytes: post(path, `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`) },
      { what: `${depth} deep and cut off`, bytes: post(path, "[".repeat(depth)) },
    ]),
    ...[100, 100_000].flatMap((depth) =>
      [deep("[", "]", depth), `${'{"a":'.repeat(depth)}1${"}".repeat(depth)}`].map((context) => ({
        what: `a context ${depth} deep`,
        bytes: Buffer.from(
          post("/v1/agents/alice/digest", digest(context)).toString("latin1").replace("POST", "PUT"),
          "latin1",
        ),
      })),
    ),
    ...['{"__proto__":1}', '{"a":{"constructor":1}}', '[{"prototype":{}}]'].map((context) => ({
      what: `a context with ${context}`,
      bytes: Buffer.from(
        post("/v1/agents/alice/digest", digest(context)).toString("latin1").replace("POST", "PUT"),
        "latin1",
      ),
    })),
    { what: "too large", bytes: post(path, `{"agent_id":"${"x".repeat(1_048_576)}"}`) },
    { what: "far too large", bytes: post(path, Buffer.alloc(3_000_000, 0x20)) },
  ];
}

/** Heads that are not HTTP, or that would be read in two ways. */
export function oddHeads(): readonly HostileBytes[] {
  const raw = (what: string, text: string): HostileBytes => ({ what, bytes: Buffer.from(text, "latin1") });
  const get = (path: string, ...headers: readonly string[]) =>
    [`GET ${path} HTTP/1.1`, host, ...headers, "", ""].join("\r\n");
  const smuggled = "GET /v1/leases HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const chunked = (...headers: readonly string[]) =>
    ["POST /v1/agents HTTP/1.1", host, json, ...headers, "", ""].join("\r\n");
  const paths = [
    "/%",
    "/%zz",
    "/v1/leases/%ff",
    "/v1/leases/%",
    "/v1/agents/%c0%af",
    "/v1/leases/%00",
    "/v1/agents/%ed%a0%80",
  ];
  return [
    ...["", "FOO", "get", "G@T", "POST POST", "PRI", "\u0000GET"].map((method) =>
      raw(`method ${method}`, `${method} /v1/leases HTTP/1.1\r\n${host}\r\n\r\n`),
    ),
    ...["TRACE", "PATCH", "LOCK", "MKCOL", "PURGE", "SEARCH", "LINK", "PUT", "DELETE", "POST"].map((method) =>
      raw(`method ${method}`, `${method} /healthz HTTP/1.1\r\n${host}\r\n\r\n`),
    ),
    raw("connect", `CONNECT evil.example:443 HTTP/1.1\r\n${host}\r\n\r\n`),
    raw("an absolute target", `GET http://evil.example/v1/leases HTTP/1.1\r\n${host}\r\n\r\n`),
    raw("a target without a slash", `GET v1/leases HTTP/1.1\r\n${host}\r\n\r\n`),
    raw("no target", `GET HTTP/1.1\r\n${host}\r\n\r\n`),
    ...["HTTP/2.0", "HTTP/0.9", "HTTP/9.9", "HTTP", "HTTX/1.1", "http/1.1"].map((version) =>
      raw(`version ${version}`, `GET /v1/leases ${version}\r\n${host}\r\n\r\n`),
    ),
    ...paths.map((path) => raw(`path ${path}`, get(path))),
    raw("a very long path", get(`/v1/leases/${"x".repeat(12_000)}`)),
    raw("a path too long", get(`/v1/leases/${"x".repeat(20_000)}`)),
    raw("a header too long", get("/healthz", `X-Long: ${"x".repeat(20_000)}`)),
    raw("too many headers", get("/healthz", ...Array.from({ length: 3_000 }, (_, index) => `X-${index}: 1`))),
    raw("a header without a colon", get("/healthz", "nonsense")),
    raw("a header with a space", get("/healthz", "Bad Header: 1")),
    raw("a header with NUL", get("/healthz", "X: a\u0000b")),
    raw("a folded header", get("/healthz", "X: a\r\n b")),
    raw("a bare line feed", `GET /healthz HTTP/1.1\n${host}\n\n`.replace("\n\n", "\nX : y\n\n")),
    raw("a body to a GET", `${get("/v1/leases", "Content-Length: 2", json)}{}`),
    raw("a chunked body to a GET", `${get("/v1/leases", "Transfer-Encoding: chunked", json)}2\r\n{}\r\n0\r\n\r\n`),
    raw("no host", "GET /healthz HTTP/1.1\r\n\r\n"),
    raw("two hosts", get("/healthz", "Host: evil.example")),
    raw("two credentials", get("/v1/leases", "Authorization: Bearer lhk_a", "Authorization: Bearer lhk_b")),
    raw("two tenants", get("/v1/leases", "Leasehold-Tenant: default", "Leasehold-Tenant: acme")),
    raw("an odd tenant", get("/v1/leases", "Leasehold-Tenant: __proto__")),
    raw("an odd last id", get("/v1/events", "Last-Event-ID: -1")),
    raw("an expectation", get("/healthz", "Expect: miracles")),
    ...[
      ["Content-Length: 5", "Content-Length: 6"],
      ["Content-Length: 5, 6"],
      ["Content-Length: -1"],
      ["Content-Length: 0x5"],
    ].map((lengths) => raw(lengths.join(" and "), `${chunked(...lengths)}{}   ${smuggled}`)),
    ...["chunked", "identity, chunked", "chunked, identity", "xchunked", "chunked\r\nTransfer-Encoding: identity"].map(
      (coding) =>
        raw(
          `length and ${coding}`,
          `${chunked("Content-Length: 4", `Transfer-Encoding: ${coding}`)}0\r\n\r\n${smuggled}`,
        ),
    ),
    raw("a space in the coding", `${chunked("Transfer-Encoding : chunked")}0\r\n\r\n${smuggled}`),
    raw("a bad chunk", `${chunked("Transfer-Encoding: chunked")}zz\r\n{}\r\n0\r\n\r\n`),
    raw("a negative chunk", `${chunked("Transfer-Encoding: chunked")}-2\r\n{}\r\n0\r\n\r\n`),
    raw("a huge chunk", `${chunked("Transfer-Encoding: chunked")}ffffffffffffffff\r\n{}\r\n`),
    raw("nonsense", "\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003"),
    raw("a line of nothing", `${"x".repeat(70_000)}\r\n\r\n`),
    raw("websocket elsewhere", get("/v1/leases", "Connection: Upgrade", "Upgrade: websocket")),
    raw("half a websocket", get("/v1/stream", "Connection: Upgrade", "Upgrade: websocket")),
    raw("no websocket", get("/v1/stream")),
  ];
}
