/**
 * Reads the flags of a command by a list of those that are known. `-ab` are flags without a value, `c:` is one with a
 * value (joined or the next word), `d?` one whose value can only be joined; `--all`, `--name=`, `--color?` likewise.
 */
import type { Word } from "./shell-words.ts";

export interface Flags {
  /** What is not a flag. */
  readonly operands: readonly Word[];
  /** By flag, with its dashes. */
  readonly values: ReadonlyMap<string, readonly Word[]>;
  /** False if there is a flag that is not listed, or a word that could be one. */
  readonly areKnown: boolean;
}

interface FlagList {
  readonly short: ReadonlyMap<string, "" | ":" | "?">;
  readonly long: ReadonlyMap<string, "" | "=" | "?">;
}

export function readFlags(words: readonly Word[], list: string): Flags {
  const known = readList(list);
  const operands: Word[] = [];
  const values = new Map<string, Word[]>();
  const note = (flag: string, word: Word | undefined): void => {
    values.set(flag, [...(values.get(flag) ?? []), ...(word === undefined ? [] : [word])]);
  };
  let areKnown = true;
  let at = 0;
  for (; at < words.length; at++) {
    const word = words[at];
    if (word === undefined) break;
    if (!word.isKnown) areKnown = false;
    if (word.text === "--" && word.isKnown) {
      operands.push(...words.slice(at + 1));
      break;
    }
    if (word.text === "-" || !word.text.startsWith("-")) operands.push(word);
    else if (word.text.startsWith("--")) {
      const [flag = "", ...rest] = word.text.split("=");
      const kind = known.long.get(flag);
      if (kind === undefined || (kind === "" && rest.length > 0)) areKnown = false;
      else if (kind === "=" && rest.length === 0) note(flag, words[++at]);
      else note(flag, rest.length === 0 ? undefined : cut(word, flag.length + 1));
    } else if (/^-\d+$/.test(word.text) && known.short.has("0")) note("-0", cut(word, 1));
    else {
      for (let letter = 1; letter < word.text.length; letter++) {
        const flag = `-${word.text[letter]}`;
        const kind = known.short.get(flag.slice(1));
        const rest = word.text.slice(letter + 1);
        if (kind === undefined) areKnown = false;
        if (kind === ":" && rest === "") note(flag, words[++at]);
        else note(flag, kind === ":" || kind === "?" ? cut(word, letter + 1) : undefined);
        if (kind === ":" || kind === "?" || kind === undefined) break;
      }
    }
    if (at >= words.length) areKnown = false;
  }
  return { operands: operands.filter(({ text }) => text !== "-"), values, areKnown };
}

const lists = new Map<string, FlagList>();

function readList(list: string): FlagList {
  const found = lists.get(list);
  if (found !== undefined) return found;
  const short = new Map<string, "" | ":" | "?">();
  const long = new Map<string, "" | "=" | "?">();
  for (const item of list.split(" ")) {
    if (item.startsWith("--")) {
      const kind = item.endsWith("=") ? "=" : item.endsWith("?") ? "?" : "";
      long.set(kind === "" ? item : item.slice(0, -1), kind);
    } else if (item.startsWith("-")) for (const letter of item.slice(1)) short.set(letter, "");
    else if (item !== "") short.set(item.slice(0, 1), item.endsWith("?") ? "?" : ":");
  }
  const known = { short, long };
  lists.set(list, known);
  return known;
}

export function cut(word: Word, length: number): Word {
  return { ...word, text: word.text.slice(length) };
}
