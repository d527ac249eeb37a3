import type { Source } from "./imports.ts";
import { testNamesIn } from "./rules.ts";

/** How many statements each of the five documents makes. Their ids are the letters and a number of two digits. */
const statements = { K3: 45, K5: 38, K4: 29, G: 43, A: 85 };

type Row = {
  readonly id: string;
  readonly kind: "kept" | "deviates" | "missing";
  readonly rules: readonly string[];
  readonly tests: readonly { readonly path: string; readonly name: string }[];
  /** Of deviations: what decides them. */
  readonly sentences: readonly { readonly rule: string; readonly text: string }[];
};

/** What is wrong with docs/conformance.md, given docs/rules.md and the files of tests. */
export function conformanceFaults(document: string, rules: string, tests: readonly Source[]): readonly string[] {
  const rows = readRows(document);
  return [
    ...idFaults(document, rows),
    ...rows.flatMap((row) => shapeFaults(row).map((fault) => `${row.id} ${fault}`)),
    ...rows.flatMap((row) => ruleFaults(row, rules).map((fault) => `${row.id} ${fault}`)),
    ...rows.flatMap((row) => testFaults(row, tests).map((fault) => `${row.id} ${fault}`)),
  ];
}

function readRows(document: string): readonly Row[] {
  const [kept = "", missing = ""] = document.split(/^## Not kept yet$/m);
  return [
    ...rowsIn(kept).map((cells) => (cells.length === 5 ? rowOf("deviates", cells, 3) : rowOf("kept", cells, 2))),
    ...rowsIn(missing).map((cells) => rowOf("missing", cells, 2)),
  ];
}

/** The cells of each row that begins with an id. */
function rowsIn(text: string): readonly (readonly string[])[] {
  return [...text.matchAll(/^\| ([A-Z]\d?-\d\d) \|(.*)\|$/gm)].map(([, id = "", rest = ""]) => [
    id,
    ...rest.split(" | ").map((cell) => cell.trim()),
  ]);
}

function rowOf(kind: Row["kind"], cells: readonly string[], rulesAt: number): Row {
  const [id = ""] = cells;
  const cited = cells[rulesAt] ?? "";
  const held = kind === "missing" ? "" : (cells.at(-1) ?? "");
  return {
    id,
    kind,
    rules: [...cited.replace(/“[^”]*”/g, "").matchAll(/\b[A-Z]\d+\b/g)].map(([rule]) => rule),
    tests: [...held.matchAll(/`([^`]+\.test\.ts)`((?:,? "[^"]+")+)/g)].flatMap(([, path = "", names = ""]) =>
      [...names.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => ({ path, name })),
    ),
    sentences: [...cited.matchAll(/\b([A-Z]\d+) “([^”]*)”/g)].map(([, rule = "", text = ""]) => ({ rule, text })),
  };
}

function idFaults(document: string, rows: readonly Row[]): readonly string[] {
  const outside = /^Not applicable[^:]*:([^\n]*(?:\n[^\n]+)*)/m.exec(document)?.[1] ?? "";
  const found = [...rows.map(({ id }) => id), ...(outside.match(/\b[A-Z]\d?-\d\d\b/g) ?? [])];
  const expected = Object.entries(statements).flatMap(([letters, last]) =>
    Array.from({ length: last }, (_, index) => `${letters}-${String(index + 1).padStart(2, "0")}`),
  );
  return [...new Set([...expected, ...found])].flatMap((id) => {
    const times = found.filter((one) => one === id).length;
    if (!expected.includes(id)) return [`${id} is not a statement`];
    return times === 1 ? [] : [`${id} is there ${times} times`];
  });
}

function shapeFaults({ kind, rules, tests, sentences }: Row): readonly string[] {
  return [
    ...(rules.length === 0 ? ["cites no rule"] : []),
    ...(kind !== "missing" && tests.length === 0 ? ["names no test"] : []),
    ...(kind === "deviates" && sentences.length === 0 ? ["quotes no sentence that decides it"] : []),
  ];
}

function ruleFaults({ kind, rules, sentences }: Row, document: string): readonly string[] {
  const isMarked = rules.some((rule) => textOfRule(document, rule)?.includes("◆") === true);
  return [
    ...(kind === "missing" && !isMarked ? ["is not kept, but none of its rules has a mark ◆"] : []),
    ...rules.filter((rule) => textOfRule(document, rule) === null).map((rule) => `cites ${rule}, which does not exist`),
    ...sentences
      .filter(({ rule, text }) => textOfRule(document, rule)?.includes(text) !== true)
      .map(({ rule, text }) => `quotes of ${rule} what it does not say: ${text}`),
  ];
}

/** A rule on one line, with its tables; null if there is none of that number. */
function textOfRule(document: string, rule: string): string | null {
  const [, after] = document.split(`- **${rule}** `);
  return after?.split(/^(?:- \*\*|## )/m)[0]?.replace(/\s+/g, " ") ?? null;
}

function testFaults({ tests: named }: Row, tests: readonly Source[]): readonly string[] {
  return named.flatMap(({ path, name }) => {
    const file = tests.find((one) => one.path === path);
    if (file === undefined) return [`names ${path}, which does not exist`];
    const found = new Set(testNamesIn(file).filter((one) => one.startsWith(name)));
    return found.size === 1 ? [] : [`names a test of ${path} that is there ${found.size} times: ${name}`];
  });
}
