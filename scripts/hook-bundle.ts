/**
 * Bundles the hook into one file for the package. A coding agent waits for its hooks at every step, and a third of
 * their time was Node resolving, reading and linking two dozen small modules. Each module becomes a function that runs
 * when it is first used, so what a hook does not need is not even compiled. The modules use few forms of import, so
 * this is short; an unknown form stops the build.
 */
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const source = fileURLToPath(new URL("../src", import.meta.url));
const entry = join(source, "guard/hook-main.ts");

/** A CommonJS module with what `hook-main.ts` exports. */
export function bundleHook(): string {
  const bodies = new Map<string, string>();
  const queue = [entry];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (bodies.has(path)) continue;
    const { body, imported } = functionBody(path);
    bodies.set(path, body);
    queue.push(...imported);
  }
  const makers = [...bodies].map(([path, body]) => `${nameOf(path)}() {\n${body}\n},`);
  return [
    '"use strict";',
    "const made = new Map();",
    "function use(name) {",
    "  if (!made.has(name)) made.set(name, makers[name]());",
    "  return made.get(name);",
    "}",
    `const makers = {\n${makers.join("\n")}\n};`,
    `module.exports = use(${nameOf(entry)});`,
    "",
  ].join("\n");
}

/** Writes it to a folder as in the package and returns how hooks start it, so that benchmarks run what users run. */
export function stageHook(folder: string): string {
  for (const part of ["bin", "dist/guard"]) mkdirSync(join(folder, part), { recursive: true });
  for (const name of ["leasehold.cjs", "leasehold-hook"])
    copyFileSync(join(source, "../bin", name), join(folder, "bin", name));
  writeFileSync(join(folder, "dist/guard/hook.cjs"), bundleHook());
  return `LEASEHOLD_NODE=${process.execPath} ${join(folder, "bin/leasehold-hook")}`;
}

function functionBody(path: string): { readonly body: string; readonly imported: readonly string[] } {
  const imported: string[] = [];
  const exported: string[] = [];
  const use = (from: string): string => {
    if (!from.startsWith(".")) return `process.getBuiltinModule(${JSON.stringify(from)})`;
    const target = join(dirname(path), from);
    imported.push(target);
    return `use(${nameOf(target)})`;
  };
  const body = stripTypeScriptTypes(readFileSync(path, "utf8"))
    .replaceAll(/^import\s+\{([^}]*)\}\s+from\s+"([^"]+)";/gm, (_, list: string, from: string) => {
      const names = list.split(",").flatMap((one) => (one.trim() === "" ? [] : [one.trim().replace(/ as /, ": ")]));
      return names.length === 0 ? "" : `const { ${names.join(", ")} } = ${use(from)};`;
    })
    .replaceAll(/\bimport\("([^"]+)"\)/g, (_, from: string) => `Promise.resolve(${use(from)})`)
    .replaceAll(/^export ((?:async )?function|class|const) (\w+)/gm, (_, kind: string, name: string) => {
      exported.push(name);
      return `${kind} ${name}`;
    });
  const left = /^\s*(?:import|export)\b.*|\bimport\(.*|\bimport\.meta\b.*/m.exec(body);
  if (left !== null) throw new Error(`${path} imports or exports in a way that the bundle does not know: ${left[0]}`);
  return { body: `${body}\nreturn { ${exported.join(", ")} };`, imported };
}

function nameOf(path: string): string {
  return JSON.stringify(relative(source, path));
}
