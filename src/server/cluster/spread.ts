/** How shards are spread over servers: plain rules over how many each of them leads. */

/** How many shards each server leads that may lead and is there; with this one. */
export type Standing = ReadonlyMap<string, number>;

/** Before a server with more shards than another takes one that is vacant, and before one takes more than its share. */
const afterOthersMs = 300;
const beyondShareMs = 1_000;

/** Whether a server campaigns for a shard that nobody has led for so long. */
export function mayTake(standing: Standing, server: string, shards: number, vacantMs: number): boolean {
  const own = standing.get(server) ?? 0;
  // A shard without a leader is worse than an uneven spread: another server may be there and unable to lead.
  if (own >= shareOf(standing, shards)) return vacantMs >= beyondShareMs;
  return own <= Math.min(...standing.values()) || vacantMs >= afterOthersMs;
}

/** Whether a server gives one shard away: of those that have the most it is the first, and another has two less, at least. */
export function isToGive(standing: Standing, server: string): boolean {
  const own = standing.get(server) ?? 0;
  if (own - Math.min(...standing.values()) < 2) return false;
  const most = Math.max(...standing.values());
  const [first] = [...standing].filter(([, count]) => count === most).map(([name]) => name).sort();
  return first === server;
}

function shareOf(standing: Standing, shards: number): number {
  return Math.ceil(shards / Math.max(standing.size, 1));
}
