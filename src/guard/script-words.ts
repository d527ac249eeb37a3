/** Scripts of sed and awk: whether they only print. Both can write files and run commands. */
import type { Flags } from "./shell-flags.ts";
import type { Word } from "./shell-words.ts";

const address = String.raw`(?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?)`;
const substitution = ["/", "|", "#", ",", ":", "@", "!", "~"]
  .map((mark) => {
    const sign = mark === "|" ? "\\|" : mark;
    return `s${sign}(?:[^${sign}\\\\\\n]|\\\\.)*${sign}(?:[^${sign}\\\\\\n]|\\\\.)*${sign}[gpiIm\\d]*`;
  })
  .join("|");
/** Addresses, then one of the commands that print, delete or substitute; `w`, `e`, `r` and all others are not among them. */
const sedCommand = `(?:${address}(?:,(?:${address}|\\+\\d+))?[ \\t]*!?[ \\t]*)?(?:[pdqQDPNnhHgGxl=]|${substitution})`;
const sedScript = new RegExp(`^[ \\t\\n]*(?:${sedCommand}[ \\t]*(?:[;\\n][ \\t\\n]*|$))*$`);
const scriptLengthMax = 2_000;

export function isClearSed(scripts: readonly Word[]): boolean {
  return (
    scripts.length > 0 &&
    scripts.every(({ text, isKnown, isPattern }) => {
      return isKnown && !isPattern && text.length <= scriptLengthMax && sedScript.test(text);
    })
  );
}

/** Without `>`, `|`, `system` and what loads other code, a script prints and computes. */
export function isClearAwk({ operands, areKnown }: Flags): boolean {
  const [script, ...files] = operands;
  if (!areKnown || script === undefined || script.isPattern) return false;
  // An operand `x=y` sets a variable, and is not a file.
  return !/[>|@]|system|getline|close|fflush|load|include/.test(script.text) && files.every(({ isKnown }) => isKnown);
}
