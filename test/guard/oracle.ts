/**
 * A second opinion on shell commands: what a complete parser of Bash (unbash) finds in a text, to be compared with what
 * the guards' own reader finds. The reader may find more, and may call a text unclear; it may not overlook anything in a
 * text that it calls clear.
 */
import { readFileSync } from "node:fs";
import { normalize } from "node:path";
import { forEachChild, parse, type Redirection, type SyntaxNode, type Word } from "unbash";
import { type CommandStep, type Word as OurWord, readShell } from "../../src/guard/shell-words.ts";
import type { ShellWrites } from "../../src/guard/shell-writes.ts";

/** One to a line, and after the first `~~~` those of several lines, with that between them. */
export function readCorpus(): readonly string[] {
  const [lines = "", ...blocks] = readFileSync(new URL("commands.txt", import.meta.url), "utf8").split("~~~\n");
  return [...lines.split("\n").filter((line) => line !== ""), ...blocks];
}

export interface Found {
  /** Assignments before it, its name and its arguments. */
  readonly commands: readonly (readonly Word[])[];
  readonly assignments: readonly string[];
  readonly redirections: readonly Redirection[];
  /** Functions, arithmetic, `case`: what the reader never calls clear. */
  readonly constructs: readonly string[];
}

const constructs = new Set([
  "Function",
  "Case",
  "Select",
  "Coproc",
  "ArithmeticFor",
  "ArithmeticCommand",
  "ArithmeticExpansion",
  "ArrayValue",
]);

/** Null if it is not Bash. */
export function oracleFinds(text: string): Found | null {
  const script = parse(text);
  const found = {
    commands: [] as Word[][],
    assignments: [] as string[],
    redirections: [] as Redirection[],
    constructs: [] as string[],
  };
  let isRight = true;
  const visit = (node: SyntaxNode): void => {
    if ("errors" in node && node.errors !== undefined && node.errors.length > 0) isRight = false;
    if (constructs.has(node.type)) found.constructs.push(node.type);
    if (node.type === "Assignment") found.assignments.push(node.name);
    if (node.type === "Redirect" || node.type === "HereString") found.redirections.push(node);
    if (node.type === "Command" && node.name !== undefined) {
      found.commands.push([node.name, ...node.args.flatMap((arg) => (arg.type === "Word" ? [arg] : []))]);
    }
    forEachChild(node, visit);
  };
  visit(script);
  return isRight ? found : null;
}

/** What the oracle finds and the reader, in a text that it calls clear, does not. */
export function overlooked(text: string, oracle: Found): readonly string[] {
  const read = readShell(text);
  if (read === null || !read.isClear) return [];
  const ours = read.steps.filter((step): step is CommandStep => step.kind === "command");
  const left = ours.map(({ words }) => words);
  const targets = ours.flatMap(({ redirections }) => redirections);
  return [
    ...oracle.constructs,
    ...oracle.commands.flatMap((words) => {
      const at = left.findIndex((own) => isSameCommand(own, words));
      if (at === -1) return [`command ${words.map(({ text: word }) => word).join(" ")}`];
      left.splice(at, 1);
      return [];
    }),
    ...oracle.redirections.flatMap((one) => {
      if (one.type === "HereDoc") return [];
      const { target, operator } = one;
      const isSeen = targets.some(
        ({ sign, to }) => sign === operator && target !== undefined && isSameWord(to, target),
      );
      return isSeen ? [] : [`redirection ${operator} ${target?.text ?? ""}`];
    }),
  ];
}

/** Ours has the assignments before the name, those among the arguments, and `time`, too. */
function isSameCommand(own: readonly OurWord[], words: readonly Word[]): boolean {
  const isPlain = (text: string) => !/^\w+\+?=/.test(text);
  const untimed = (texts: readonly string[]) =>
    /^(?:time (?:-p )?)*/.exec(`${texts.join(" ")} `)?.[0].split(" ").length ?? 1;
  const mine = own.filter(({ text }) => isPlain(text));
  const plain = mine.slice(untimed(mine.map(({ text }) => text)) - 1);
  const all = words.filter(({ value }) => isPlain(value));
  const theirs = all.slice(untimed(all.map(({ value }) => value)) - 1);
  return plain.length === theirs.length && plain.every((word, at) => isSameWord(word, theirs[at] ?? word));
}

function isSameWord(own: OurWord, word: Pick<Word, "text"> & Partial<Word>): boolean {
  if (!own.isKnown) return true;
  if (hasExpansion(word)) return false;
  return own.isPattern || own.text === word.value || own.text === `./${word.value}`;
}

/** Of a word: something that only the shell could tell. */
function hasExpansion(word: Partial<Word>): boolean {
  let found = false;
  const visit = (node: SyntaxNode): void => {
    if (/Expansion$|^ProcessSubstitution$|^LocaleString$/.test(node.type) && node.type !== "BraceExpansion")
      found = true;
    forEachChild(node, visit);
  };
  for (const part of word.parts ?? []) visit(part);
  return found;
}

const readers = new Set(
  "ls cat head tail more grep egrep fgrep wc echo pwd which type stat du df date whoami id uname hostname ps printenv true false : sleep wait seq basename dirname realpath readlink diff cmp comm cut tr nl tac rev fold column paste join jq md5sum sha1sum sha256sum sha512sum cksum od hexdump strings return exit break continue shift ulimit umask jobs fg bg kill clear tput nproc uptime free lsof pgrep groups tty arch getconf rg tree less file base64 printf test [ read local unset set cd mkdir chown chgrp leasehold".split(
    " ",
  ),
);
/** Their flags decide; test/guard/attacks.test.ts goes through those. */
const byFlags = new Set(
  "git sed awk find sort uniq xxd yq curl tar unzip dd chmod cp mv ln env sudo timeout nice nohup command exec builtin time stdbuf bash sh zsh export ionice doas".split(
    " ",
  ),
);
const writers = new Set("touch rm rmdir unlink tee truncate shred".split(" "));

/** Writes that the oracle finds, in a text that is called clear, and that are not listed. */
export function unlisted(oracle: Found, writes: ShellWrites): readonly string[] {
  if (!writes.isClear) return [];
  const listed = [...writes.mutated, ...writes.deleted, ...writes.renamed.flat(), ...writes.copied.flat()].map(
    ({ path }) => path,
  );
  const isListed = (word: Word): boolean => {
    if (hasExpansion(word)) return false;
    if (/[*?[{]/.test(word.text)) return listed.length > 0;
    const path = normalize(word.value)
      .replace(/^(?:~(?:\/|$)|\/|(?:\.\.\/)+)/, "")
      .replace(/\/$/, "");
    return (
      /^\.{0,2}$/.test(path) || listed.some((one) => one === `/${path}` || one.endsWith(`/${path}`) || /[*?]/.test(one))
    );
  };
  const isHarmlessTarget = ({ value }: Word) => /^\/dev\/(?:null|std(?:out|err|in)|tty|fd\/\d+)$/.test(value);
  return [
    ...oracle.redirections.flatMap((one) => {
      if (one.type !== "Redirect" || one.operator === "<" || one.operator === "<&" || one.target === undefined)
        return [];
      const { target, operator } = one;
      if (operator === ">&" && /^(?:\d+-?|-)$/.test(target.value)) return [];
      return isHarmlessTarget(target) || isListed(target) ? [] : [`${operator} ${target.text}`];
    }),
    ...oracle.commands.flatMap(([name, ...args]) => {
      const program = (name?.value ?? "").split("/").at(-1) ?? "";
      if (readers.has(program) || byFlags.has(program)) return [];
      if (args.length === 1 && /^(?:--version|version|-v)$/.test(args[0]?.value ?? "")) return [];
      if (!writers.has(program)) return [`${program}, which may write anything`];
      const operands = args.filter(({ value }, at) => {
        const isValue = /^-[drtsn]$|^--(?:size|date|reference)$/.test(args[at - 1]?.value ?? "");
        return !value.startsWith("-") && !isValue;
      });
      return operands
        .filter((word) => !isHarmlessTarget(word) && !isListed(word))
        .map(({ text }) => `${program} ${text}`);
    }),
  ];
}
