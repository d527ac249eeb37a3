/**
 * What a token can be narrowed by (G4): a closed list. Each caveat only ever takes away; one that this version does not
 * know fails, because nobody can say what it would have forbidden.
 */
import { ByteReader, ByteWriter } from "./encoding.ts";

export type Caveat =
  /** Ends earlier than the lease. */
  | { readonly type: "expiry"; readonly expiresAt: number }
  /** This path of the resource and what is below it. */
  | { readonly type: "path"; readonly path: string }
  | { readonly type: "operations"; readonly operations: readonly string[] }
  /** The program that uses it, by its real path. */
  | { readonly type: "program"; readonly program: string }
  /** A label that the cell's inventory must have. */
  | { readonly type: "hardware"; readonly hardware: string }
  /** All operations under it together move no more than this. */
  | { readonly type: "bytes"; readonly bytesMax: number };

export type CaveatType = Caveat["type"];

/** As found in a token: perhaps from a version that knows more. */
export type FoundCaveat = Caveat | { readonly type: "unknown"; readonly code: number };

export const caveatLimits = { pathBytesMax: 1_024, nameBytesMax: 1_024, operationsMax: 16 } as const;

const codes: Readonly<Record<CaveatType, number>> = {
  expiry: 1,
  path: 2,
  operations: 3,
  program: 4,
  hardware: 5,
  bytes: 6,
};

const operationPattern = /^[a-z][a-z0-9_.-]{0,31}$/;
/** Empty, . and .. segments, and what other systems take for a slash. */
const unplain = /\/\/|\/\.{1,2}(?:\/|$)|\\/;
const utf8 = new TextEncoder();

/** The body of a caveat in a token; a sentence where it says nothing that could be checked. */
export function encodeCaveat(caveat: Caveat): Uint8Array | { readonly problem: string } {
  const problem = problemOf(caveat);
  if (problem !== null) return { problem };
  const writer = new ByteWriter().byte(codes[caveat.type]);
  switch (caveat.type) {
    case "expiry":
      return writer.number(caveat.expiresAt).bytes();
    case "path":
      return writer.text(caveat.path).bytes();
    case "operations":
      for (const operation of caveat.operations) writer.text(operation);
      return writer.bytes();
    case "program":
      return writer.text(caveat.program).bytes();
    case "hardware":
      return writer.text(caveat.hardware).bytes();
    case "bytes":
      return writer.number(caveat.bytesMax).bytes();
  }
}

/** null: of a known kind, but not well-formed. */
export function decodeCaveat(bytes: Uint8Array, from: number, end: number): FoundCaveat | null {
  const reader = new ByteReader(bytes, from, end);
  const code = reader.byte();
  if (code === null) return null;
  const found = readBody(code, reader);
  if (found === null || found.type === "unknown") return found;
  return reader.done && problemOf(found) === null ? found : null;
}

function readBody(code: number, reader: ByteReader): FoundCaveat | null {
  switch (code) {
    case codes.expiry: {
      const expiresAt = reader.number();
      return expiresAt === null ? null : { type: "expiry", expiresAt };
    }
    case codes.path: {
      const path = reader.text();
      return path === null ? null : { type: "path", path };
    }
    case codes.operations: {
      const operations: string[] = [];
      while (!reader.done) {
        const operation = reader.text();
        if (operation === null) return null;
        operations.push(operation);
      }
      return { type: "operations", operations };
    }
    case codes.program: {
      const program = reader.text();
      return program === null ? null : { type: "program", program };
    }
    case codes.hardware: {
      const hardware = reader.text();
      return hardware === null ? null : { type: "hardware", hardware };
    }
    case codes.bytes: {
      const bytesMax = reader.number();
      return bytesMax === null ? null : { type: "bytes", bytesMax };
    }
    default:
      return { type: "unknown", code };
  }
}

function problemOf(caveat: Caveat): string | null {
  switch (caveat.type) {
    case "expiry":
      return isCount(caveat.expiresAt) ? null : "The expiry is a whole number of milliseconds since 1970.";
    case "path":
      return isPlainPath(caveat.path) && fits(caveat.path, caveatLimits.pathBytesMax)
        ? null
        : "The path begins with /, and has no empty, . or .. segments, backslashes or control characters.";
    case "operations":
      return areOperations(caveat.operations)
        ? null
        : `Name 1 to ${caveatLimits.operationsMax} operations, in alphabetical order and each once, such as read.`;
    case "program":
      return isName(caveat.program) ? null : "The program is a path without control characters.";
    case "hardware":
      return isName(caveat.hardware) ? null : "The hardware is a label without control characters.";
    case "bytes":
      return isCount(caveat.bytesMax) ? null : "The bytes are a whole number from 0.";
  }
}

/** Absolute and in the one form in which two paths can be compared as text: "/", "/a", "/a/b". */
export function isPlainPath(path: string): boolean {
  return path === "/" || (path.startsWith("/") && !path.endsWith("/") && !hasControls(path) && !unplain.test(path));
}

/** Whether a path is the other or below it. Both are plain. */
export function isWithin(path: string, root: string): boolean {
  return root === "/" || path === root || path.startsWith(`${root}/`);
}

function areOperations(operations: readonly string[]): boolean {
  if (operations.length === 0 || operations.length > caveatLimits.operationsMax) return false;
  return operations.every(
    (operation, at) => operationPattern.test(operation) && operation > (operations[at - 1] ?? ""),
  );
}

function isName(text: string): boolean {
  return text !== "" && fits(text, caveatLimits.nameBytesMax) && !hasControls(text);
}

function hasControls(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code < 0x20 || code === 0x7f) return true;
  }
  return !text.isWellFormed();
}

function fits(text: string, bytesMax: number): boolean {
  return text.length <= bytesMax / 3 || utf8.encode(text).length <= bytesMax;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
