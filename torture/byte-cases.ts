/** Malformed requests, made of good ones and of known attacks, from a seed: the same seed gives the same bytes. */
import { oddBodies, oddHeads } from "../test/server/hostile-bytes.ts";

export const byteKinds = [
  "mutated",
  "spliced",
  "known",
  "framing",
  "long header",
  "cut off",
  "pipelined",
  "frames",
] as const;
export type ByteKind = (typeof byteKinds)[number];
export type Chance = (below: number) => number;

export interface ByteCase {
  readonly kind: ByteKind;
  readonly bytes: Buffer;
}

export interface Prey {
  /** Requests that are good, with a valid credential. */
  readonly good: readonly string[];
  readonly authorization: string;
}

const smuggled =
  "DELETE /admin/all HTTP/1.1\r\nHost: localhost\r\nLeasehold-Tenant: other\r\nLeasehold-Lease: lse_forged\r\n" +
  "Leasehold-Fence: 9007199254740991\r\nContent-Length: 0\r\n\r\n";

const known = [...oddHeads(), ...oddBodies("/v1/agents", '{"agent_id":"bob"}')].map(({ bytes }) => bytes);

/** Characters that parsers treat in ways of their own. */
const telling = [
  "\r",
  "\n",
  "\r\n",
  "\0",
  " ",
  "\t",
  ":",
  ";",
  ",",
  "%",
  "%00",
  "\x80",
  "\xff",
  '"',
  "\\",
  "/..",
  "//",
  "{",
  "[",
];

export function makeCase(prey: Prey, chance: Chance): ByteCase {
  const kind = byteKinds[chance(byteKinds.length)] ?? "mutated";
  return { kind, bytes: makers[kind](prey, chance) };
}

const makers: Readonly<Record<ByteKind, (prey: Prey, chance: Chance) => Buffer>> = {
  mutated: ({ good }, chance) => mutate(latin(pick(good, chance)), chance, 1 + chance(6)),
  spliced({ good }, chance) {
    const [one, other] = [latin(pick(good, chance)), latin(pick(good, chance))];
    return Buffer.concat([one.subarray(0, chance(one.length)), other.subarray(chance(other.length))]);
  },
  known: (_prey, chance) => mutate(pick(known, chance), chance, chance(3)),
  framing({ good, authorization }, chance) {
    const [line = "GET / HTTP/1.1"] = pick(good, chance).split("\r\n", 1);
    const headers = Array.from({ length: 1 + chance(4) }, () => framingHeader(chance));
    const body = chance(2) === 0 ? smuggled : `${smuggled.length.toString(16)}\r\n${smuggled}\r\n0\r\n\r\n`;
    const head = [line, "Host: localhost", authorization, ...headers, "", ""].join("\r\n");
    return mutate(latin(head + body), chance, chance(2));
  },
  "long header"({ good }, chance) {
    const [line = "GET / HTTP/1.1", ...rest] = pick(good, chance).split("\r\n");
    const filler = pick([" ", ";", ",", "a", "%20", "=", '"', "\t", "/", "*/*,", "; ", "\\"], chance);
    const name = pick(longNames, chance);
    const start = pick(["", "application/json;", "Bearer ", "text/", "utf-8", "["], chance);
    const value = start + filler.repeat(Math.ceil(chance(15_000) / filler.length)) + pick(["", "x", '"', "]"], chance);
    return latin([line, `${name}: ${value}`, ...rest].join("\r\n"));
  },
  "cut off"({ good }, chance) {
    const bytes = latin(pick(good, chance));
    return bytes.subarray(0, chance(bytes.length));
  },
  pipelined: ({ good }, chance) =>
    Buffer.concat(
      Array.from({ length: 2 + chance(8) }, () => mutate(latin(pick(good, chance)), chance, chance(8) === 0 ? 1 : 0)),
    ),
  frames({ authorization }, chance) {
    const head = [
      `GET ${pick(["/v1/stream", "/v1/cells/connect", "/public/ws"], chance)} HTTP/1.1`,
      ...["Host: localhost", authorization, "Connection: Upgrade", "Upgrade: websocket"],
      ...["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "", ""],
    ].join("\r\n");
    const frames = Array.from({ length: 1 + chance(4) }, () => frame(chance));
    return Buffer.concat([mutate(latin(head), chance, chance(4) === 0 ? 1 : 0), ...frames]);
  },
};

const longNames = [
  ...["Content-Type", "Accept", "Authorization", "Host", "Connection", "Transfer-Encoding", "Cookie", "Range"],
  ...[
    "Last-Event-ID",
    "Leasehold-Tenant",
    "Leasehold-Token",
    "Origin",
    "Sec-WebSocket-Key",
    "Upgrade",
    "X-Forwarded-For",
  ],
];

function framingHeader(chance: Chance): string {
  const length = pick(
    ["0", "5", "-1", "0x10", "+5", "5, 5", "5, 6", String(smuggled.length), "99999999999999999999"],
    chance,
  );
  const coding = pick(
    ["chunked", "identity", "xchunked", "chunked, identity", "gzip, chunked", "Chunked", "\tchunked"],
    chance,
  );
  return pick(
    [
      ...[`Content-Length: ${length}`, `content-length : ${length}`, `Content-Length:\t${length}`],
      ...[`Transfer-Encoding: ${coding}`, `Transfer-Encoding : ${coding}`, `X: y\nTransfer-Encoding: ${coding}`],
      ...[
        "Connection: content-length",
        "Connection: transfer-encoding, keep-alive",
        "Connection: close",
        "Expect: 100-continue",
      ],
    ],
    chance,
  );
}

/** A masked frame whose length, opcode and text may be wrong. */
function frame(chance: Chance): Buffer {
  const text = mutate(Buffer.from('{"id":1,"op":"list_leases","input":{}}'), chance, chance(4));
  const length = chance(4) === 0 ? chance(126) : Math.min(text.length, 125);
  const first = chance(4) === 0 ? chance(256) : 0x81;
  return Buffer.concat([Buffer.from([first, 0x80 | length, 0, 0, 0, 0]), text]);
}

function mutate(bytes: Buffer, chance: Chance, times: number): Buffer {
  let changed = bytes;
  for (let time = 0; time < times && changed.length > 0; time++) {
    const at = chance(changed.length);
    const [before, after] = [changed.subarray(0, at), changed.subarray(at)];
    switch (chance(5)) {
      case 0:
        changed = Buffer.concat([before, after.subarray(1 + chance(4))]);
        break;
      case 1:
        changed = Buffer.concat([before, latin(pick(telling, chance)), after]);
        break;
      case 2:
        changed = Buffer.concat([before, Buffer.from([chance(256)]), after.subarray(1)]);
        break;
      case 3:
        changed = Buffer.concat([before, after.subarray(0, chance(64)), after]);
        break;
      default:
        changed = Buffer.concat([before, latin(pick(telling, chance)), after.subarray(1)]);
    }
  }
  return changed;
}

function latin(text: string): Buffer {
  return Buffer.from(text, "latin1");
}

function pick<T>(items: readonly T[], chance: Chance): T {
  const found = items[chance(items.length)];
  if (found === undefined) throw new RangeError("there is nothing to pick from");
  return found;
}
