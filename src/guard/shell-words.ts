/**
 * Reads a shell command as far as it takes to see what it writes: words, redirections and the commands between
 * operators. Nothing is run or expanded. What depends on more than the text (a variable, what a command prints) makes
 * a word that is not known. A construct that is not read completely (arithmetic, `case`, a function, `${x:-$(…)}`, a
 * here-document with a substitution in it) makes the whole text unclear: then the tree is compared afterwards.
 *
 * This is not a parser of Bash, and need not be one: test/guard/oracle.test.ts compares it with a complete parser, which
 * may find nothing that this one neither finds nor calls unclear.
 */

export interface Word {
  /** With a NUL for each part that is not known. */
  readonly text: string;
  /** False where it holds something that only the shell could tell. */
  readonly isKnown: boolean;
  /** Has `*` or `?` outside of quotes; brackets and simple braces are read as those. */
  readonly isPattern: boolean;
  readonly isQuoted: boolean;
  /** Begins with `name=`, not quoted: before a command it sets a variable. */
  readonly isAssignment: boolean;
}

export interface Redirection {
  /** "<", ">", ">>", ">|", "<>", "&>", … */
  readonly sign: string;
  readonly to: Word;
}

export interface CommandStep {
  readonly kind: "command";
  readonly words: readonly Word[];
  readonly redirections: readonly Redirection[];
  /** The operators around it; "" at the ends. */
  readonly before: string;
  readonly after: string;
}

/** A subshell begins or ends: it has a working folder of its own. */
export type Step = CommandStep | { readonly kind: "enter" } | { readonly kind: "leave" };

export interface ShellText {
  readonly steps: readonly Step[];
  /** False if there is something in it that was not read. */
  readonly isClear: boolean;
  /** Has loops, conditions, groups or jobs in the background: a `cd` may run more than once, never, or elsewhere. */
  readonly hasBranches: boolean;
}

/** Longer ones are not read; the tree is compared instead. */
const commandLengthMax = 262_144;
const depthMax = 16;

const operators = ["&&", "||", ";;", ";&", "|&", ";", "|", "&", "\n", "(", ")"];
const redirects = ["&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", ">>", ">&", ">|", ">", "<"];
const keywords = new Set("if then elif else fi while until do done { } ! in".split(" "));
const unreadKeywords = new Set("case esac select function coproc".split(" "));

/** Null for what cannot be read: an open quote or bracket, too long, too deep. */
export function readShell(text: string, depth = 0): ShellText | null {
  if (text.length > commandLengthMax || depth > depthMax) return null;
  const reader = new Reader(text, depth);
  if (!reader.readList(false)) return null;
  const { steps, isClear, hasBranches } = reader;
  return { steps, isClear, hasBranches };
}

interface HereDocument {
  readonly end: string;
  readonly hasTabs: boolean;
  readonly isQuoted: boolean;
}

class Reader {
  readonly steps: Step[] = [];
  isClear: boolean;
  hasBranches = false;
  readonly #text: string;
  #at = 0;
  #depth: number;

  constructor(text: string, depth: number) {
    this.#text = text;
    this.#depth = depth;
    // To the shell a carriage return is a letter; to most who write one, the end of a line.
    this.isClear = !text.includes("\r");
  }

  /** Commands up to the end, or up to the bracket that closes them. False if that does not come. */
  readList(isBracketed: boolean): boolean {
    if (this.#depth++ > depthMax) return false;
    const text = this.#text;
    const documents: HereDocument[] = [];
    let words: Word[] = [];
    let redirections: Redirection[] = [];
    let pending: string | null = null;
    let before = "";
    let open = 0;
    const finish = (after: string): void => {
      if (pending !== null) this.isClear = false;
      const rest = this.#withoutKeywords(words);
      // After `]]` another command may follow without an operator: `if [[ a ]] then b`.
      const isTest = rest[0]?.text === "[[";
      const end = rest.findIndex(({ text: word }) => word === "]]");
      if (isTest && (rest[0]?.isQuoted === true || end !== rest.length - 1)) this.isClear = false;
      if (rest.length > 0 || redirections.length > 0)
        this.steps.push({ kind: "command", words: rest, redirections, before, after });
      [words, redirections, pending, before] = [[], [], null, after];
    };
    while (this.#at < text.length) {
      const character = text[this.#at] ?? "";
      if (character === " " || character === "\t") this.#at++;
      else if (text.startsWith("\\\n", this.#at)) this.#at += 2;
      else if (character === "#") this.#skipTo(text.indexOf("\n", this.#at));
      else {
        const redirect = this.#takeRedirect();
        if (redirect !== null) {
          if (pending !== null) this.isClear = false;
          pending = redirect;
          continue;
        }
        const operator = operators.find((sign) => text.startsWith(sign, this.#at));
        if (operator === undefined) {
          const word = this.#readWord();
          if (word === null) return false;
          if (pending === "<<" || pending === "<<-") {
            if (!word.isKnown) this.isClear = false;
            documents.push({ end: word.text, hasTabs: pending === "<<-", isQuoted: word.isQuoted });
          } else if (pending !== null) redirections.push({ sign: pending, to: word });
          else {
            // After a redirection, a keyword is the name of a command.
            if (redirections.length > 0 && words.every(({ text: one }) => keywords.has(one) || one === "time"))
              this.isClear = false;
            words.push(word);
          }
          pending = null;
          continue;
        }
        this.#at += operator.length;
        if (operator === "(") {
          // After a word it is a function, an array or a pattern; twice, arithmetic.
          if (words.length > 0 || redirections.length > 0 || pending !== null || text[this.#at] === "(")
            this.isClear = false;
          finish("(");
          this.steps.push({ kind: "enter" });
          open++;
        } else if (operator === ")") {
          finish(")");
          if (open === 0) {
            if (documents.length > 0 || !isBracketed) this.isClear = false;
            if (isBracketed) {
              this.#depth--;
              return true;
            }
          } else {
            open--;
            this.steps.push({ kind: "leave" });
          }
        } else {
          finish(operator);
          if (operator === "&") this.hasBranches = true;
          if (operator === "\n") for (const one of documents.splice(0)) this.#skipDocument(one);
        }
      }
    }
    finish("");
    if (documents.length > 0 || open > 0) this.isClear = false;
    return !isBracketed;
  }

  #withoutKeywords(words: readonly Word[]): readonly Word[] {
    let at = 0;
    for (; at < words.length; at++) {
      const { text = "", isQuoted = true, isKnown = false } = words[at] ?? {};
      if (isQuoted || !isKnown) break;
      if (unreadKeywords.has(text)) this.isClear = false;
      if (text !== "!" && (keywords.has(text) || text === "for")) this.hasBranches = true;
      if (!keywords.has(text)) break;
    }
    return words.slice(at);
  }

  #takeRedirect(): string | null {
    const rest = this.#text.slice(this.#at, this.#at + 32);
    if (/^[<>]\(/.test(rest)) return null;
    const digits = /^\d*/.exec(rest)?.[0].length ?? 0;
    const sign = redirects.find((one) => rest.startsWith(one, digits));
    if (sign === undefined || (digits > 0 && sign.startsWith("&"))) return null;
    // `{name}>` opens a descriptor and keeps its number in a variable.
    if (digits === 0 && this.#text[this.#at - 1] === "}") this.isClear = false;
    this.#at += digits + sign.length;
    return sign;
  }

  #readWord(): Word | null {
    const text = this.#text;
    const start = this.#at;
    const isAssignment = match(/[A-Za-z_]\w*\+?=/y, text, start) !== null;
    const word = { text: "", isKnown: true, isPattern: false, isQuoted: false, isAssignment };
    let hasQuotedSign = false;
    let isTildeQuoted = false;
    const unknown = (): void => {
      word.text += "\0";
      word.isKnown = false;
    };
    const quote = (literal: string): void => {
      if (/[*?[\]{}]/.test(literal)) hasQuotedSign = true;
      if (word.text === "" && literal.startsWith("~")) isTildeQuoted = true;
      word.text += literal;
      word.isQuoted = true;
    };
    while (this.#at < text.length) {
      const character = text[this.#at] ?? "";
      if (" \t\n;&|()".includes(character)) break;
      if (character === "<" || character === ">") {
        if (text[this.#at + 1] !== "(") break;
        // As a part of a word, shells differ.
        if (this.#at !== start) this.isClear = false;
        this.#at += 2;
        if (!this.#readSubstitution()) return null;
        if (/[^\s;&|()]/.test(text[this.#at] ?? " ")) this.isClear = false;
        unknown();
      } else if (character === "'") {
        const end = text.indexOf("'", this.#at + 1);
        if (end === -1) return null;
        quote(text.slice(this.#at + 1, end));
        this.#at = end + 1;
      } else if (text.startsWith("$'", this.#at)) {
        const [whole, body = ""] = match(/\$'((?:[^'\\]|\\.)*)'/sy, text, this.#at) ?? [];
        if (whole === undefined) return null;
        if (/\\[^ntr\\'"]/.test(body)) word.isKnown = false;
        quote(body.replaceAll(/\\(.)/gs, unescaped));
        this.#at += whole.length;
      } else if (character === '"' || text.startsWith('$"', this.#at)) {
        // `$"` is translated.
        if (character === "$") word.isKnown = false;
        this.#at += character === "$" ? 2 : 1;
        quote("");
        for (let inside = text[this.#at]; inside !== '"'; inside = text[this.#at]) {
          if (inside === undefined) return null;
          if (inside === "\\" && /["\\$`\n]/.test(text[this.#at + 1] ?? "")) {
            quote(text[this.#at + 1] === "\n" ? "" : (text[this.#at + 1] ?? ""));
            this.#at += 2;
            continue;
          }
          const expanded = this.#expand();
          if (expanded === null) return null;
          if (expanded) unknown();
          else {
            quote(inside);
            this.#at++;
          }
        }
        this.#at++;
      } else if (character === "\\") {
        const next = text[this.#at + 1];
        if (next === undefined) return null;
        if (next !== "\n") quote(next);
        this.#at += 2;
      } else {
        const expanded = this.#expand();
        if (expanded === null) return null;
        if (expanded) unknown();
        else this.#readPlain(character, word, this.#at === start);
      }
    }
    // A word of no length would be read for ever.
    if (this.#at === start) return null;
    if (word.isPattern && hasQuotedSign) word.isKnown = false;
    return isTildeQuoted ? { ...word, text: `./${word.text}` } : word;
  }

  /** A character outside of quotes; a simple bracket or brace is read as the pattern that covers it. */
  #readPlain(character: string, word: { text: string; isKnown: boolean; isPattern: boolean }, isFirst: boolean): void {
    const text = this.#text;
    const take = (length: number, as: string): void => {
      word.text += as;
      this.#at += length;
    };
    if (character === "*" || character === "?") word.isPattern = true;
    if (character === "~" && isFirst && /[^\s/;&|()<>]/.test(text[this.#at + 1] ?? " ")) word.isKnown = false;
    if (character === "[") {
      const [simple] = match(/\[[!^]?[\w.,*?-]+\]/y, text, this.#at) ?? [];
      if (simple !== undefined) {
        word.isPattern = true;
        return take(simple.length, "?");
      }
      if (match(/\[[^\s;&|()<>]*\]/y, text, this.#at) !== null) word.isKnown = false;
    }
    if (character === "{") {
      const [simple] = match(/\{[\w.*?@%+=:~-]*(?:,|\.\.)[\w.,*?@%+=:~-]*\}/y, text, this.#at) ?? [];
      if (simple !== undefined) {
        // `{a,b}` is several words; the pattern `*` covers them all.
        word.isPattern = true;
        return take(simple.length, "*");
      }
      if (match(/\{\S*?(?:,|\.\.)/y, text, this.#at) !== null) word.isKnown = false;
    }
    return take(1, character);
  }

  /** True if something that begins with `$` or a backtick was read; null if it does not end. */
  #expand(): boolean | null {
    const text = this.#text;
    const at = this.#at;
    if (text[at] === "`") {
      const [whole, body = ""] = match(/`((?:[^`\\]|\\.)*)`/sy, text, at) ?? [];
      if (whole === undefined) return null;
      if (body.includes("\\")) this.isClear = false;
      const inner = readShell(body, this.#depth);
      if (inner === null) return null;
      this.steps.push({ kind: "enter" }, ...inner.steps, { kind: "leave" });
      if (!inner.isClear) this.isClear = false;
      this.#at += whole.length;
      return true;
    }
    if (text[at] !== "$") return false;
    if (text.startsWith("$((", at) || text.startsWith("$[", at)) {
      this.isClear = false;
      return this.#skipPast(text[at + 1] === "(" ? "()" : "[]") ? true : null;
    }
    if (text[at + 1] === "(") {
      this.#at += 2;
      return this.#readSubstitution() ? true : null;
    }
    const [simple] = match(simpleVariable, text, at) ?? [];
    if (simple !== undefined) {
      this.#at += simple.length;
      return true;
    }
    if (text[at + 1] !== "{") return false;
    this.isClear = false;
    return this.#skipPast("{}") ? true : null;
  }

  #readSubstitution(): boolean {
    this.steps.push({ kind: "enter" });
    const isRead = this.readList(true);
    this.steps.push({ kind: "leave" });
    return isRead;
  }

  /** Over brackets of one kind, which stand after the next character, to the one that closes them. */
  #skipPast([opening, closing]: string): boolean {
    let open = 0;
    for (let at = this.#at + 1; at < this.#text.length; at++) {
      const character = this.#text[at];
      if (character === "\\") at++;
      else if (character === opening) open++;
      else if (character === closing && --open === 0) {
        this.#at = at + 1;
        return true;
      }
    }
    return false;
  }

  #skipTo(place: number): void {
    this.#at = place === -1 ? this.#text.length : place;
  }

  #skipDocument({ end, hasTabs, isQuoted }: HereDocument): void {
    const start = this.#at;
    for (;;) {
      if (this.#at >= this.#text.length) {
        this.isClear = false;
        return;
      }
      const from = this.#at;
      this.#skipTo(this.#text.indexOf("\n", from));
      const line = this.#text.slice(from, this.#at++);
      if ((hasTabs ? line.replace(/^\t+/, "") : line) !== end) continue;
      // Unless its end is quoted, what is in it is expanded, and lines are joined.
      const body = this.#text.slice(start, from);
      if (!isQuoted && /`|\$[([]|\\\n/.test(body.replaceAll(simpleVariables, ""))) this.isClear = false;
      if (!isQuoted && /\$\{/.test(body.replaceAll(simpleVariables, ""))) this.isClear = false;
      return;
    }
  }
}

const variable =
  /\$(?:\{#?(?:\w+|[@*#?!$-])(?:\[(?:[@*]|\d+)\])?(?:(?::?[-+=?]|##?|%%?|\/\/?|\^\^?|,,?)[^$`{}'"\\<>()]*)?\}|\w+|[@*#?$!-])/;
const simpleVariable = new RegExp(variable, "y");
const simpleVariables = new RegExp(variable, "g");

function match(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function unescaped(_whole: string, character: string): string {
  return { n: "\n", t: "\t", r: "\r" }[character] ?? character;
}
