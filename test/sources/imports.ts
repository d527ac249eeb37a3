import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";

/** One file of the repository: its path from the root, and its text. */
export type Source = { readonly path: string; readonly text: string };

export type Import = {
  readonly specifier: string;
  readonly typeOnly: boolean;
  /** A call of `import()`: loaded when that line runs. */
  readonly isLate: boolean;
};

export function readSources(pattern: string | readonly string[]): readonly Source[] {
  return projectFiles(pattern)
    .sort()
    .map((path) => ({ path, text: readFileSync(path, "utf8") }));
}

/** Files of the project; what was installed below it (`bench/peers` has packages of its own) is not. */
export function projectFiles(pattern: string | readonly string[], cwd = "."): string[] {
  return globSync(pattern, { cwd, exclude: ["**/node_modules/**"] });
}

export function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

export function importsOf(text: string): readonly Import[] {
  const code = withoutComments(text);
  const names = String.raw`(?:\*(?:\s+as\s+[\w$]+)?|[\w$]+|\{[^}]*\})`;
  const statement = new RegExp(
    String.raw`\b(?:import|export)\s*(type\s)?\s*${names}(?:\s*,\s*${names})?\s*from\s*["']([^"']+)["']`,
    "g",
  );
  const bare = /\bimport\s*(\()?\s*["']([^"']+)["']/g; // for its effect, or at run time
  return [
    ...[...code.matchAll(statement)].map(([, type, specifier = ""]) => ({
      specifier,
      typeOnly: type !== undefined,
      isLate: false,
    })),
    ...[...code.matchAll(bare)].map(([, bracket, specifier = ""]) => ({
      specifier,
      typeOnly: false,
      isLate: bracket !== undefined,
    })),
  ];
}

/** The path that a relative import names. */
export function targetOf(path: string, specifier: string): string {
  return posix.join(posix.dirname(path), specifier);
}

/**
 * Strings are skipped, because resource patterns ("/src/**") look like the start of a comment. Templates are kept:
 * what stands in their braces is code.
 */
export function withoutComments(text: string, also?: "and strings"): string {
  const token = /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(`(?:\\.|[^`\\])*`)|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  return text.replace(token, (_whole, quoted: string | undefined, template: string | undefined) => {
    if (quoted !== undefined) return also === undefined ? quoted : '""';
    return template ?? " ";
  });
}

/**
 * Groups of files that import values of each other in a circle (strongly connected components, by Tarjan). Imports
 * of types vanish when the program runs and do not count.
 */
export function importCycles(sources: readonly Source[]): readonly (readonly string[])[] {
  const graph = new Map(sources.map(({ path, text }) => [path, valueTargets(path, text)]));
  const order = new Map<string, number>();
  const open: string[] = [];
  const cycles: string[][] = [];
  const visit = (path: string): number => {
    const own = order.size;
    order.set(path, own);
    open.push(path);
    let low = own;
    for (const target of graph.get(path) ?? []) {
      if (!graph.has(target)) continue;
      if (!order.has(target)) low = Math.min(low, visit(target));
      else if (open.includes(target)) low = Math.min(low, order.get(target) ?? low);
    }
    if (low === own) {
      const group = open.splice(open.indexOf(path));
      if (group.length > 1 || graph.get(path)?.includes(path)) cycles.push(group.sort());
    }
    return low;
  };
  for (const path of graph.keys()) if (!order.has(path)) visit(path);
  return cycles;
}

function valueTargets(path: string, text: string): readonly string[] {
  return importsOf(text)
    .filter(({ specifier, typeOnly }) => specifier.startsWith(".") && !typeOnly)
    .map(({ specifier }) => targetOf(path, specifier));
}
