/** How shards are spread over servers: plain rules over how many each of them leads. */

/** How many shards each server leads that may lead and is there; with this one. */
export type Standing = ReadonlyMap<string, number>;

/** Before a server with more shards than another takes one that is vacant, and before one takes more than its share. */
const afterOthersMs = 300;
const beyondShareMs = 1_000;

/** Whether a server campaigns for a shard that has been vacant for that time; less than zero: it lets others go first. */
export function mayTake(standing: Standing, server: string, shards: number, vacantMs: number): boolean {
  const own = standing.get(server) ?? 0;
  // A shard without a leader is worse than an uneven spread: another server may be there and unable to lead.
  if (own >= shareOf(standing, shards)) return vacantMs >= beyondShareMs;
  return (own <= leastOf(standing) && vacantMs >= 0) || vacantMs >= afterOthersMs;
}

/** Whether a server gives one shard away: of those that have the most it is the first, and another has two less, at least. */
export function isToGive(standing: Standing, server: string): boolean {
  const own = standing.get(server) ?? 0;
  if (own - leastOf(standing) < 2) return false;
  for (const [name, count] of standing) if (count > own || (count === own && name < server)) return false;
  return true;
}

function leastOf(standing: Standing): number {
  let least = Number.POSITIVE_INFINITY;
  for (const count of standing.values()) least = Math.min(least, count);
  return least;
}

function shareOf(standing: Standing, shards: number): number {
  return Math.ceil(shards / Math.max(standing.size, 1));
}
