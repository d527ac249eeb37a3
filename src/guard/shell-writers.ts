/** The commands whose arguments tell what they write, and those that write nothing. */
import type { Word } from "./shell-words.ts";

export interface Writes {
  readonly mutated?: readonly Word[];
  readonly mutatedTrees?: readonly Word[];
  readonly deleted?: readonly Word[];
  readonly deletedTrees?: readonly Word[];
  readonly renamed?: readonly (readonly [from: Word, to: Word])[];
  /** Reserved before anything is written: `leasehold guard claim`. */
  readonly claimed?: readonly Word[];
  readonly copied?: readonly (readonly [from: Word, to: Word])[];
  /** It may write more than that. */
  readonly isVague?: true;
}

type Writer = (words: readonly Word[]) => Writes;

const nothing: Writer = () => ({});

const readers =
  "ls cat head tail less more grep egrep fgrep rg ag wc echo printf pwd which type file stat du df date whoami id uname " +
  "hostname ps env printenv true false test [ [[ sleep wait seq basename dirname realpath readlink diff cmp comm cut tr " +
  "uniq nl tac rev fold column jq yq md5sum sha1sum sha256sum base64 xxd od hexdump strings tree export set unset local " +
  "return exit break continue shift trap for case esac select function read alias ulimit umask hash jobs fg bg " +
  "kill history man help tput clear";

export const writers: Readonly<Record<string, Writer>> = {
  ...Object.fromEntries(readers.split(" ").map((name) => [name, nothing])),
  leasehold: ownCommand,
  tee: (words) => ({ mutated: operands(words) }),
  sed: inPlace(/^-\w*i|^--in-place/, /^-[efl]$/),
  perl: inPlace(/^-\w*i/, /^-[eE]$/),
  ruby: inPlace(/^-\w*i/, /^-e$/),
  awk: (words) => vagueIf(words, /^inplace$|>/),
  gawk: (words) => vagueIf(words, /^inplace$|>/),
  sort: (words) => ({ mutated: valuesOf(words, /^(?:-o|--output)$/) }),
  mv: moves,
  cp: copies,
  ln: copies,
  install: copies,
  rsync: (words) => ({ mutatedTrees: operands(words).slice(-1), isVague: true }),
  rm: (words) =>
    words.some(({ text }) => /^-\w*[rR]|^--recursive$/.test(text))
      ? { deletedTrees: operands(words) }
      : { deleted: operands(words) },
  rmdir: (words) => ({ deleted: operands(words) }),
  unlink: (words) => ({ deleted: operands(words) }),
  shred: (words) => ({ mutated: operands(words) }),
  touch: (words) => ({ mutated: operands(words, /^-[drt]$/) }),
  truncate: (words) => ({ mutated: operands(words, /^-[rs]$/) }),
  mkdir: nothing,
  chmod: nothing,
  chown: nothing,
  dd: (words) => ({ mutated: words.filter(({ text }) => text.startsWith("of=")).map((word) => cut(word, 3)) }),
  patch: (words) => ({ mutated: operands(words, /^-[idpoBDFrVYz]$/).slice(0, 1), isVague: true }),
  curl: (words) => ({ mutated: valuesOf(words, /^(?:-o|--output)$/), ...vagueIf(words, /^-\w*O|^--remote-name/) }),
  wget: (words) => {
    const mutated = valuesOf(words, /^(?:-O|--output-document)$/);
    return mutated.length > 0 ? { mutated } : { isVague: true };
  },
  find: (words) =>
    words.some(({ text }) => /^-(?:delete|exec|execdir|ok|okdir|fprint|fls)/.test(text))
      ? { mutatedTrees: findRoots(words), isVague: true }
      : {},
  prettier: formatter(/^(?:-w|--write)$/),
  eslint: formatter(/^--fix$/),
  biome: formatter(/^(?:--write|--fix|--apply)/),
  gofmt: formatter(/^-w$/),
  goimports: formatter(/^-w$/),
  rustfmt: formatter(null),
  black: formatter(null),
  isort: formatter(null),
  "clang-format": formatter(/^-i$/),
};

/** Those that start a command of their own, or change what is configured, may write anything; `serve` must always do. */
function ownCommand([verb, ...rest]: readonly Word[]): Writes {
  if (verb?.text === "guard" && rest[0]?.text === "claim") return { claimed: operands(rest.slice(1)) };
  if (verb?.text === "guard" && rest[0]?.text === "status") return {};
  return /^(?:guard|init|run|work|cell|mcp)$/.test(verb?.text ?? "") ? { isVague: true } : {};
}

/** What stands there without a dash; flags that take a value are named. */
function operands(words: readonly Word[], valued: RegExp | null = null): readonly Word[] {
  const found: Word[] = [];
  let isOver = false;
  for (let at = 0; at < words.length; at++) {
    const word = words[at];
    if (word === undefined) break;
    if (isOver || word.text === "-" || !word.text.startsWith("-")) found.push(word);
    else if (word.text === "--") isOver = true;
    else if (valued?.test(word.text) === true) at++;
  }
  return found.filter(({ text }) => text !== "-");
}

function valuesOf(words: readonly Word[], flag: RegExp): readonly Word[] {
  return words.flatMap((word, at) => {
    const value = words[at + 1];
    if (flag.test(word.text) && value !== undefined) return [value];
    const [name = "", ...rest] = word.text.split("=");
    return rest.length > 0 && flag.test(name) ? [cut(word, name.length + 1)] : [];
  });
}

function cut(word: Word, length: number): Word {
  return { ...word, text: word.text.slice(length) };
}

/** `sed -i`: the first operand is the script, unless that came with a flag. */
function inPlace(flag: RegExp, script: RegExp): Writer {
  return (words) => {
    if (!words.some(({ text }) => flag.test(text)))
      return words.some(({ text }) => /\bw\s/.test(text)) ? { isVague: true } : {};
    const hasFlag = words.some(({ text }) => script.test(text) || /^-\w*e$/.test(text));
    // BSD's sed takes the suffix as a word of its own; an empty one is not a file.
    const files = operands(words, script).filter(({ text }) => text !== "");
    const withoutValue = hasFlag ? files.filter((word) => !isValueOf(words, word, /^-\w*e$/)) : files.slice(1);
    return { mutated: withoutValue };
  };
}

function isValueOf(words: readonly Word[], word: Word, flag: RegExp): boolean {
  return flag.test(words[words.indexOf(word) - 1]?.text ?? "");
}

/** The last is where to; `-t FOLDER` says it first. */
function endsOf(words: readonly Word[]): { readonly sources: readonly Word[]; readonly to: Word | undefined } {
  const [folder] = valuesOf(words, /^(?:-t|--target-directory)$/);
  const all = operands(words, /^(?:-t|-S|-m|-o|-g|--target-directory)$/);
  if (folder !== undefined) return { sources: all, to: { ...folder, text: `${folder.text}/` } };
  return { sources: all.slice(0, -1), to: all.length > 1 ? all.at(-1) : undefined };
}

function moves(words: readonly Word[]): Writes {
  const { sources, to } = endsOf(words);
  if (to === undefined) return { isVague: true };
  return { renamed: sources.map((from) => [from, to]) };
}

function copies(words: readonly Word[]): Writes {
  const { sources, to } = endsOf(words);
  if (to === undefined) return { isVague: true };
  const isDeep = words.some(({ text }) => /^-\w*[rRa]|^--(?:recursive|archive)$/.test(text));
  if (isDeep) return { mutatedTrees: [to], isVague: true };
  return { copied: sources.map((from) => [from, to]) };
}

function findRoots(words: readonly Word[]): readonly Word[] {
  const end = words.findIndex(({ text }) => /^[-(!]/.test(text));
  const roots = words.slice(0, end === -1 ? words.length : end);
  return roots.length > 0 ? roots : [{ text: ".", isKnown: true, isPattern: false }];
}

function formatter(flag: RegExp | null): Writer {
  return (words) => {
    if (flag !== null && !words.some(({ text }) => flag.test(text))) return {};
    return { mutated: operands(words).filter(({ text }) => /[./*]/.test(text)), isVague: true };
  };
}

function vagueIf(words: readonly Word[], flag: RegExp): { readonly isVague?: true } {
  return words.some(({ text }) => flag.test(text)) ? { isVague: true } : {};
}
