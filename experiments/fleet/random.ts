/** Random numbers from a seed, so that every run makes the same edits. */
export interface Random {
  below(count: number): number;
  between(min: number, max: number): number;
  chance(share: number): boolean;
}

export function randomFrom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    below: (count) => Math.floor(next() * count),
    between: (min, max) => min + next() * (max - min),
    chance: (share) => next() < share,
  };
}
