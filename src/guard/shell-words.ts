/**
 * Reads a shell command as far as it takes to see what it writes: words, redirections and the commands between
 * operators. Nothing is run or expanded. What depends on more than the text (a variable, what a command prints) makes
 * a word that is not known, and what that would write is found afterwards, in the tree.
 */

export interface Word {
  readonly text: string;
  /** False where it holds something that only the shell could tell. */
  readonly isKnown: boolean;
  /** Has `*`, `?` or brackets outside of quotes: a pattern. */
  readonly isPattern: boolean;
}

export interface Redirection {
  /** "<", ">", ">>", ">|", "<>", "&>", … */
  readonly sign: string;
  readonly to: Word;
}

export type Step =
  | { readonly kind: "command"; readonly words: readonly Word[]; readonly redirections: readonly Redirection[] }
  /** A subshell begins or ends: it has a working folder of its own. */
  | { readonly kind: "enter" }
  | { readonly kind: "leave" };

/** Longer ones are not read; the tree is looked at instead. */
const commandLengthMax = 262_144;
const depthMax = 16;

const operators = ["&&", "||", ";;", "|&", ";", "|", "&", "\n", "(", ")"];
const redirects = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", ">", "<"];
const keywords = new Set("if then elif else fi while until do done { } ! time in".split(" "));

/** Null for what cannot be read: an open quote, too long, too deep. */
export function readShell(text: string, depth = 0): readonly Step[] | null {
  if (text.length > commandLengthMax || depth > depthMax) return null;
  const steps: Step[] = [];
  const heredocs: { readonly end: string; readonly tabs: boolean }[] = [];
  let words: Word[] = [];
  let redirections: Redirection[] = [];
  let pending: string | null = null;
  let at = 0;

  const finish = (): void => {
    while (words[0] !== undefined && keywords.has(words[0].text)) words.shift();
    if (words.length > 0 || redirections.length > 0) steps.push({ kind: "command", words, redirections });
    words = [];
    redirections = [];
    pending = null;
  };

  while (at < text.length) {
    const rest = text[at] ?? "";
    if (rest === " " || rest === "\t" || rest === "\r") {
      at++;
      continue;
    }
    if (text.startsWith("\\\n", at)) {
      at += 2;
      continue;
    }
    if (rest === "#" && (at === 0 || /[\s;&|(]/.test(text[at - 1] ?? ""))) {
      const end = text.indexOf("\n", at);
      at = end === -1 ? text.length : end;
      continue;
    }
    const isSubstitution = /^[<>]\(/.test(text.slice(at, at + 2));
    const descriptor = isSubstitution ? null : /^\d{0,4}/.exec(text.slice(at, at + 5));
    const redirect = isSubstitution
      ? undefined
      : redirects.find((sign) => text.startsWith(sign, at + (descriptor?.[0].length ?? 0)));
    if (redirect !== undefined) {
      at += (descriptor?.[0].length ?? 0) + redirect.length;
      pending = redirect;
      continue;
    }
    const operator = operators.find((sign) => text.startsWith(sign, at));
    if (operator !== undefined) {
      finish();
      at += operator.length;
      if (operator === "(" || operator === ")") steps.push({ kind: operator === "(" ? "enter" : "leave" });
      if (operator === "\n") at = skipHeredocs(text, at, heredocs);
      continue;
    }
    const read = readWord(text, at, depth);
    if (read === null) return null;
    at = read.end;
    steps.push(...read.inner);
    const { word } = read;
    if (pending === "<<" || pending === "<<-") heredocs.push({ end: word.text, tabs: pending === "<<-" });
    else if (pending !== null) redirections.push({ sign: pending, to: word });
    else words.push(word);
    pending = null;
  }
  finish();
  return steps;
}

interface ReadWord {
  readonly word: Word;
  readonly end: number;
  /** Commands within it: `$(…)`, backticks, `<(…)`. */
  readonly inner: readonly Step[];
}

function readWord(text: string, start: number, depth: number): ReadWord | null {
  let at = start;
  let value = "";
  let isKnown = true;
  let isPattern = false;
  const inner: Step[] = [];

  const substitute = (open: number, close: string): boolean => {
    const end = close === ")" ? closingBracket(text, open) : text.indexOf(close, open);
    if (end === -1) return false;
    const steps = readShell(text.slice(open, end), depth + 1);
    if (steps === null) return false;
    inner.push({ kind: "enter" }, ...steps, { kind: "leave" });
    isKnown = false;
    at = end + 1;
    return true;
  };
  /** True if something that begins with `$` or a backtick was read; null if it does not end. */
  const expand = (): boolean | null => {
    if (text.startsWith("$((", at)) {
      const end = text.indexOf("))", at);
      if (end === -1) return null;
      isKnown = false;
      at = end + 2;
      return true;
    }
    if (text.startsWith("$(", at)) return substitute(at + 2, ")") ? true : null;
    if (text[at] === "`") return substitute(at + 1, "`") ? true : null;
    const [variable = ""] = /^\$(?:\{[^}]*\}|\w+|[@*#?$!-])/.exec(text.slice(at, at + 256)) ?? [];
    if (variable === "") return false;
    isKnown = false;
    at += variable.length;
    return true;
  };

  while (at < text.length) {
    const character = text[at] ?? "";
    if (/[\s;&|]/.test(character) || character === "(" || character === ")") break;
    if (character === "<" || character === ">") {
      if (at !== start || text[at + 1] !== "(") break;
      if (!substitute(at + 2, ")")) return null;
      continue;
    }
    if (character === "'" || text.startsWith("$'", at)) {
      const open = character === "'" ? at + 1 : at + 2;
      const end = closingQuote(text, open, character !== "'");
      if (end === -1) return null;
      value += character === "'" ? text.slice(open, end) : text.slice(open, end).replaceAll(/\\(.)/gs, unescaped);
      at = end + 1;
      continue;
    }
    if (character === '"') {
      at++;
      while (at < text.length && text[at] !== '"') {
        if (text[at] === "\\" && /["\\$`\n]/.test(text[at + 1] ?? "")) {
          value += text[at + 1] === "\n" ? "" : text[at + 1];
          at += 2;
          continue;
        }
        const expanded = expand();
        if (expanded === null) return null;
        if (!expanded) value += text[at++] ?? "";
      }
      if (at >= text.length) return null;
      at++;
      continue;
    }
    if (character === "\\") {
      if (text[at + 1] !== "\n") value += text[at + 1] ?? "";
      at += 2;
      continue;
    }
    const expanded = expand();
    if (expanded === null) return null;
    if (expanded) continue;
    if (character === "*" || character === "?" || character === "[") isPattern = true;
    if (character === "{" && /^\{[^{}\s]*(?:,|\.\.)[^{}\s]*\}/.test(text.slice(at, at + 1_024))) {
      // `{a,b}` is several words; the pattern `*` covers them all.
      isPattern = true;
      value += "*";
      at = text.indexOf("}", at) + 1;
      continue;
    }
    value += character;
    at++;
  }
  // A word of no length would be read for ever.
  return at === start ? null : { word: { text: value, isKnown, isPattern }, end: at, inner };
}

function closingQuote(text: string, from: number, hasEscapes: boolean): number {
  for (let at = from; at < text.length; at++) {
    if (hasEscapes && text[at] === "\\") at++;
    else if (text[at] === "'") return at;
  }
  return -1;
}

/** Of `$(`, over quotes and brackets within it. */
function closingBracket(text: string, from: number): number {
  let open = 1;
  let quote = "";
  for (let at = from; at < text.length; at++) {
    const character = text[at] ?? "";
    if (character === "\\" && quote !== "'") at++;
    else if (quote !== "") quote = character === quote ? "" : quote;
    else if (character === "'" || character === '"') quote = character;
    else if (character === "(") open++;
    else if (character === ")" && --open === 0) return at;
  }
  return -1;
}

function unescaped(_whole: string, character: string): string {
  return { n: "\n", t: "\t", r: "\r" }[character] ?? character;
}

function skipHeredocs(
  text: string,
  from: number,
  heredocs: { readonly end: string; readonly tabs: boolean }[],
): number {
  let at = from;
  for (const { end, tabs } of heredocs.splice(0)) {
    for (;;) {
      if (at >= text.length) return text.length;
      const close = text.indexOf("\n", at);
      const line = text.slice(at, close === -1 ? text.length : close);
      at = close === -1 ? text.length : close + 1;
      if ((tabs ? line.replace(/^\t+/, "") : line) === end) break;
    }
  }
  return at;
}
