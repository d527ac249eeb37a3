/** What the generated codecs need besides. */

/** Texts as the constants that they equal, which every later comparison then finds at once. */
export function constants<T extends string>(known: readonly T[]): (text: T) => T {
  let [last, found]: [T | null, T | null] = [null, null];
  return (text) => {
    if (text === last && found !== null) return found;
    last = text;
    found = known.find((one) => one === text) ?? text;
    return found;
  };
}

export function isEmpty(map: object): boolean {
  for (const _ in map) return false;
  return true;
}
