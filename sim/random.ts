/**
 * Random numbers from a seed: the same seed gives the same numbers on every machine (sfc32, by Chris Doty-Humphrey).
 */
export interface Random {
  /** 0 to 2^32 - 1 */
  readonly bits: () => number;
  /** 0 to n - 1 */
  readonly below: (n: number) => number;
  readonly between: (min: number, max: number) => number;
  readonly chance: (probability: number) => boolean;
  readonly pick: <T>(list: readonly T[]) => T;
  /** One of the names, weighted by its number. */
  readonly weighted: <K extends string>(weights: Readonly<Record<K, number>>) => K;
}

export function createRandom(seed: number): Random {
  let [a, b, c, counter] = [seed | 0, (seed * 0x9e3779b1) | 0, 0x243f6a88, 1];
  const bits = () => {
    const sum = (((a + b) | 0) + counter) | 0;
    counter = (counter + 1) | 0;
    a = b ^ (b >>> 9);
    b = (c + (c << 3)) | 0;
    c = (((c << 21) | (c >>> 11)) + sum) | 0;
    return sum >>> 0;
  };
  for (let warm = 0; warm < 15; warm++) bits();
  const below = (n: number) => Math.floor((bits() / 2 ** 32) * n);
  return {
    bits,
    below,
    between: (min, max) => min + below(max - min + 1),
    chance: (probability) => bits() < probability * 2 ** 32,
    pick: (list) => {
      const found = list[below(list.length)];
      if (found === undefined) throw new Error("nothing to pick from");
      return found;
    },
    weighted: (weights) => {
      const names = Object.keys(weights) as (keyof typeof weights)[];
      let left = below(names.reduce((sum, name) => sum + weights[name], 0));
      for (const name of names) {
        left -= weights[name];
        if (left < 0) return name;
      }
      throw new Error("nothing to weigh");
    },
  };
}
