/** Lines of ours in a shell script of others: after its first line, between two marks, so that they can be taken out again. */
const begin = "# leasehold guard: begin (leasehold guard uninstall git takes this out)";
const end = "# leasehold guard: end";
/** With the indentation that it stands in, in a file where that counts. */
const block = /^[ \t]*# leasehold guard: begin[^\n]*\n[\s\S]*?^[ \t]*# leasehold guard: end[^\n]*(?:\n|$)/m;

export function hasBlock(text: string | null): boolean {
  return text !== null && block.test(text);
}

export function blockOf(lines: readonly string[], indent = ""): string {
  return [begin, ...lines, end].map((line) => `${indent}${line}\n`).join("");
}

export function withoutBlock(text: string): string {
  return text.replace(block, "");
}

/** A script that some shell reads: the lines may stand in it. One without a first line of that kind is run by a shell. */
export function isShellScript(text: string): boolean {
  return !text.startsWith("#!") || /^#!\s*\S*(?:\/env\s+(?:-S\s+)?)?\/?(?:ba|da|z|k)?sh\b/.test(text);
}

/** What a script does not end before: our lines come first. */
export function withBlock(text: string, lines: readonly string[]): string {
  const rest = withoutBlock(text);
  const [first = ""] = /^#![^\n]*\n?/.exec(rest) ?? [];
  const head = first === "" || first.endsWith("\n") ? first : `${first}\n`;
  return `${head}${blockOf(lines)}${rest.slice(first.length)}`;
}
