import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";

/** What an area of src/ may reach. Node's own modules are open to all but the kernel. */
type Reach = {
  /** Areas it may import values and types from. */
  readonly areas: readonly string[];
  /** Areas it may import types from, and nothing that exists when the program runs. */
  readonly typesOf: readonly string[];
  /** Packages it may import; "any" where the choice is left to docs/decisions. */
  readonly packages: readonly string[] | "any";
};

const reach: Readonly<Record<string, Reach>> = {
  kernel: { areas: [], typesOf: [], packages: [] },
  protocol: { areas: [], typesOf: ["kernel"], packages: ["typebox"] },
  store: { areas: [], typesOf: ["kernel"], packages: "any" },
  // What a receipt's text and a head are, for whoever seals or checks them; nothing of how they are kept.
  ledger: { areas: [], typesOf: ["kernel", "store"], packages: [] },
  engine: { areas: ["kernel", "store", "ledger"], typesOf: [], packages: "any" },
  // Tools and what carries them; the engine is reached through a door that the server makes, another server by the SDK.
  mcp: { areas: ["protocol", "sdk"], typesOf: [], packages: ["@modelcontextprotocol/server"] },
  // It opens the store that it gives to the engine, and looks at names and state as the kernel does.
  server: { areas: ["engine", "protocol", "kernel", "store", "ledger", "mcp", "token"], typesOf: [], packages: "any" },
  // It is published without dependencies: what it needs of the protocol is written out by scripts/sdk-wire.ts. Tokens,
  // which import nothing, go with it.
  sdk: { areas: ["token"], typesOf: ["protocol"], packages: [] },
  // Outside its folder node/ it imports nothing of Node either, and so runs in a browser; a test beside it holds that.
  token: { areas: [], typesOf: [], packages: [] },
  cell: { areas: ["protocol", "sdk", "token"], typesOf: [], packages: "any" },
  // What files are called, for all who name them.
  names: { areas: [], typesOf: [], packages: [] },
  // Its hooks start for every step of a coding agent: nothing is loaded with them that they do not need.
  guard: { areas: ["names"], typesOf: ["sdk"], packages: [] },
  cli: { areas: ["guard", "names", "protocol", "sdk", "cell", "server", "mcp", "token"], typesOf: [], packages: "any" },
  main: { areas: ["server", "engine", "store", "cli"], typesOf: [], packages: "any" },
};

/** Ways to time, chance and the outside that need no import, and so would pass the rule on imports. */
const beyondTheKernel: readonly RegExp[] = [
  /\bDate\b/,
  /\bMath\.random\b/,
  /\bset(?:Timeout|Interval|Immediate)\b/,
  /\bprocess\./,
  /\bperformance\./,
  /\bcrypto\./,
  /\bglobalThis\b/,
  /\brequire\(/,
  /\bimport\(/,
  /\bfetch\(/,
];

type Import = { readonly specifier: string; readonly typeOnly: boolean; readonly isLate: boolean };

test("arrows only point inward: no area of src/ imports what lies further out", () => {
  assert.deepEqual(sources().flatMap(importFaults), []);
});

test("the kernel cannot reach a clock, chance, a timer or the process", () => {
  assert.deepEqual(sources().flatMap(kernelFaults), []);
});

test("the SDK reaches what only Node has from src/sdk/node alone, and that is loaded when it is needed", () => {
  assert.deepEqual(sources().flatMap(sdkFaults), []);
});

test("an import that points outward is found", () => {
  const faults = (path: string, text: string) => importFaults({ path, text });
  assert.equal(faults("src/kernel/apply.ts", 'import { open } from "node:fs";').length, 1);
  assert.equal(faults("src/kernel/apply.ts", 'import type { Store } from "../store/store.ts";').length, 1);
  assert.equal(faults("src/kernel/apply.test.ts", 'import { test } from "node:test";\nimport "ws";').length, 1);
  assert.equal(faults("src/store/sqlite.ts", 'export * from "../engine/engine.ts";').length, 1);
  assert.equal(faults("src/store/sqlite.ts", 'import { apply } from "../kernel/apply.ts";').length, 1);
  assert.equal(faults("src/store/sqlite.ts", 'import { type Lease, apply } from "../kernel/apply.ts";').length, 1);
  assert.equal(faults("src/sdk/client.ts", 'const s = await import("../server/http.ts");').length, 1);
  assert.equal(faults("src/sdk/client.ts", 'import { errors } from "../protocol/errors.ts";').length, 1);
  assert.equal(sdkFaults({ path: "src/sdk/client.ts", text: 'import { open } from "node:fs";' }).length, 1);
  assert.equal(sdkFaults({ path: "src/sdk/agent.ts", text: 'import { a } from "./node/digest-file.ts";' }).length, 1);
  assert.deepEqual(sdkFaults({ path: "src/sdk/a.ts", text: 'const a = await import("./node/digest-file.ts");' }), []);
  assert.equal(faults("src/protocol/schema/schema.ts", 'import Fastify from "fastify";').length, 1);
  assert.equal(faults("src/elsewhere/file.ts", 'import "node:fs";').length, 1);
});

test("an import that points inward is let through", () => {
  const faults = (path: string, text: string) => importFaults({ path, text });
  assert.deepEqual(faults("src/kernel/apply.ts", 'import { settle } from "./settle.ts";'), []);
  assert.deepEqual(faults("src/kernel/apply.test.ts", 'import fc from "fast-check";'), []);
  assert.deepEqual(faults("src/store/sqlite.ts", 'import { DatabaseSync } from "node:sqlite";'), []);
  assert.deepEqual(faults("src/store/sqlite.ts", 'import type { Lease } from "../kernel/records.ts";'), []);
  assert.deepEqual(faults("src/engine/engine.ts", 'import { apply } from "../kernel/apply.ts";'), []);
  assert.deepEqual(faults("src/main.ts", 'import { serve } from "./server/http.ts";'), []);
});

test("a pattern in a string hides no code behind it, and a word in a comment is no use of it", () => {
  const hidden = 'const all = "/src/**";\nimport { open } from "node:fs"; /* end */';
  assert.equal(importFaults({ path: "src/kernel/a.ts", text: hidden }).length, 1);
  const spoken = '// Date is never read here.\n/** Nor is Math.random. */\nconst detail = "still in process.";';
  assert.deepEqual(kernelFaults({ path: "src/kernel/a.ts", text: spoken }), []);
  assert.equal(kernelFaults({ path: "src/kernel/a.ts", text: `const at = \`\${Date.now()}\`;` }).length, 1);
});

type Source = { readonly path: string; readonly text: string };

function sources(): readonly Source[] {
  const paths = globSync("src/**/*.ts").sort();
  return paths.map((path) => ({ path, text: readFileSync(path, "utf8") }));
}

function importFaults({ path, text }: Source): readonly string[] {
  const from = areaOf(path);
  const allowed = reach[from];
  if (allowed === undefined) return [`${path}: src/${from} has no row in this test; say what it may import`];
  // Outside the kernel a test may stand wherever it likes, for instance to try a store under the whole engine.
  if (isTest(path) && from !== "kernel") return [];
  return importsOf(text).flatMap((found) => {
    const fault = faultOf(path, found, from, allowed);
    return fault === undefined ? [] : [`${path}: ${fault}`];
  });
}

function faultOf(path: string, { specifier, typeOnly }: Import, from: string, allowed: Reach): string | undefined {
  if (specifier.startsWith(".")) {
    const target = posix.join(posix.dirname(path), specifier);
    // The kernel's tests hold it against the simulation's naive model.
    if (isTest(path) && target.startsWith("sim/")) return undefined;
    const to = areaOf(target);
    if (to === from || allowed.areas.includes(to)) return undefined;
    if (!allowed.typesOf.includes(to)) return `${from} must not import ${specifier}`;
    return typeOnly ? undefined : `${from} may import types of ${to} only (import type): ${specifier}`;
  }
  if (from === "kernel") {
    const forItsTests = isTest(path) && (specifier.startsWith("node:") || specifier === "fast-check");
    return forItsTests ? undefined : `the kernel imports nothing, and this is something: ${specifier}`;
  }
  if (specifier.startsWith("node:") || allowed.packages === "any") return undefined;
  const known = allowed.packages.some((name) => specifier === name || specifier.startsWith(`${name}/`));
  return known ? undefined : `${from} must not depend on ${specifier}`;
}

/** Browsers load src/sdk too. */
function sdkFaults({ path, text }: Source): readonly string[] {
  if (areaOf(path) !== "sdk" || isTest(path) || path.startsWith("src/sdk/node/")) return [];
  return importsOf(text).flatMap(({ specifier, typeOnly, isLate }) => {
    if (typeOnly) return [];
    if (specifier.startsWith("node:")) return [`${path}: ${specifier} belongs into src/sdk/node`];
    return specifier.startsWith("./node/") && !isLate ? [`${path}: ${specifier} is to be loaded when needed`] : [];
  });
}

function kernelFaults({ path, text }: Source): readonly string[] {
  if (areaOf(path) !== "kernel" || isTest(path)) return [];
  const code = withoutComments(text, "and strings");
  return beyondTheKernel.filter((word) => word.test(code)).map((word) => `${path}: the kernel has no ${word.source}`);
}

/** The folder under src/, or "main" for the files that stand directly in it. */
function areaOf(path: string): string {
  const [, area, ...rest] = path.split("/");
  return area !== undefined && rest.length > 0 ? area : "main";
}

function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

function importsOf(text: string): readonly Import[] {
  const code = withoutComments(text);
  const names = String.raw`(?:\*(?:\s+as\s+[\w$]+)?|[\w$]+|\{[^}]*\})`;
  const statement = new RegExp(
    String.raw`\b(?:import|export)\s*(type\s)?\s*${names}(?:\s*,\s*${names})?\s*from\s*["']([^"']+)["']`,
    "g",
  );
  const bare = /\bimport\s*(\()?\s*["']([^"']+)["']/g; // for effect, or when the program runs
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

/**
 * Strings are stepped over and not searched, because resource patterns ("/src/**") look like the start of a comment.
 * Templates are kept in any case: what stands in their braces is code.
 */
function withoutComments(text: string, also?: "and strings"): string {
  const token = /("(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|(`(?:\\.|[^`\\])*`)|\/\/[^\n]*|\/\*[\s\S]*?\*\//g;
  return text.replace(token, (_whole, quoted: string | undefined, template: string | undefined) => {
    if (quoted !== undefined) return also === undefined ? quoted : '""';
    return template ?? " ";
  });
}
