/**
 * What files are, by their hash: what a session has seen of them, so that it cannot overwrite what it never saw; and who
 * wrote them last in this checkout, so that a change is not blamed on the wrong one.
 */
import { join } from "node:path";
import { nodeModule } from "./node-module.ts";
import { fileName } from "./places.ts";
import { readPrivate, readPrivateJson, writePrivate } from "./private-files.ts";

const { readFileSync, statSync } = nodeModule("node:fs");

const hashBytesMax = 64 * 2 ** 20;

/** The hash of what is there; "none" where nothing is; a very large file's size and time. */
export function versionOf(path: string): string {
  try {
    const { size, mtimeMs } = statSync(path);
    if (size > hashBytesMax) return `size:${size};mtime:${mtimeMs}`;
    return `sha256:${nodeModule("node:crypto").hash("sha256", readFileSync(path), "hex")}`;
  } catch {
    return "none";
  }
}

/** What the session last saw of a file; null if it never looked. */
export function seenVersion(agentFolder: string, path: string): string | null {
  return readPrivate(join(agentFolder, "seen", fileName(path)));
}

export function noteSeen(agentFolder: string, path: string, version: string): void {
  writePrivate(join(agentFolder, "seen", fileName(path)), version);
}

/** An edit is under way, or was the last that we know of. */
export interface WriteMark {
  readonly agentId: string;
  readonly state: "writing" | "written";
  readonly version: string;
  readonly at: number;
}

export function readWriteMark(checkout: string, path: string): WriteMark | null {
  return readPrivateJson<WriteMark>(markPath(checkout, path), {
    agentId: "string",
    state: "string",
    version: "string",
  });
}

export function markWrite(checkout: string, path: string, mark: WriteMark): void {
  writePrivate(markPath(checkout, path), JSON.stringify(mark));
}

function markPath(checkout: string, path: string): string {
  return join(checkout, "writes", fileName(path));
}
