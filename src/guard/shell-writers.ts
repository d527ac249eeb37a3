/**
 * The commands whose arguments tell what they write, and those that write nothing. Only what is listed here, with flags
 * that are listed here, is clear; everything else may write anything.
 */
import { isClearAwk, isClearSed } from "./script-words.ts";
import { type Flags, readFlags } from "./shell-flags.ts";
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

const vague: Writes = { isVague: true };
const nothing: Writer = () => ({});

/** They have no flag that writes a file or runs a program. */
const readers =
  "ls cat head tail more grep egrep fgrep wc echo pwd which type stat du df date whoami id uname hostname ps printenv true " +
  "false : sleep wait seq basename dirname realpath readlink diff cmp comm cut tr nl tac rev fold column paste join jq " +
  "md5sum sha1sum sha256sum sha512sum cksum od hexdump strings return exit break continue shift ulimit umask jobs fg bg " +
  "kill clear tput nproc uptime free lsof pgrep groups tty arch getconf";

/** They write nothing with these flags. */
const flaggedReaders: Readonly<Record<string, string>> = {
  rg:
    "-niwlLcFSsvoHhNuUaPx0bpqI A: B: C: e: g: t: T: m: j: r: M: d: --files --hidden --no-ignore --glob= --iglob= --type= " +
    "--type-not= --ignore-case --fixed-strings --line-number --no-line-number --no-heading --heading --count --json --stats " +
    "--files-with-matches --files-without-match --max-count= --context= --color= --sort= --multiline --word-regexp --pcre2 " +
    "--no-filename --with-filename --trim --max-depth= --only-matching --replace= --after-context= --before-context= --vimgrep " +
    "--no-messages --smart-case --case-sensitive --invert-match --regexp= --max-columns= --type-list --null",
  tree: "-adfilpsuDhFCnAJQ L: P: I: --dirsfirst --noreport --gitignore --prune --du --filelimit= --charset= --matchdirs",
  less: "-NRSFXEein",
  file: "-bikLs0N --mime-type --mime --mime-encoding --brief",
  base64: "-dD w: b: --decode --wrap=",
  printf: "",
};

export const writers: Readonly<Record<string, Writer>> = {
  ...Object.fromEntries(readers.split(" ").map((name) => [name, nothing])),
  ...Object.fromEntries(Object.entries(flaggedReaders).map(([name, list]) => [name, reading(list)])),
  ...Object.fromEntries(["export", "local"].map((name) => [name, naming])),
  test: testing,
  "[": testing,
  "[[": testing,
  read: (words) => (plainNames(readFlags(words, "-rs p: t: n: d: u:")) ? {} : vague),
  unset: (words) => (plainNames(readFlags(words, "-v")) ? {} : vague),
  for: ([name]) => (name !== undefined && isHarmless(name.text) ? {} : vague),
  set: (words) =>
    words.every(({ text }) => /^(?:[-+][euxovnfC]+|--|pipefail|errexit|nounset|xtrace)$/.test(text)) ? {} : vague,
  leasehold: ownCommand,
  tee: ofOperands("-aip --append", "mutated"),
  sed: editing,
  awk: (words) => (isClearAwk(readFlags(words, "F: v:")) ? {} : vague),
  perl: inPlace,
  ruby: inPlace,
  yq: (words) => {
    const { operands, values, areKnown } = readFlags(
      words,
      "-rPeMCNni o: p: I: --raw-output --inplace --in-place --prettyPrint --output-format= --input-format=",
    );
    if (values.has("-i") || values.has("--inplace") || values.has("--in-place"))
      return { mutated: operands.slice(1), ...vague };
    return areKnown ? {} : vague;
  },
  sort: (words) => {
    const list =
      "-bcCdfghiMmnRrsuVz o: k: t: S: --reverse --unique --numeric-sort --key= --field-separator= --output= --version-sort --human-numeric-sort --ignore-case --stable --check?";
    const { values, areKnown } = readFlags(words, list);
    return sure(areKnown, { mutated: [...(values.get("-o") ?? []), ...(values.get("--output") ?? [])] });
  },
  uniq: (words) => {
    const { operands, areKnown } = readFlags(words, "-cdDuiz f: s: w: --count --repeated --unique --ignore-case");
    return sure(areKnown, { mutated: operands.slice(1) });
  },
  xxd: (words) => {
    const { operands, areKnown } = readFlags(words, "-piubeEa c: l: s: g: o:");
    return sure(areKnown, { mutated: operands.slice(1) });
  },
  mv: moves,
  cp: copies,
  ln: copies,
  install: (words) => ({ ...copies(words), ...vague }),
  rsync: (words) => ({ mutatedTrees: readFlags(words, "").operands.slice(-1), ...vague }),
  rm: (words) => {
    const { operands, values, areKnown } = readFlags(
      words,
      "-rRfivdI --recursive --force --verbose --dir --one-file-system",
    );
    const isDeep = values.has("-r") || values.has("-R") || values.has("--recursive");
    return sure(areKnown, isDeep ? { deletedTrees: operands } : { deleted: operands });
  },
  rmdir: ofOperands("-pv --parents --ignore-fail-on-non-empty", "deleted"),
  unlink: ofOperands("", "deleted"),
  shred: ofOperands("-fuvxz n: s:", "mutated"),
  touch: ofOperands("-acmfh d: r: t: --no-create --date= --reference=", "mutated"),
  truncate: ofOperands("-c r: s: --size= --no-create --reference=", "mutated"),
  mkdir: reading("-pv m: --parents --mode= --verbose"),
  chmod: (words) => {
    // A mode that takes rights away looks like a flag.
    const isMode = (word: Word) => /^-[rwxXst]+$/.test(word.text);
    const { operands, values, areKnown } = readFlags(
      words.filter((word) => !isMode(word)),
      "-Rfvc --recursive --verbose --changes --quiet --silent",
    );
    const files = words.some(isMode) ? operands : operands.slice(1);
    return sure(areKnown, values.has("-R") || values.has("--recursive") ? { mutatedTrees: files } : { mutated: files });
  },
  chown: reading("-RhfvcLHP --recursive --no-dereference"),
  chgrp: reading("-RhfvcLHP --recursive --no-dereference"),
  dd: (words) =>
    sure(
      words.every(
        ({ text, isKnown }) => isKnown && /^(?:if|of|bs|count|skip|seek|conv|status|ibs|obs|iflag|oflag)=/.test(text),
      ),
      {
        mutated: words
          .filter(({ text }) => text.startsWith("of="))
          .map((word) => ({ ...word, text: word.text.slice(3) })),
      },
    ),
  patch: (words) => ({ mutated: readFlags(words, "-NRsEltuf p: i: d:").operands.slice(0, 1), ...vague }),
  curl: (words) => {
    const list =
      "-fsSLIivkgGNjn46# o: X: H: d: A: u: e: m: x: r: y: Y: --output= --fail --silent --show-error --location --head " +
      "--include --verbose --insecure --compressed --request= --header= --data= --data-raw= --data-binary= --data-urlencode= " +
      "--url= --user= --user-agent= --max-time= --connect-timeout= --retry= --retry-delay= --json= --get --fail-with-body " +
      "--no-progress-meter --http1.1 --http2 --proto= --tlsv1.2";
    const { values, areKnown } = readFlags(words, list);
    return sure(areKnown, { mutated: [...(values.get("-o") ?? []), ...(values.get("--output") ?? [])] });
  },
  wget: (words) => {
    const { values } = readFlags(words, "-qncS O: P: --quiet --output-document= --no-verbose --show-progress");
    return { mutated: [...(values.get("-O") ?? []), ...(values.get("--output-document") ?? [])], ...vague };
  },
  find,
  tar: (words) => (/^-?t[vzjJ]*f$/.test(words[0]?.text ?? "") && areOperands(words.slice(1)) ? {} : vague),
  unzip: (words) => (/^-[lZvt]$/.test(words[0]?.text ?? "") && areOperands(words.slice(1)) ? {} : vague),
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

/** Programs that say their version and do nothing else. */
const versioned =
  /^(?:node|npm|npx|pnpm|yarn|bun|deno|tsc|python3?|pip3?|uv|ruby|perl|go|cargo|rustc|java|javac|make|cmake|gcc|clang|docker|bash|curl|gh)$/;

export function asksVersion(name: string, words: readonly Word[]): boolean {
  const [first] = words;
  if (words.length !== 1 || first?.isKnown !== true || !versioned.test(name)) return false;
  return (
    first.text === "--version" ||
    (first.text === "version" && name === "go") ||
    (first.text === "-v" && name === "node")
  );
}

/**
 * A variable that changes nothing but what a command says. Small letters are a script's own; others may name a library
 * to load, a program to start or a folder to look in (`LD_PRELOAD`, `PAGER`, `GIT_DIR`, `NODE_OPTIONS`, `PATH`).
 */
export function isHarmless(name: string): boolean {
  return /^(?:[a-z_][a-z0-9_]*|[A-Z]|LC_\w+|LANG|TZ|CI|NODE_ENV|DEBUG|NO_COLOR|FORCE_COLOR|TERM|COLUMNS|RUST_BACKTRACE|RUST_LOG|IFS)$/.test(
    name,
  );
}

function naming(words: readonly Word[]): Writes {
  return plainNames(readFlags(words, "")) ? {} : vague;
}

function plainNames({ operands, areKnown }: Flags): boolean {
  const names = operands.map(({ text }) => text.split("=")[0] ?? "");
  // A value may be unknown, a name may not: `read 'a[$(rm x)]'` runs what is in it.
  return (areKnown || operands.every(({ text }) => text.includes("="))) && names.every(isHarmless);
}

/** `[[ x -eq y ]]` computes both, and `-v` computes a subscript: what is in a variable may run. */
function testing(words: readonly Word[]): Writes {
  const computing = words.at(-1)?.text === "]]" ? /^-(?:[vR]|eq|ne|[lg][te])$/ : /^-[vR]$/;
  return words.some(({ text }) => computing.test(text)) ? vague : {};
}

/** Those that start a command of their own, write a file, or change what is configured may write anything. */
function ownCommand([verb, ...rest]: readonly Word[]): Writes {
  if (verb?.text === "guard" && rest[0]?.text === "claim") return { claimed: readFlags(rest.slice(1), "").operands };
  if (verb?.text === "guard" && rest[0]?.text === "status") return {};
  const isReading =
    /^(?:ls|leases|agents|resources|receipts|tasks|tenants|cells|events|doctor|verify|top|help|serve|--help|--version)$/;
  // Without a server nothing unclear may run, so starting one must be clear.
  return isReading.test(verb?.text ?? "") && rest.every(({ text }) => !text.startsWith("--out")) ? {} : vague;
}

function reading(list: string): Writer {
  return (words) => (readFlags(words, list).areKnown ? {} : vague);
}

function ofOperands(list: string, kind: "mutated" | "deleted"): Writer {
  return (words) => {
    const { operands, areKnown } = readFlags(words, list);
    return sure(areKnown, { [kind]: operands });
  };
}

function sure(isSure: boolean, writes: Writes): Writes {
  return isSure ? writes : { ...writes, ...vague };
}

function areOperands(words: readonly Word[]): boolean {
  return words.every(({ text, isKnown }) => isKnown && !text.startsWith("-"));
}

/** `sed -i`: the first operand is the script, unless that came with a flag. */
function editing(words: readonly Word[]): Writes {
  const flags = readFlags(
    words,
    "-nErsuz i? e: --in-place? --expression= --quiet --silent --regexp-extended --null-data",
  );
  const { operands, values, areKnown } = flags;
  const given = [...(values.get("-e") ?? []), ...(values.get("--expression") ?? [])];
  const suffixes = [...(values.get("-i") ?? []), ...(values.get("--in-place") ?? [])];
  // BSD's sed takes the suffix as a word of its own; an empty one is not a file.
  const plain = operands.filter(({ text }) => text !== "");
  const scripts = given.length > 0 ? given : plain.slice(0, 1);
  const files = given.length > 0 ? plain : plain.slice(1);
  const isInPlace = values.has("-i") || values.has("--in-place");
  // A suffix keeps the old file beside it.
  const hasCopy = suffixes.some(({ text }) => text !== "");
  return sure(areKnown && !hasCopy && isClearSed(scripts), isInPlace ? { mutated: files } : {});
}

/** An interpreter may do anything; with `-i`, at least its operands are written. */
function inPlace(words: readonly Word[]): Writes {
  const { operands, values } = readFlags(words, "-pnlaw0 i? e: E: M: I: F:");
  if (!values.has("-i")) return vague;
  return { mutated: values.has("-e") || values.has("-E") ? operands : operands.slice(1), ...vague };
}

/** The last is where to; `-t FOLDER` says it first. */
function endsOf({ operands, values }: Flags): { readonly sources: readonly Word[]; readonly to: Word | undefined } {
  const [folder] = [...(values.get("-t") ?? []), ...(values.get("--target-directory") ?? [])];
  if (folder !== undefined) return { sources: operands, to: { ...folder, text: `${folder.text}/` } };
  return { sources: operands.slice(0, -1), to: operands.length > 1 ? operands.at(-1) : undefined };
}

function moves(words: readonly Word[]): Writes {
  const flags = readFlags(words, "-finvuT t: --force --no-clobber --verbose --target-directory= --no-target-directory");
  const { sources, to } = endsOf(flags);
  if (to === undefined) return vague;
  return sure(flags.areKnown, { renamed: sources.map((from) => [from, to]) });
}

function copies(words: readonly Word[]): Writes {
  const list =
    "-finvupLPHdTsraR t: --force --no-clobber --verbose --target-directory= --no-target-directory --recursive --archive --symbolic --preserve?";
  const flags = readFlags(words, list);
  const { sources, to } = endsOf(flags);
  if (to === undefined) return vague;
  const isDeep = ["-r", "-R", "-a", "--recursive", "--archive"].some((flag) => flags.values.has(flag));
  if (isDeep) return { mutatedTrees: [to], ...vague };
  return sure(flags.areKnown, { copied: sources.map((from) => [from, to]) });
}

const findTests = new Set(
  (
    "-name -iname -path -ipath -wholename -type -maxdepth -mindepth -mtime -mmin -newer -size -empty -not -o -a -or -and " +
    "-print -print0 -prune -perm -user -group -regex -iregex -regextype -L -H -P -E -xdev -mount -depth -true -false -quit -ls " +
    "-printf -links -inum -samefile -readable -writable -executable -atime -ctime -cmin -amin -newermt -daystart -follow -nogroup -nouser"
  ).split(" "),
);

function find(words: readonly Word[]): Writes {
  let isSure = true;
  let writesTree = false;
  for (let at = 0; at < words.length; at++) {
    const { text = "", isKnown = false } = words[at] ?? {};
    if (!isKnown) isSure = false;
    if (/^-(?:exec|execdir|ok|okdir)$/.test(text)) {
      const rest = words.slice(at + 1);
      const length = rest.findIndex((word) => word.text === ";" || word.text === "+");
      const [program, ...args] = rest.slice(0, length === -1 ? rest.length : length);
      const writer = program !== undefined && Object.hasOwn(writers, program.text) ? writers[program.text] : undefined;
      const writes = length === -1 ? undefined : writer?.(args);
      if (writes === undefined || Object.keys(writes).length > 0) writesTree = true;
      at += Math.max(0, length);
    } else if (text === "-delete") writesTree = true;
    else if (text.startsWith("-") && !findTests.has(text) && !/^-\d+[a-zA-Z]?$/.test(text)) isSure = false;
  }
  if (!writesTree) return sure(isSure, {});
  const end = words.findIndex(({ text }) => /^[-(!]/.test(text));
  const roots = words.slice(0, end === -1 ? words.length : end);
  const here: Word = { text: ".", isKnown: true, isPattern: false, isQuoted: false, isAssignment: false };
  return { mutatedTrees: roots.length > 0 ? roots : [here], ...vague };
}

/** They run what is configured (plugins), so that they are never clear. */
function formatter(flag: RegExp | null): Writer {
  return (words) => {
    if (flag !== null && !words.some(({ text }) => flag.test(text))) return vague;
    const files = words.filter(({ text }) => !text.startsWith("-") && /[./*]/.test(text));
    return { mutated: files, ...vague };
  };
}
