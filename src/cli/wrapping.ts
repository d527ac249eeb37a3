/** Text in lines that fit the terminal. */
/** Words after a lead, in lines that begin below the first of them. */
export function wrap(lead: string, words: string, indent: number): string {
  const lines: string[] = [];
  let line = lead;
  for (const word of words.split(" ")) {
    const isFirst = line === lead || line.length === indent;
    if (!isFirst && line.length + 1 + word.length > textWidth()) {
      lines.push(line);
      line = `${" ".repeat(indent)}${word}`;
    } else line = isFirst ? `${line}${word}` : `${line} ${word}`;
  }
  return [...lines, line].join("\n");
}

/** A terminal's width, within what is good to read. */
function textWidth(): number {
  return Math.min(Math.max(process.stdout.columns ?? 100, 60), 100);
}
