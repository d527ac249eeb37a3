/** Tenants spread over several leaders. */
import type { Mutant } from "./planted.ts";

const routing = { file: "../server/cluster/routing.ts", tests: ["test/postgres/shards.test.ts"] };
const spread = { file: "../server/cluster/spread.ts", tests: ["src/server/cluster/spread.test.ts"] };
const directory = { file: "commands/directory.ts", tests: ["src/kernel/commands/directory.test.ts"] };

export const shardMutants: readonly Mutant[] = [
  {
    ...routing,
    name: "shards: a request goes by the tenant of its credential, though it names another",
    find: 'return this.#knownHome(typeof named === "string" ? named : caller.tenant);\n  }',
    replace: "return this.#knownHome(caller.tenant);\n  }",
  },
  {
    ...routing,
    file: "../server/cluster/shard-place.ts",
    name: "shards: a connection's first tenant decides for all its requests",
    find: 'then(said?.shard ?? (found === "any" ? this.#shard : found));',
    replace: "then(this.#shard);",
  },
  {
    ...routing,
    file: "../server/cluster/pass-on.ts",
    name: "shards: a connection to a server is used for any of its shards",
    find: "const name = `${protocol} ${shard}`;",
    replace: "const name = `${protocol} ${shard % 2}`;",
  },
  {
    ...spread,
    name: "shards: a server takes what is vacant, however many it leads",
    find: "return (own <= leastOf(standing) && vacantMs >= 0) || vacantMs >= afterOthersMs;",
    replace: "return own >= 0;",
  },
  {
    ...spread,
    name: "shards: a server keeps more than its share",
    find: "if (own - leastOf(standing) < 2) return false;",
    replace: "if (own - leastOf(standing) < 9) return false;",
  },
  {
    ...spread,
    name: "shards: servers with as many shards give one away together",
    find: "if (count > own || (count === own && name < server)) return false;",
    replace: "if (count > own) return false;",
  },
  {
    ...spread,
    name: "shards: a shard that stays vacant is nobody's",
    find: "if (own >= shareOf(standing, shards)) return vacantMs >= beyondShareMs;",
    replace: "if (own >= shareOf(standing, shards)) return false;",
  },
  {
    ...directory,
    name: "shards: a directory is adopted without forgetting keys that were deleted",
    find: "if (ids.has(entry.record.id)) continue;\n    state.keys.delete",
    replace: "if (ids.size >= 0) continue;\n    state.keys.delete",
  },
  {
    ...directory,
    name: "shards: what was compiled of the policies before outlives an adoption",
    find: "if (hasChanged) forgetPermissions(state.tenants.values());",
    replace: 'if (ids.has("")) forgetPermissions(state.tenants.values());',
  },
  {
    ...directory,
    name: "shards: what is unchanged is written again with each adoption",
    find: "if (known !== undefined && isSame(key, known.record, record)) continue;",
    replace: 'if (known === undefined && record.id === "") continue;',
  },
];
