import type { Source } from "./imports.ts";
import { proseOf } from "./prose.ts";

/** The rules of docs/rules.md by number; `isMarked` if a sentence of it has the mark of what is not built yet. */
export type Rules = ReadonlyMap<string, { readonly isMarked: boolean }>;

/** One row of docs/rules-pending.md. `isWhole`: nothing of the rule is built. */
export type Pending = { readonly rule: string; readonly isWhole: boolean };

/** The sections of docs/rules.md. Other letters with a number (V2, M1, H3, D11) are not rules. */
const numbered = /(?<![\w.\\/#-])([LCWAGTRS]\d{1,2})(?![\w-]|\.\d)/g;

/** Text in which such a letter and number is something else. */
const foreign = [/C0, DEL and C1/g, /C75\\0/g];

export function readRules(document: string): Rules {
  const [, ...parts] = document.split(/^- (?=\*\*[A-Z]\d+\*\*)/m);
  return new Map(
    parts.map((part) => {
      const rule = /^\*\*([A-Z]\d+)\*\*/.exec(part)?.[1] ?? "";
      const own = part.split(/^## /m)[0] ?? "";
      return [rule, { isMarked: own.includes("◆") }] as const;
    }),
  );
}

export function readPending(document: string): readonly Pending[] {
  return [...document.matchAll(/^\| ([A-Z]\d+) \| ([^|]*) \|/gm)].map(([, rule = "", built = ""]) => ({
    rule,
    isWhole: built.trim() === "nothing",
  }));
}

/** Citations of numbers that are not rules. */
export function unknownRules(source: Source, rules: Rules): readonly string[] {
  return citedIn(source)
    .filter((number) => !rules.has(number))
    .map((number) => `${source.path} cites ${number}, which docs/rules.md does not have`);
}

/** Rules that no test names and that are not listed as built in no part. */
export function untestedRules(
  sources: readonly Source[],
  rules: Rules,
  pending: readonly Pending[],
): readonly string[] {
  const named = testedRules(sources);
  const unbuilt = new Set(pending.filter(({ isWhole }) => isWhole).map(({ rule }) => rule));
  return [...rules.keys()].filter((rule) => !named.has(rule) && !unbuilt.has(rule));
}

/** Where the list of what is missing disagrees with the rules, their marks or the tests. */
export function pendingFaults(
  sources: readonly Source[],
  rules: Rules,
  pending: readonly Pending[],
): readonly string[] {
  const named = testedRules(sources);
  const listed = new Set(pending.map(({ rule }) => rule));
  return [
    ...pending.filter(({ rule }) => !rules.has(rule)).map(({ rule }) => `${rule} is not a rule`),
    ...pending.filter(({ rule }) => rules.get(rule)?.isMarked === false).map(({ rule }) => `${rule} has no mark ◆`),
    ...pending
      .filter(({ rule, isWhole }) => isWhole && named.has(rule))
      .map(({ rule }) => `a test names ${rule}, so something of it is built: say what`),
    ...[...rules].filter(([rule, { isMarked }]) => isMarked && !listed.has(rule)).map(([rule]) => `${rule} has no row`),
  ];
}

/** Rules that the name of a test cites. */
export function testedRules(sources: readonly Source[]): ReadonlySet<string> {
  return new Set(sources.flatMap(testNamesIn).flatMap(numbersIn));
}

/** The names of a file's tests, as they are written there; `…` stands for each expression in a template. */
export function testNamesIn({ text }: Source): readonly string[] {
  const call = /\b(?:test|it|describe|suite)\(\s*("(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`)/g;
  return [...text.matchAll(call)].map(([, name = ""]) =>
    name
      .slice(1, -1)
      .replace(/\$\{[^}]*\}/g, "…")
      .replace(/\\(.)/g, "$1"),
  );
}

function citedIn(source: Source): readonly string[] {
  return [...new Set(proseOf(source).flatMap(numbersIn))];
}

function numbersIn(text: string): readonly string[] {
  const own = foreign.reduce((left, pattern) => left.replace(pattern, ""), text);
  return [...own.matchAll(numbered)].map(([, number = ""]) => number);
}
