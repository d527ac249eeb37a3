import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { basename, posix } from "node:path";
import { projectFiles, readSources, type Source } from "./imports.ts";
import { bannedFileNames, bannedTypes, machineTraces, phrases } from "./phrases.ts";
import { commentsOf, proseOf } from "./prose.ts";

/**
 * What the tidy test still lets pass: how often each phrase may occur in each folder, and the lines of long files.
 * Numbers only go down; `node test/sources/tidy.ts --write` lowers them to the present counts, and without `--write`
 * all findings are printed.
 */
export type Allowances = {
  readonly phrases: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly lines: Readonly<Record<string, number>>;
};

/** One occurrence of the phrase `name`. */
export type Finding = { readonly folder: string; readonly name: string; readonly where: string };

export const linesMax = 400;

const allowancesFile = "test/tidy-allowances.json";
const folders = ["src", "docs", "sim", "test", "bench", "torture", "scripts", "examples", "experiments", "spec"];
/** They name what is banned, or, as commands of others' projects, files and scripts that are not here. */
const exempt = ["test/sources/phrases.ts", "test/tidy.test.ts", "test/guard/commands.txt"];

export function readAllowances(): Allowances {
  return JSON.parse(readFileSync(allowancesFile, "utf8")) as Allowances;
}

export function projectSources(): readonly Source[] {
  const patterns = [...folders.map((folder) => `${folder}/**/*.{ts,mjs,md,txt}`), "*.md", "bin/*"];
  return readSources(patterns).filter(({ path }) => !path.includes("node_modules/") && !exempt.includes(path));
}

/** Every banned phrase and every banned name of a type. */
export function phraseFindings(source: Source): readonly Finding[] {
  const folder = folderOf(source.path);
  const inProse = proseOf(source).flatMap((piece) =>
    isWordsTable(source.path, piece)
      ? []
      : phrases.flatMap(({ name, pattern, instead }) =>
          [...piece.matchAll(pattern)].map((found) => ({
            folder,
            name,
            where: `${source.path}: "${excerpt(piece, found.index)}" (write: ${instead})`,
          })),
        ),
  );
  const inTypes = [...source.text.matchAll(bannedTypes)].map(([declared]) => ({
    folder,
    name: "type",
    where: `${source.path}: ${declared}`,
  }));
  return [...inProse, ...inTypes];
}

/** Findings beyond what is allowed, all those of a folder and phrase together. */
export function beyondAllowance(findings: readonly Finding[], allowed: Allowances["phrases"]): readonly string[] {
  return [...grouped(findings)].flatMap(([folder, byName]) =>
    [...byName].flatMap(([name, found]) => {
      const limit = allowed[folder]?.[name] ?? 0;
      if (found.length <= limit) return [];
      return [
        `${folder}, "${name}": ${found.length}, allowed ${limit}`,
        ...found.slice(0, 20).map(({ where }) => where),
      ];
    }),
  );
}

/** Files by hand that are longer than they may be. */
export function lengthFindings(source: Source, allowed: Allowances["lines"]): readonly string[] {
  const lines = linesOf(source);
  if (lines <= (allowed[source.path] ?? linesMax)) return [];
  return [`${source.path} has ${lines} lines; ${linesMax} are the most. Split it by subject.`];
}

export function nameFindings(path: string): readonly string[] {
  return bannedFileNames.test(path) ? [`${path}: name it by what it does`] : [];
}

export function traceFindings({ path, text }: Source): readonly string[] {
  return text
    .split("\n")
    .flatMap((line, index) => (machineTraces.test(line) ? [`${path}:${index + 1}: ${line.trim()}`] : []));
}

/** Parts that a decision lacks, and its row in the table of docs/decisions/README.md. */
export function decisionFindings({ path, text }: Source, table: string): readonly string[] {
  const parts = ["Question", "Decision", "Reasons", "Consequences"];
  const missing = parts.filter((part) => !text.includes(`\n## ${part}\n`)).map((part) => `${path}: no part "${part}"`);
  return table.includes(`(${basename(path)})`) ? missing : [...missing, `${path}: no row in the table`];
}

/** Links to files, and npm scripts, that documents and comments name and that do not exist. */
export function linkFindings({ path, text }: Source, scripts: ReadonlySet<string>): readonly string[] {
  const isDocument = path.endsWith(".md");
  const links = isDocument
    ? [...text.matchAll(/\]\((?![a-z]+:|#)([^)#]+)(?:#[^)]*)?\)/g)].map(([, link = ""]) => link)
    : [];
  const broken = links.filter((link) => !existsSync(posix.join(posix.dirname(path), link)));
  const pieces = isDocument ? [text] : commentsOf(text);
  const run = pieces.flatMap((piece) => [...piece.matchAll(/\bnpm run ([a-z][\w:-]*)/g)].map(([, name = ""]) => name));
  const unknown = run.filter((name) => !scripts.has(name)).map((name) => `npm run ${name}`);
  return [...broken, ...unknown].map((name) => `${path} names ${name}, which does not exist`);
}

/** Paths of this project that documents and comments name, and that do not exist. */
export function pathFindings({ path, text }: Source): readonly string[] {
  const isDocument = path.endsWith(".md");
  const pieces = isDocument ? [text] : commentsOf(text);
  const named = pieces.flatMap((piece) =>
    [...piece.matchAll(projectPath)].map(([found]) => found.replace(/[.,:]+$/, "")),
  );
  const missing = named.filter((name) => !isExample(name) && !isThere(name));
  const files = isDocument ? [...text.matchAll(/`([\w-]+\.(?:test\.)?ts)`/g)].map(([, name = ""]) => name) : [];
  const unknown = files.filter((name) => !isExample(name) && !fileNames().has(name));
  return [...missing, ...unknown].map((name) => `${path} names ${name}, which does not exist`);
}

const projectPath =
  /(?<![\w./:<*-])(?:src|sim|test|bench|torture|scripts|docs|examples|experiments|dashboard|spec)\/[\w./*{},-]*[\w*}/]/g;

/** Names of files in examples: of the repositories that agents work in. */
const exampleNames =
  /^(?:src\/)?(?:[a-z]|auth|app|login|csv|types|old|new|server|index|program|main)(?:\.(?:ts|py)|\/|\/?\*\*)?$|^src\/\*|^src\/types\//;

function isExample(name: string): boolean {
  return exampleNames.test(name);
}

function isThere(name: string): boolean {
  const pattern = name.replace(/\/$/, "");
  // `npm test -- src/kernel/restore` names every file that begins so.
  return existsSync(pattern) || globSync(/[*{]/.test(pattern) ? pattern : `${pattern}*`).length > 0;
}

let knownFileNames: ReadonlySet<string> | undefined;

function fileNames(): ReadonlySet<string> {
  knownFileNames ??= new Set(
    folders.flatMap((folder) => projectFiles(`${folder}/**/*.ts`)).map((path) => basename(path)),
  );
  return knownFileNames;
}

/** The table of CONTRIBUTING.md that names what not to write. */
function isWordsTable(path: string, piece: string): boolean {
  return path === "CONTRIBUTING.md" && piece.startsWith("|");
}

function linesOf({ path, text }: Source): number {
  const isByHand =
    /\.(?:ts|mjs)$/.test(path) && !path.includes(".gen.") && !/^\/\*\* (?:Written|Generated) by /.test(text);
  return isByHand ? text.split("\n").length - 1 : 0;
}

/** "src/kernel" and the like in src, else the first folder, or the file. */
function folderOf(path: string): string {
  const [first = "", second = "", ...rest] = path.split("/");
  return first === "src" && rest.length > 0 ? `${first}/${second}` : first;
}

function excerpt(piece: string, at: number): string {
  return piece.slice(Math.max(0, at - 50), at + 50).replaceAll("\n", " ");
}

function grouped(findings: readonly Finding[]): ReadonlyMap<string, ReadonlyMap<string, readonly Finding[]>> {
  const byFolder = Map.groupBy(findings, ({ folder }) => folder);
  return new Map([...byFolder].map(([folder, found]) => [folder, Map.groupBy(found, ({ name }) => name)]));
}

/** What is there, where that is less than what is allowed. */
function lowered(sources: readonly Source[], allowed: Allowances): Allowances {
  const counts = grouped(sources.flatMap(phraseFindings));
  const lower = (folder: string, name: string, limit: number) =>
    Math.min(limit, counts.get(folder)?.get(name)?.length ?? 0);
  const phrasesLeft = Object.entries(allowed.phrases)
    .map(([folder, byName]) => {
      const left = Object.entries(byName).map(([name, limit]) => [name, lower(folder, name, limit)] as const);
      return [folder, Object.fromEntries(left.filter(([, count]) => count > 0))] as const;
    })
    .filter(([, byName]) => Object.keys(byName).length > 0);
  const linesLeft = sources
    .filter((source) => allowed.lines[source.path] !== undefined && linesOf(source) > linesMax)
    .map((source) => [source.path, Math.min(linesOf(source), allowed.lines[source.path] ?? 0)] as const);
  return { phrases: Object.fromEntries(phrasesLeft), lines: Object.fromEntries(linesLeft) };
}

if (import.meta.main) {
  const sources = projectSources();
  const allowed = readAllowances();
  if (process.argv.includes("--write")) {
    writeFileSync(allowancesFile, `${JSON.stringify(lowered(sources, allowed), null, 2)}\n`);
  } else {
    for (const { where } of sources.flatMap(phraseFindings)) console.log(where);
  }
}
