/** Ways in through a server that passes requests on. */
import type { Mutant } from "./planted.ts";

const passOn = { file: "../server/cluster/pass-on.ts", tests: ["test/server/pass-on-attacks.test.ts"] };

export const passingOnMutants: readonly Mutant[] = [
  {
    ...passOn,
    name: "passing on: a body that is passed on in chunks has no framing",
    find: 'if (encoding !== undefined) return { "transfer-encoding": "chunked" };',
    replace: "if (encoding !== undefined) return {};",
  },
  {
    ...passOn,
    name: "passing on: clients share connections to the leader",
    find: "const known = clients.get(socket);",
    replace: "const [known] = clients.values();",
  },
  {
    ...passOn,
    name: "passing on: a page of another origin has a session through a follower",
    find: "if (origin !== undefined && !gate.lets(origin))",
    replace: "if (origin !== undefined)",
  },
  {
    ...passOn,
    name: "passing on: a request that was passed on is passed on again",
    find: "return url === null || request.headers[passedOnHeader] !== undefined ? noLeader : new URL(url);",
    replace: "return url === null ? noLeader : new URL(url);",
  },
  {
    ...passOn,
    file: "../server/http/hand-over.ts",
    name: "passing on: anybody's word for a client's address is believed",
    find: "return one.length === other.length && timingSafeEqual(one, other) ? { address, shard } : null;",
    replace: "return one.length === other.length || timingSafeEqual(one, one) ? { address, shard } : null;",
  },
  {
    ...passOn,
    file: "../server/http/hand-over.ts",
    name: "passing on: the word for a client's address fits every request",
    find: "const said = [method, url, authorization, cookie,",
    replace: "const said = [typeof method, typeof url, authorization, cookie,",
  },
  {
    ...passOn,
    name: "passing on: what is under way to a former leader is awaited for ever",
    find: "if (leader !== null && leader !== origin) one.destroy();",
    replace: 'if (leader === "") one.destroy();',
  },
  {
    ...passOn,
    name: "passing on: an answer that was lost is taken for nobody who leads",
    find: "isSent && mayChange(request) ? outcomeUnknown : noLeader",
    replace: "!isSent && mayChange(request) ? outcomeUnknown : noLeader",
  },
];
