/** Parses a command's line by its table of flags; a fault is one sentence. */
import { parseArgs } from "node:util";
import { defaultUrl } from "../names/defaults.ts";
import type { Call, Command, Flag, Flags, Token } from "./command.ts";
import { readDurationMs } from "./durations.ts";
import { UsageProblem } from "./problem.ts";

const localFlags: Flags = {
  json: { words: "answer in JSON, one object a line" },
  help: { short: "h", words: "show this" },
  version: { short: "V", words: "show the version" },
};

/** What every command takes that speaks to a server. */
export const globalFlags: Flags = {
  url: {
    sign: "URL",
    many: true,
    words: `the server [${defaultUrl}], or several of a cluster, given again or with commas between; also LEASEHOLD_URL`,
  },
  profile: {
    sign: "NAME",
    names: "profile",
    words: "a server that `leasehold profiles` knows; also LEASEHOLD_PROFILE",
  },
  key: { sign: "KEY", words: "a key or an agent's token; better in LEASEHOLD_KEY" },
  "key-file": { sign: "FILE", words: "a file with the key, its owner's alone; also LEASEHOLD_KEY_FILE" },
  "tls-ca": { sign: "FILE", words: "the CA of an https server, in PEM; also LEASEHOLD_CA or LEASEHOLD_TLS_CA" },
  "tls-cert": { sign: "FILE", words: "a client's certificate, in PEM; also LEASEHOLD_TLS_CERT" },
  "tls-key": { sign: "FILE", words: "the certificate's key, in PEM; also LEASEHOLD_TLS_KEY" },
  insecure: {
    words: "send the key over plain http to another machine, where others can read it; also LEASEHOLD_INSECURE=1",
  },
  tenant: { sign: "ID", names: "tenant", words: "the tenant, for operators; also LEASEHOLD_TENANT" },
  timeout: { sign: "TIME", words: "how long the server may take to answer [30s]; also LEASEHOLD_TIMEOUT" },
  ...localFlags,
};

/** Beside the command's own. */
export function sharedFlags({ offline }: Pick<Command, "offline">): Flags {
  return offline === true ? localFlags : globalFlags;
}

export type Line = Pick<
  Call,
  "words" | "word" | "tokens" | "wrapped" | "isSet" | "text" | "texts" | "durationMs" | "integer" | "choice" | "fields"
>;

export function readLine(command: Command, args: readonly string[]): Line {
  const flags: Flags = { ...sharedFlags(command), ...command.flags };
  const dashes = command.wraps === true ? args.indexOf("--") : -1;
  const own = dashes === -1 ? args : args.slice(0, dashes);
  const tokens = parse(command, flags, own);
  const words = tokens.flatMap((token) => (token.kind === "word" ? [token.text] : []));
  const given = (name: string): readonly (string | null)[] => {
    if (flags[name] === undefined) throw new TypeError(`${command.name} has no flag --${name}`);
    return tokens.flatMap((token) => (token.kind === "flag" && token.name === name ? [token.value] : []));
  };
  const text = (name: string) => given(name).at(-1) ?? null;
  const line: Line = {
    words,
    word: words[0] ?? "",
    tokens,
    wrapped: dashes === -1 ? [] : args.slice(dashes + 1),
    isSet: (name) => given(name).length > 0,
    text,
    texts: (name) => given(name).filter((value) => value !== null),
    durationMs(name) {
      const value = text(name);
      const ms = value === null ? null : readDurationMs(value);
      if (value !== null && ms === null) throw wrong(name, flags, value, "a duration such as 500ms, 30s or 5m");
      return ms;
    },
    integer(name, min = 0, max = Number.MAX_SAFE_INTEGER) {
      const value = text(name);
      if (value === null) return null;
      const number = /^\d{1,16}$/.test(value) ? Number(value) : Number.NaN;
      if (number >= min && number <= max) return number;
      const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} to ${max}`;
      throw wrong(name, flags, value, `a whole number ${range}`);
    },
    choice(name, values) {
      const value = text(name);
      const found = values.find((one) => one === value);
      if (value !== null && found === undefined) throw wrong(name, flags, value, `one of ${values.join(", ")}`);
      return found ?? null;
    },
    fields(table) {
      const set: Record<string, unknown> = {};
      for (const [name, { field, sign, many, choices, min }] of Object.entries(table)) {
        if (field === undefined || !line.isSet(name)) continue;
        if (sign === undefined) set[field] = true;
        else if (many === true) set[field] = line.texts(name);
        else if (choices !== undefined) set[field] = line.choice(name, choices);
        else if (sign === "TIME") set[field] = line.durationMs(name);
        else set[field] = sign === "N" ? line.integer(name, min) : text(name);
      }
      return set;
    },
  };
  return line;
}

/** A wrong number of words is reported before anything else is read. */
export function checkWords(command: Command, words: readonly string[]): void {
  const { name, usage = "" } = command;
  const [min, max] = command.words ?? wordsIn(usage);
  if (words.length >= min && words.length <= max) return;
  const extra = words.length > max ? `"${words[max]}" is one word too many: ` : "";
  throw new UsageProblem(`${extra}the usage is \`leasehold ${`${name} ${usage}`.trim()}\`; see --help`);
}

/** Usage begins with the words: "RES" is one, "[RES]" may be left out, and so may what has an alternative: "RES | --all". */
export function wordsIn(usage: string): readonly [min: number, max: number] {
  const [leading = ""] = /^(?:\[?[A-Z_]+\]?(?: |$))*/.exec(usage) ?? [];
  const words = leading.match(/\S+/g) ?? [];
  const needed = usage.startsWith("|", leading.length) ? [] : words.filter((word) => !word.startsWith("["));
  return [needed.length, words.length];
}

function parse(command: Command, flags: Flags, args: readonly string[]): readonly Token[] {
  const options = Object.fromEntries(
    Object.entries(flags).map(([name, { sign, short }]) => [
      name,
      { type: sign === undefined ? ("boolean" as const) : ("string" as const), ...(short !== undefined && { short }) },
    ]),
  );
  try {
    const { tokens } = parseArgs({ args: [...args], options, allowPositionals: true, strict: true, tokens: true });
    return tokens.flatMap((token): readonly Token[] => {
      if (token.kind === "positional") return [{ kind: "word", text: token.value }];
      return token.kind === "option" ? [{ kind: "flag", name: token.name, value: token.value ?? null }] : [];
    });
  } catch (error) {
    throw new UsageProblem(`${problemOf(error, flags)}; \`leasehold ${command.name} --help\` lists the flags`);
  }
}

/** Node's own sentences, without its advice on how to pass dashes, and with the nearest known flag. */
function problemOf(error: unknown, flags: Flags): string {
  const message = error instanceof Error ? error.message : String(error);
  const [, unknown] = /^Unknown option '([^']+)'/.exec(message) ?? [];
  if (unknown !== undefined) {
    const near = nearest(unknown.replace(/^-+/, ""), Object.keys(flags));
    return `there is no flag ${unknown}${near === null ? "" : `; did you mean --${near}?`}`;
  }
  const [, missing] = /^Option '([^']+)' argument (?:missing|is ambiguous)/.exec(message) ?? [];
  if (missing !== undefined) return `${missing.replace(/ <value>$/, "")} takes a value`;
  const [, needless] = /^Option '([^']+)' does not take an argument/.exec(message) ?? [];
  if (needless !== undefined) return `${needless} takes no value`;
  const [sentence = ""] = message.split(/[.\n]/);
  return `${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
}

function wrong(name: string, flags: Flags, value: string, wanted: string): UsageProblem {
  const { short }: Flag = flags[name] ?? { words: "" };
  const shown = short === undefined ? `--${name}` : `-${short}/--${name}`;
  return new UsageProblem(`${shown} is "${value.slice(0, 80)}"; give ${wanted}`);
}

/** What was probably meant: letters changed places, or at most two differ, and less than half; null if nothing is. */
export function nearest(word: string, known: readonly string[]): string | null {
  const distances = known.map((one) => ({ one, distance: distanceOf(word, one) }));
  const [best] = distances.toSorted((a, b) => a.distance - b.distance);
  if (best === undefined || best.distance > 2) return null;
  const isLike = best.distance * 2 < Math.max(word.length, best.one.length) || lettersOf(word) === lettersOf(best.one);
  return isLike ? best.one : null;
}

function lettersOf(word: string): string {
  return [...word].toSorted().join("");
}

/** Letters to add, drop or change. */
function distanceOf(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
