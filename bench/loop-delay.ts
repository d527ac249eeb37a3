/** How long a server's loop was blocked, by its own measure: between two looks at its histogram, to a bucket's bound. */

type Buckets = ReadonlyMap<number, number>;

/** Returns a function that returns the bound, in ms, below which every delay since this call lies. */
export async function watchLoop(port: number, key: string | null = null): Promise<() => Promise<number>> {
  const before = await bucketsOf(port, key);
  return async () => {
    const after = await bucketsOf(port, key);
    const grown = (bound: number): number => (after.get(bound) ?? 0) - (before.get(bound) ?? 0);
    const all = grown(Number.POSITIVE_INFINITY);
    const bound = [...after.keys()].find((one) => grown(one) === all) ?? Number.POSITIVE_INFINITY;
    return bound * 1_000;
  };
}

async function bucketsOf(port: number, key: string | null): Promise<Buckets> {
  const headers = key === null ? {} : { authorization: `Bearer ${key}` };
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics`, { headers })).text();
  const lines = text.matchAll(/^leasehold_loop_delay_seconds_bucket\{le="([^"]+)"\} (\d+)$/gm);
  return new Map(
    Array.from(lines, ([, bound = "", count]) => [
      bound === "+Inf" ? Number.POSITIVE_INFINITY : Number(bound),
      Number(count),
    ]),
  );
}
