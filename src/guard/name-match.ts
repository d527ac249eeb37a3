/** Whether a leased name, which may be a pattern (C4), covers the name of one file. Linear in their product, no backtracking. */

export function covers(pattern: string, name: string): boolean {
  return matches(pattern.split("/"), name.split("/"), (part, text) =>
    matches([...part], [...text], (a, b) => a === "?" || a === b, "*"),
  );
}

/** `deep` matches any number of what follows; at the end of a path, `/d/**` is `/d` as well. */
function matches(
  pattern: readonly string[],
  text: readonly string[],
  isOne: (part: string, text: string) => boolean,
  deep = "**",
): boolean {
  let reached = Array.from({ length: text.length + 1 }, (_, at) => at === 0);
  for (const part of pattern) {
    const next: boolean[] = [part === deep && reached[0] === true];
    for (let at = 0; at < text.length; at++) {
      next.push(
        part === deep
          ? reached[at + 1] === true || next[at] === true
          : reached[at] === true && isOne(part, text[at] ?? ""),
      );
    }
    reached = next;
  }
  return reached[text.length] === true;
}
